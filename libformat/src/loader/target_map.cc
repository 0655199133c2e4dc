#include "loader/target_map.h"

#include "base/text.h"
#include "container/layout_record.h"
#include "layout/order.h"

namespace spk {

namespace {

Result<std::vector<uint32_t>> targets_by(const Pack& pack, const LayoutMap& map) {
  if (map.digest == 0) return std::vector<uint32_t>();
  SPK_ASSIGN(const std::vector<ChunkPlace> places, chunk_places(pack));
  std::vector<uint32_t> targets = chunk_targets(map.shards, places);
  if (target_map_digest(targets) == map.digest) return targets;
  return damaged(str_cat("layout record: the targets of map ", to_hex(map.digest),
                         " have another digest, ", to_hex(target_map_digest(targets))))
      .at_path(pack.directory().path_of(kLayoutName))
      .with_hint("move it away; `stripepack layout PACK --refresh` writes a new one");
}

}  // namespace

Result<std::vector<uint32_t>> current_targets(const Pack& pack) {
  SPK_ASSIGN(const LayoutRecord record, read_layout_record(pack.directory()));
  const LayoutMap* map = record.current();
  if (map == nullptr) return std::vector<uint32_t>();
  return targets_by(pack, *map);
}

Result<std::vector<uint32_t>> targets_of_digest(const Pack& pack, uint64_t digest) {
  if (digest == 0) return std::vector<uint32_t>();
  SPK_ASSIGN(const LayoutRecord record, read_layout_record(pack.directory()));
  const LayoutMap* map = record.find(digest);
  if (map != nullptr) return targets_by(pack, *map);
  return Status(Code::kMismatch, str_cat("the loader state is of the target map with digest ",
                                         to_hex(digest), ", which layout.json does not have"))
      .at_path(pack.path())
      .with_hint("bring back the layout.json that the run began with, or begin a new run");
}

}  // namespace spk
