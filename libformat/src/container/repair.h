// Mends a pack. Whatever of a damaged file can be told from the rest is written again exactly as it
// was: index, rejects.tsv and manifest.json from the shards' footers; footers, chunk headers,
// tables and padding from the index or the chunks. Only a sample's own bytes cannot be made up:
// they come from a second copy, or the sample is dropped where that is asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "container/shard_rewrite.h"
#include "container/verify.h"

namespace spk {

// How the reason of a reject begins that `drop_damaged` made. A sample is dropped because its bytes
// contradict their checksum, or are not there; never because the system would not let them be read.
inline constexpr std::string_view kDroppedByRepair = "damaged, dropped by repair";

struct RepairOptions {
  uint32_t threads = 1;
  uint64_t memory_bytes = uint64_t{512} << 20;
  std::string from;           // a second copy of the pack; empty: none
  bool drop_damaged = false;  // publish without the samples that are lost
};

struct RepairReport {
  enum class Outcome {
    kNothingToDo,  // no damage
    kRepaired,
    kRefused,  // samples would be lost: nothing was changed
  };
  Outcome outcome = Outcome::kNothingToDo;
  uint64_t damages = 0;            // found before
  std::vector<std::string> steps;  // what was done, in words, in order
  std::vector<LostSample> lost;    // dropped, or where refused: what would be
  uint64_t unknown_lost = 0;       // the same for samples of which not even the names are left
  uint64_t shards_rewritten = 0;
  uint64_t reject_lists_lost = 0;  // shards whose rejects neither footer nor rejects.tsv tell
  uint64_t blobs_from_copy = 0;
  uint64_t samples = 0;           // of the pack as it is now
  Hash128 content_id;             // likewise
  bool identity_changed = false;  // another content id than before
};

// New files are written beside the old ones, forced to disk and verified before any takes an old
// one's place. Where the content changes, the manifest is put aside first and written last, so that
// a pack whose repair was killed says that it is unfinished; the same call continues it. A Status
// means that the pack could not be examined or written; nothing is worse than before. kDenied, kIo
// or kNoMemory: a shard that would lose samples cannot be read now, though it may be whole.
Result<RepairReport> repair_pack(const std::string& path, const RepairOptions& options,
                                 const DamageSink& sink = {}, const VerifyHooks& hooks = {});

}  // namespace spk
