#include "container/pack_size.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

std::string percent_text(uint64_t part, uint64_t whole) {
  if (whole == 0) return "0 %";
  return str_cat(format_fixed(100.0 * static_cast<double>(part) / static_cast<double>(whole), 2),
                 " %");
}

std::string PackSize::overhead_text() const {
  const uint64_t payload = std::min(payload_bytes, total_bytes);  // whatever a damaged index says
  return percent_text(total_bytes - payload, total_bytes) + " tables and padding";
}

PackSize pack_size(const IndexHeader& index, std::span<const ShardRow> shards) {
  PackSize size;
  size.total_bytes = index.file_bytes;
  for (const ShardRow& shard : shards) size.total_bytes += shard.file_bytes;
  size.payload_bytes = index.payload_bytes;
  return size;
}

}  // namespace spk
