#include "base/text.h"
#include "container/pack.h"

namespace spk {

std::string shard_file_name(uint32_t shard) {
  std::string digits = str_cat(shard);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return str_cat("shard-", digits, ".spks");
}

}  // namespace spk
