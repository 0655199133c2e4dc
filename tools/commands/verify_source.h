// `verify --against`: the samples of a source compared with those of packs, by all ranks.
#pragma once

#include <string>
#include <vector>

#include "commands/pack_set.h"
#include "pipeline/pack_proof.h"
#include "team/team.h"
#include "ui/progress.h"

namespace spk {

struct SourceProof {
  ProofCounts counts;  // of all ranks
  // The first rank's: what the packs were made with, where the source was read with others.
  std::string other_features;
};

// The first rank lists the source, with the choices that the packs were made with, and finds each
// entry's sample; the ranks read and compare the samples of their own chunks. What must be unpacked
// before it can be read lies on the first rank's node, which then compares alone. Every rank must
// call it; faults are shown at the end, by split, sample and key.
Result<SourceProof> prove_by_source(Team& team, Progress& progress,
                                    const std::vector<NamedPack>& packs, PackOptions against,
                                    const ProofOptions& options);

}  // namespace spk
