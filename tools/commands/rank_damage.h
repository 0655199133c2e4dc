// What the ranks of an MPI program find in a pack, each in its own shards, as one list.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "container/damage.h"
#include "layout/stripe_layout.h"
#include "pipeline/pack_proof.h"
#include "team/team.h"

namespace spk {

// Damages as bytes that decode_damages reads; false where they are none.
std::string encode_damages(const std::vector<Damage>& damages);
bool decode_damages(std::string_view bytes, std::vector<Damage>* damages);

// `by_rank`: all that each rank found. Each looked at every shard's ends but at the chunks of its
// own (shard % ranks) only. In the order of one process: files, shard by shard, index and the rest.
std::vector<Damage> merge_damages(std::vector<std::vector<Damage>> by_rank);

std::string encode_proof(const ProofCounts& counts, const std::vector<ProofFault>& faults);
bool decode_proof(std::string_view bytes, ProofCounts* counts, std::vector<ProofFault>* faults);

// Ends a proof that the ranks shared: all get what all counted, and `show` each fault that any
// found, by split, sample and key, also where the proof failed. Every rank must call it.
Result<ProofCounts> combine_proofs(Team& team, const Status& mine, const ProofCounts& counts,
                                   const std::vector<ProofFault>& faults,
                                   const std::function<void(const ProofFault&)>& show);

// How the shards' files lie, of which each rank has those of its own (shard % ranks), by number.
std::string encode_layouts(const std::vector<StripeLayout>& layouts);
// Of all shards; kInternal where `told` is not what the ranks of `shard_count` shards told.
Result<std::vector<StripeLayout>> merge_layouts(const std::vector<std::string>& told,
                                                uint32_t shard_count);

}  // namespace spk
