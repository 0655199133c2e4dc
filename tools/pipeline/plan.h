// The plan of one pack: every sample in storage order, dealt to shards, and all that shapes bytes.
// Lies in OUT.partial/<split>/plan.spkp; a resumed run, and each part of a job, reads only its
// shards' slices of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "layout/geometry.h"
#include "sources/source.h"

namespace spk {

// Everything about a planned pack except its samples.
struct PlanInfo {
  Hash128 plan_id;    // format version + listing (keys, sizes, labels, in ordinal order) + settings
  std::string split;  // "" where there are none
  uint64_t sample_count = 0;
  uint64_t total_bytes = 0;
  uint64_t max_sample_bytes = 0;
  Geometry geometry;
  bool shuffled = false;  // chunks are then filled from a look-ahead window
  LabelKind label_kind = LabelKind::kNone;
  uint32_t label_count = 1;
  std::vector<std::string> classes;
  std::vector<SourceBlob> blobs;  // as in Listing
  std::vector<Field> numbers;
  // Resolved settings that shape bytes, in a fixed order ("chunk_bytes" -> "4194304", ...). Stored
  // in every shard, shown by `info`, compared one by one when a rerun differs.
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<uint64_t> class_counts;  // samples a class, where labels index `classes`
  uint64_t listed_rejects = 0;         // entries whose `reject` is set
};

// Streams the entries of one shard in storage order.
class PlanCursor {
 public:
  virtual ~PlanCursor() = default;
  // False at the end of the shard.
  virtual Result<bool> next(SampleEntry* entry) = 0;
};

class Plan {
 public:
  // kDamaged where the file is not whole.
  static Result<std::unique_ptr<Plan>> load(const std::string& path);
  virtual ~Plan() = default;
  virtual const PlanInfo& info() const = 0;
  // Thread-safe; each cursor has its own file position.
  virtual Result<std::unique_ptr<PlanCursor>> shard(uint32_t shard) const = 0;
};

struct PlannedSplit {
  std::string path;  // of the plan file; empty in a dry run
  PlanInfo info;
};

struct PlanResult {
  Listing listing;
  std::vector<PlannedSplit> splits;
};

// Lists the source and writes one plan a split below `directory` (which exists), as
// directory/<split>/plan.spkp, each written to a temporary name, fsynced and renamed. Uses at most
// options.memory_bytes / 2, spilling sorted runs into `directory`/sort.* and removing them. With an
// empty `directory` nothing is written: infos are computed (plan_id is zero then). kCancelled soon
// after `cancel`, where given, became true.
Result<PlanResult> make_plan(const PackOptions& options, Source& source,
                             const std::string& directory,
                             const std::atomic<bool>* cancel = nullptr);

// In words, what differs between the plan that a run left behind and the one of now: settings
// first ("seed: 1 before, 2 now"), then the source (samples added, removed, changed in size, label
// or mtime, with up to five names each). Empty where the plans are equal.
Result<std::string> describe_plan_difference(const std::string& old_plan_path,
                                             const std::string& new_plan_path);

}  // namespace spk
