#include "commands/rank_damage.h"

#include <algorithm>
#include <tuple>

#include "base/varint.h"
#include "container/layout_record.h"

namespace spk {

namespace {

// Where a damage stands in the list of one process.
int phase(const Damage& damage) {
  if (damage.shard != Status::kNoShard) return 1;
  return damage.kind == DamageKind::kFile ? 0 : 2;
}

}  // namespace

std::string encode_damages(const std::vector<Damage>& damages) {
  std::string bytes;
  append_varint(bytes, damages.size());
  for (const Damage& damage : damages) {
    append_varint(bytes, static_cast<uint64_t>(damage.kind));
    append_varint(bytes, static_cast<uint64_t>(damage.code));
    append_string(bytes, damage.file);
    append_varint(bytes, damage.shard);
    append_varint(bytes, static_cast<uint64_t>(damage.chunk + 1));
    append_varint(bytes, damage.sample);
    append_string(bytes, damage.key);
    append_varint(bytes, damage.offset);
    append_string(bytes, damage.what);
    append_varint(bytes, damage.samples_lost);
  }
  return bytes;
}

bool decode_damages(std::string_view bytes, std::vector<Damage>* damages) {
  ByteSpan rest = as_bytes(bytes);
  uint64_t count = 0;
  if (!take_varint(&rest, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    Damage damage;
    uint64_t kind = 0, code = 0, shard = 0, chunk = 0;
    std::string_view file, key, what;
    if (!take_varint(&rest, &kind) || !take_varint(&rest, &code) || !take_string(&rest, &file) ||
        !take_varint(&rest, &shard) || !take_varint(&rest, &chunk) ||
        !take_varint(&rest, &damage.sample) || !take_string(&rest, &key) ||
        !take_varint(&rest, &damage.offset) || !take_string(&rest, &what) ||
        !take_varint(&rest, &damage.samples_lost)) {
      return false;
    }
    damage.kind = static_cast<DamageKind>(kind);
    damage.code = static_cast<Code>(code);
    damage.file = file;
    damage.shard = static_cast<uint32_t>(shard);
    damage.chunk = static_cast<int64_t>(chunk) - 1;
    damage.key = key;
    damage.what = what;
    damages->push_back(std::move(damage));
  }
  return rest.empty();
}

std::vector<Damage> merge_damages(std::vector<std::vector<Damage>> by_rank) {
  std::vector<Damage> all;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (Damage& damage : by_rank[rank]) {
      const bool of_shard = damage.shard != Status::kNoShard;
      const size_t teller = of_shard ? damage.shard % by_rank.size() : 0;
      if (teller == rank) all.push_back(std::move(damage));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Damage& a, const Damage& b) {
    if (phase(a) != phase(b)) return phase(a) < phase(b);
    return phase(a) == 1 && a.shard < b.shard;
  });
  return all;
}

std::string encode_proof(const ProofCounts& counts, const std::vector<ProofFault>& faults) {
  std::string bytes;
  for (const uint64_t number : {counts.samples, counts.faults, counts.unreadable, counts.skipped,
                                static_cast<uint64_t>(faults.size())}) {
    append_varint(bytes, number);
  }
  for (const ProofFault& fault : faults) {
    append_string(bytes, fault.split);
    append_varint(bytes, fault.sample);
    append_string(bytes, fault.key);
    append_string(bytes, fault.what);
  }
  return bytes;
}

bool decode_proof(std::string_view bytes, ProofCounts* counts, std::vector<ProofFault>* faults) {
  ByteSpan rest = as_bytes(bytes);
  uint64_t count = 0;
  if (!take_varint(&rest, &counts->samples) || !take_varint(&rest, &counts->faults) ||
      !take_varint(&rest, &counts->unreadable) || !take_varint(&rest, &counts->skipped) ||
      !take_varint(&rest, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    ProofFault fault;
    std::string_view split, key, what;
    if (!take_string(&rest, &split) || !take_varint(&rest, &fault.sample) ||
        !take_string(&rest, &key) || !take_string(&rest, &what)) {
      return false;
    }
    fault.split = split;
    fault.key = key;
    fault.what = what;
    faults->push_back(std::move(fault));
  }
  return rest.empty();
}

Result<ProofCounts> combine_proofs(Team& team, const Status& mine, const ProofCounts& counts,
                                   const std::vector<ProofFault>& faults,
                                   const std::function<void(const ProofFault&)>& show) {
  // One rank's trouble is no answer for the others to wait for.
  if (!mine.ok()) team.tell_stop();
  SPK_ASSIGN(const std::vector<std::string> told, team.all_gather(encode_proof(counts, faults)));
  ProofCounts all;
  std::vector<ProofFault> found;
  for (const std::string& one : told) {
    ProofCounts some;
    if (!decode_proof(one, &some, &found)) return internal_error("garbled counts");
    all.samples += some.samples;
    all.faults += some.faults;
    all.unreadable += some.unreadable;
    all.skipped += some.skipped;
  }
  std::stable_sort(found.begin(), found.end(), [](const ProofFault& a, const ProofFault& b) {
    return std::tie(a.split, a.sample, a.key) < std::tie(b.split, b.sample, b.key);
  });
  for (const ProofFault& fault : found) show(fault);
  SPK_TRY(agree(team, mine, "").status());
  return all;
}

std::string encode_layouts(const std::vector<StripeLayout>& layouts) {
  LayoutRecord record;
  record.maps.emplace_back().shards = layouts;
  return layout_record_text(record);
}

Result<std::vector<StripeLayout>> merge_layouts(const std::vector<std::string>& told,
                                                uint32_t shard_count) {
  std::vector<std::vector<StripeLayout>> by_rank;
  for (const std::string& one : told) {
    auto record = parse_layout_record(one);
    if (!record.ok() || record->maps.size() != 1) return internal_error("garbled layouts");
    by_rank.push_back(std::move(record->maps[0].shards));
  }
  std::vector<StripeLayout> all;
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    std::vector<StripeLayout>& its = by_rank[shard % by_rank.size()];
    const size_t place = shard / by_rank.size();
    if (place >= its.size()) return internal_error("a rank did not tell of all its shards");
    all.push_back(std::move(its[place]));
  }
  return all;
}

}  // namespace spk
