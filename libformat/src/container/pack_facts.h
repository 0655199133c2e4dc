// What all shards of a pack share, taken from whatever of the pack is whole.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "container/index_check.h"
#include "format/chunk.h"
#include "io/directory.h"

namespace spk {

struct PackFacts {
  PackIdentity identity;
  uint32_t shard_count = 0;
  Hash128 schema_hash;
  bool has_schema = false;
  bool has_settings = false;
  std::vector<uint8_t> fields, classes, settings;  // parts as stored, where there
  Schema schema;
};

// From the index where it is of the plan that most shards are of, otherwise from the shards;
// `entries` is the directory's listing. A foreign index is disowned. kDamaged where nothing tells
// what the pack is.
Result<PackFacts> gather_facts(const Directory& dir, const std::vector<DirectoryEntry>& entries,
                               IndexCheck& index);

// The number in "shard-00007.spks"; nothing for other names.
std::optional<uint32_t> shard_number(std::string_view name);

}  // namespace spk
