// What the ranks of an MPI program find in a pack, each in its own shards, as one list.
#pragma once

#include <string>
#include <vector>

#include "container/damage.h"
#include "pipeline/pack_proof.h"

namespace spk {

// Damages as bytes that decode_damages reads; false where they are none.
std::string encode_damages(const std::vector<Damage>& damages);
bool decode_damages(std::string_view bytes, std::vector<Damage>* damages);

// `by_rank`: all that each rank found. Each looked at every shard's ends but at the chunks of its
// own (shard % ranks) only. In the order of one process: files, shard by shard, index and the rest.
std::vector<Damage> merge_damages(std::vector<std::vector<Damage>> by_rank);

std::string encode_proof(const ProofCounts& counts, const std::vector<ProofFault>& faults);
bool decode_proof(std::string_view bytes, ProofCounts* counts, std::vector<ProofFault>* faults);

}  // namespace spk
