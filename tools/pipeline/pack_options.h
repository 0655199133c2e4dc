// What `stripepack pack` was asked to do. The command line fills it; plan, build and seal read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/part.h"
#include "pipeline/plans_file.h"
#include "pipeline/stripe_plan.h"
#include "pipeline/transform_options.h"

namespace spk {

enum class CheckMode { kNone, kStructure, kDecode };
enum class ShuffleMode { kAuto, kNone, kFull, kBlocks };  // kAuto: full; none for val/test splits
enum class LabelMode { kAuto, kInt, kFloat, kWords, kNone };
enum class SplitMode { kAuto, kNone };
enum class LabelFrom { kAuto, kKeyPrefix };  // kAuto: the prefix where every key has a slash
// What the numbers of an array stand for. kUnsaid: 8-bit integers are pixels, others are refused.
enum class ArrayScale { kUnsaid, kUnit, kByte, kWord };

struct PackOptions {
  std::string source;                     // SRC as typed
  std::string output;                     // OUT as typed
  std::vector<std::string> more_sources;  // packs that become one with the first

  // These shape bytes: they enter the plan id.
  std::string source_kind;   // empty: recognised; "folder", "manifest"
  std::string root;          // manifest: paths are relative to it; empty: the list's folder
  uint64_t chunk_bytes = 0;  // 0: chosen from the data
  uint64_t shard_bytes = 0;
  uint64_t shard_count = 0;
  uint64_t target_count = 0;  // storage targets, and
  uint64_t rank_count = 0;    // readers that shards are to be divided among; 0: not known
  uint64_t seed = 0;
  ShuffleMode shuffle = ShuffleMode::kAuto;
  CheckMode check = CheckMode::kStructure;
  uint64_t max_pixels = 178956970;  // a picture with more is rejected (2^31 / 12, as in Pillow)
  LabelMode labels = LabelMode::kAuto;
  SplitMode splits = SplitMode::kAuto;
  bool accept_any = false;                  // folder, list: every file is taken, whatever it is
  std::vector<std::string> side_fields;     // NAME=PATTERN: files beside those of a folder or list
  bool require_fields = false;              // a sample that lacks one of them is rejected
  std::string features;                     // which parts of a foreign sample are which fields
  std::string database;                     // LMDB: a named database; empty: the unnamed one
  LabelFrom label_from = LabelFrom::kAuto;  // LMDB of pictures: what the labels are
  std::string images_name;                  // HDF5: of the pictures; empty: found
  std::string labels_name;                  // HDF5: of the labels; empty: found
  std::string array_layout;                 // HDF5: "nhwc", "nchw" ...; empty: told by the shape
  ArrayScale array_scale = ArrayScale::kUnsaid;
  std::string join;                // a table of further fields or labels; empty: none
  std::string join_key;            // its column of keys; empty: the first
  std::string join_columns;        // as typed; empty: all
  std::string join_missing;        // "refuse" (so is empty), "absent", or a number
  bool join_ignore_extra = false;  // rows without a sample

  TransformOptions transform;  // of the pictures

  std::vector<std::string> select;  // packs: --select, as typed

  // These do not.
  uint32_t jobs = 0;        // CPU threads; 0: what affinity and cgroup allow
  uint32_t io_threads = 0;  // 0: chosen
  uint64_t memory_bytes = uint64_t{512} << 20;
  uint64_t max_rejects = 0;
  std::optional<uint64_t> expect;  // refuse unless the listing has this many samples
  bool salvage = false;            // of a cut source, take what is whole
  bool dry_run = false;
  bool force = false;
  bool restart = false;
  bool sha256 = false;
  std::optional<PackPart> part;          // build only what is this part's
  std::optional<uint64_t> wait_seconds;  // that parts wait for the plan of the first at most
  PackRequest request;                   // what shapes bytes, as typed: parts compare it
  StripeOptions stripes;                 // of the shards' files
  std::string report;                    // file for the JSON report; empty: none
};

}  // namespace spk
