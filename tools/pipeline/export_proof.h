// Proof of an export: its files are read by this program's own source of that format, and every
// sample is compared with the pack.
#pragma once

#include <string>

#include "pipeline/export_run.h"
#include "pipeline/pack_proof.h"

namespace spk {

// kUnsupported where there is no such source. To be asked before anything is written.
Status can_prove_export(const ExportJob& job);

// Of the files that export_pack() has written at `path`. Faults go to options.fault. Memory:
// O(samples).
Result<ProofCounts> prove_export(const ExportJob& job, const std::string& path,
                                 const std::string& split, const ProofOptions& options);

}  // namespace spk
