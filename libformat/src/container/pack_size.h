// How large a pack is, and how much of it is not the samples' own bytes: told alike wherever it is
// told.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "format/index.h"

namespace spk {

struct PackSize {
  uint64_t total_bytes = 0;    // shards and index; not the small files beside them
  uint64_t payload_bytes = 0;  // the samples' own
  // "4.96 % tables and padding": everything but the payload, of everything.
  std::string overhead_text() const;
};
PackSize pack_size(const IndexHeader& index, std::span<const ShardRow> shards);

// "4.96 %"
std::string percent_text(uint64_t part, uint64_t whole);

}  // namespace spk
