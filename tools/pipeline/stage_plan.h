// What `stripepack stage` has to do: which shards of which pack go to which directory, what of them
// is there already, what is in the way, and whether there is room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "container/pack.h"
#include "pipeline/part.h"
#include "pipeline/quota.h"

namespace spk {

struct StageRequest {
  std::optional<PackPart> node;  // its share of the shards; none: all of them
  std::optional<uint64_t> at_most_bytes;
  uint32_t jobs = 1;
  uint64_t memory_bytes = uint64_t{512} << 20;
  bool verify = false;  // what is there is read, too
  bool force = false;   // what is in the way is removed
};

// One pack of those that are staged.
struct StageTask {
  std::string split;  // empty where the pack is no split
  std::shared_ptr<Pack> pack;
  std::string directory;
  // All of the pack's files: the directory becomes a pack itself. Otherwise shards only, a cache.
  bool whole = false;
  std::vector<uint32_t> shards;  // that are wanted, ascending

  // What look() found.
  std::vector<uint32_t> missing;  // of the wanted shards
  bool is_pack = false;           // the directory holds the manifest of this very pack
  struct InTheWay {
    std::string name;
    std::string what;
    uint64_t bytes = 0;
  };
  std::vector<InTheWay> in_the_way;
  uint64_t wanted_bytes = 0;
  uint64_t there_bytes = 0;       // of wanted shards
  uint64_t unfinished_bytes = 0;  // in temporary files, of this run's making or another's
  uint64_t other_bytes = 0;       // of the files beside the shards, where they are to be copied

  uint64_t missing_bytes() const noexcept { return wanted_bytes - there_bytes; }
};

// The files of a pack beside shards and manifest that a copy gets, as far as they are there. The
// layout record is one of them although its stripes are not the copy's: the order of an epoch rests
// on it, and must be the same whether a rank opens the pack or its copy.
std::vector<std::string> stage_companions();

// Which shards of the packs are wanted, told by arithmetic alone: node i of n has each n-th shard,
// counted over all packs. With at_most_bytes, of those the first ones that fit.
void choose_shards(const StageRequest& request, std::vector<StageTask>& tasks);

// Fills what follows "What look() found". The directory need not be there.
Status look_at_place(StageTask& task);

struct StageRoom {
  uint64_t needed_bytes = 0;
  std::optional<uint64_t> free_bytes;
  QuotaLeft quota;
  bool fits() const noexcept;
};
// At DIRECTORY, or the first one above it that is there. What is in the way counts as gone.
StageRoom find_room(const std::string& directory, const std::vector<StageTask>& tasks);

// kInvalidArgument where DIRECTORY is the pack's, or lies within it.
Status refuse_place_in_pack(const std::string& pack, const std::string& directory);

}  // namespace spk
