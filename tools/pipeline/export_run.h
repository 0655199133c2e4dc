// Exporting one pack: samples are dealt to output files by arithmetic, and files to threads. All is
// built below a directory of the caller's, which publishes it; of each file that is whole there is
// a record, so that a run that was stopped is continued file by file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "container/pack.h"
#include "sinks/sink.h"

namespace spk {

struct ExportJob {
  const Pack* pack = nullptr;
  const Sink* sink = nullptr;
  ExportOptions options;
  // Sample numbers in the order of the output.
  std::vector<uint64_t> samples;
  uint64_t payload_bytes = 0;  // of these
  uint32_t jobs = 1;
  // Every `ranks`th file from `rank` on, for several processes that share the work. Whoever comes
  // last calls export_pack for all: it finds every file's record, and finishes the whole.
  uint32_t rank = 0;
  uint32_t ranks = 1;
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(uint64_t samples, uint64_t bytes)> advance;  // from any thread
};

struct ExportResult {
  uint64_t samples = 0;
  uint64_t bytes = 0;  // of all files
  uint64_t files = 0;
  uint64_t files_kept = 0;  // that an earlier run had finished
};

// How many files the job makes.
uint64_t export_file_count(const ExportJob& job);

// Writes files below `directory` and their records to `records`. kDamaged where a sample
// contradicts its checksum: nothing wrong is ever exported. kCancelled where `cancel` became true.
Result<ExportResult> export_pack(const ExportJob& job, const Directory& directory,
                                 const Directory& records);

}  // namespace spk
