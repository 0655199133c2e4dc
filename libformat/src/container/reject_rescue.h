// A shard's list of rejects, from a footer or, where that is damaged, from rejects.tsv.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "container/footer_check.h"
#include "container/shard_load.h"
#include "io/directory.h"

namespace spk {

class RejectRescue {
 public:
  // `shards`: what is known of all shards of the pack; must outlive it.
  RejectRescue(const Directory& dir, const std::vector<ShardSummary>& shards)
      : dir_(dir), shards_(shards) {}

  static std::optional<std::vector<RejectRow>> of_footer(const FooterCheck& footer);
  // Only where the lists of all other shards are known and stand in the file as they should: then
  // the lines between them are this shard's.
  std::optional<std::vector<RejectRow>> of_file(uint32_t shard) const;

 private:
  const Directory& dir_;
  const std::vector<ShardSummary>& shards_;
};

}  // namespace spk
