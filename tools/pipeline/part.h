// One of several processes that build a pack together without talking to each other: part I of N
// builds the shards whose number, counted over all splits, leaves I when it is divided by N.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace spk {

struct PackPart {
  uint32_t index = 0;
  uint32_t count = 1;
  bool builds(uint64_t shard) const noexcept { return shard % count == index; }
  bool operator==(const PackPart&) const = default;
};

// "2/8"; "slurm": as Slurm's variables tell, of which `environment` gives the values (null: unset).
// The tasks of srun are parts, as are the jobs of an array; the tasks of an array's jobs are parts
// of all of them together. kInvalidArgument says which variables are missing.
Result<PackPart> parse_part(const std::string& word,
                            const std::function<const char*(const char*)>& environment);

// The same for --node: "2/8"; "slurm": as srun numbers the nodes of its step.
Result<PackPart> parse_node(const std::string& word,
                            const std::function<const char*(const char*)>& environment);

// "2/8"
std::string to_text(const PackPart& part);

// For a split whose first shard has the number `before` over all splits: the first of its shards
// that the part builds. Each `count`th from there on is its own as well.
uint64_t first_shard_of(const PackPart& part, uint64_t before) noexcept;

}  // namespace spk
