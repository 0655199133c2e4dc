// Seal: makes index.spki, rejects.tsv and, last, manifest.json from the footers of a pack's shards.
// Until the manifest is there the directory is not a pack. Cost: the footers, O(shards) files.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "format/index.h"
#include "io/directory.h"

namespace spk {

struct SealSummary {
  IndexHeader header;  // ids and counts
  std::vector<ShardRow> shards;
};

// Expects shard-00000.spks ... complete in `dir`, all of one plan. Each of the three files is
// written under a temporary name, forced to disk and renamed; then the directory is. kNotFound
// names a shard that is missing, kMismatch one of another plan.
Result<SealSummary> seal_pack(const Directory& dir);

// Only rejects.tsv: for shards that are finished but not to be published yet.
Status write_rejects(const Directory& dir);

// The footer of one shard as seal and verify read it, held in memory.
struct LoadedFooter {
  uint64_t file_bytes = 0;
  std::vector<uint8_t> bytes;
  FooterView view;  // into `bytes`
};
Result<LoadedFooter> load_footer(const Directory& dir, uint32_t shard);

// The rejects of a pack with these shards, from their footers, in the order of rejects.tsv.
Status each_reject(const Directory& dir, const std::vector<ShardRow>& shards,
                   const std::function<Status(const RejectRow&)>& take);

}  // namespace spk
