// layout.json: how the files of a pack are striped, as it was asked for and as the file system said
// afterwards. Not part of the pack's identity. Each time the files were looked at gives a map; a
// map is never changed, for the order of running epochs may rest on it: after a copy a new one is
// added, which new runs use, and states of older runs find theirs by its digest.
//
//   {"version": 1, "chunk_bytes": 4194304,
//    "maps": [{"digest": "0123456789abcdef", "made": "2026-11-30T12:00:00Z", "file_system":
//    "lustre",
//              "asked": "stripe_size=4194304 stripe_count=1", "refused": "",
//              "shards": [{"system": "lustre", "components": [{"stripe_bytes": 4194304,
//                          "stripe_count": 1, "targets": [17]}]}]}]}
//
// The last map is the current one. "shards" is empty where the file system tells nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "io/directory.h"
#include "io/stripe_calls.h"
#include "layout/stripe_layout.h"

namespace spk {

class Pack;

struct LayoutMap {
  uint64_t digest = 0;  // target_map_digest of chunk_targets; 0 where those are not known
  std::string made;     // when, UTC
  std::string file_system;
  std::string asked;                 // for people; "the folder's own" where nothing was
  std::string refused;               // why the file system did not give it; "" where it did
  std::vector<StripeLayout> shards;  // by number; empty where nothing is told
};

struct LayoutRecord {
  uint64_t chunk_bytes = 0;
  std::vector<LayoutMap> maps;

  // Null where there is none.
  const LayoutMap* current() const noexcept { return maps.empty() ? nullptr : &maps.back(); }
  const LayoutMap* find(uint64_t digest) const noexcept;
};

// One of "shards" above.
void write_stripe_layout(JsonWriter& json, const StripeLayout& layout);

// 16 hexadecimal digits, as the record and states have them. kInvalidArgument for anything else.
Result<uint64_t> parse_map_digest(std::string_view text);

std::string layout_record_text(const LayoutRecord& record);
// kDamaged where it is no such record.
Result<LayoutRecord> parse_layout_record(std::string_view text);
// Of the pack in `dir`; one without maps where there is no layout.json.
Result<LayoutRecord> read_layout_record(const Directory& dir);
Status write_layout_record(const Directory& dir, const LayoutRecord& record);

// The place of each chunk, by number through the pack.
struct ChunkPlace {
  uint32_t shard = 0;
  uint64_t offset = 0;
};
// The target of each chunk's first byte. Targets are numbered anew from 0, by their numbers in the
// file system, so that what counts is which chunks share one. Empty where a chunk's is not known,
// or all have the same: such a map orders nothing.
std::vector<uint32_t> chunk_targets(std::span<const StripeLayout> shards,
                                    std::span<const ChunkPlace> chunks);
Result<std::vector<ChunkPlace>> chunk_places(const Pack& pack);

// Which of a pack's shards are meant: every `step`th from `first` on.
struct ShardShare {
  uint32_t first = 0;
  uint32_t step = 1;
};
// Asks the file system for the layout of these shards' files; kNone is told of one that it tells
// nothing of.
Result<std::vector<StripeLayout>> look_at_shards(const Directory& dir, uint32_t shard_count,
                                                 ShardShare share = {},
                                                 const StripeCalls& calls = kernel_stripe_calls());

// That and the digest: all of a map but when it was made, and what was asked for.
Result<LayoutMap> look_at_layout(const Pack& pack,
                                 const StripeCalls& calls = kernel_stripe_calls());

// What `verify --layout` finds: how the shards lie is not how it was asked for, or recorded, or how
// a pack should. Nothing of it is damage. `now`: what look_at_shards tells of all shards.
struct LayoutFinding {
  std::string what;
  std::string help;
};
Result<std::vector<LayoutFinding>> check_layout(const Pack& pack,
                                                const std::vector<StripeLayout>& now,
                                                const StripeCalls& calls = kernel_stripe_calls());

}  // namespace spk
