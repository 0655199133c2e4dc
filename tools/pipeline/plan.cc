#include "pipeline/plan.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "io/directory.h"
#include "layout/block_order.h"
#include "layout/permutation.h"
#include "pipeline/entry_codec.h"
#include "pipeline/external_sort.h"
#include "pipeline/plan_file.h"
#include "pipeline/plan_settings.h"
#include "pipeline/repeat_finder.h"

namespace spk {

namespace {

constexpr char kPlanName[] = "plan.spkp";
constexpr uint64_t kLeastMemoryBytes = uint64_t{16} << 20;

struct SplitTotals {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t max_bytes = 0;
  uint64_t rejects = 0;
  uint64_t labelled = 0;
  std::vector<uint64_t> class_counts;
};

// Makes one plan of each split. Memory, of options.memory_bytes / 2: at any time two sorters live,
// each with three eighths; the rest is for class names, counts and the source's own needs.
class Planner {
 public:
  Planner(const PackOptions& options, Source& source, const std::string& directory,
          const std::atomic<bool>* cancel)
      : options_(options),
        source_(source),
        directory_(directory),
        cancel_(cancel),
        sorter_bytes_(options.memory_bytes / 2 / 8 * 3),
        entries_(directory, sorter_bytes_),
        repeats_(directory, sorter_bytes_) {}

  Result<PlanResult> run() {
    if (options_.memory_bytes < kLeastMemoryBytes) {
      return invalid_argument(str_cat("--memory ", format_size(options_.memory_bytes),
                                      " is too little; give at least ",
                                      format_size(kLeastMemoryBytes)));
    }
    SPK_ASSIGN(result_.listing, source_.list(options_, [this](SampleEntry&& entry) {
      return take(std::move(entry));
    }));
    SPK_TRY(check_totals());
    for (uint32_t split = 0; split < totals_.size(); ++split) {
      SPK_ASSIGN(PlanInfo info, make_info(split));
      result_.splits.push_back({"", std::move(info)});
    }
    if (!directory_.empty()) SPK_TRY(write_plans());
    return std::move(result_);
  }

 private:
  Status check_cancel() const {
    if (cancel_ == nullptr || !cancel_->load(std::memory_order_relaxed)) return {};
    return Status(Code::kCancelled, "stopped");
  }
  Status take(SampleEntry&& entry);
  Status size_unless_known(SampleEntry* entry) const;
  Status count(const SampleEntry& entry);
  Status check_totals();
  Result<PlanInfo> make_info(uint32_t split) const;
  Status write_plans();
  Status make_block_orders();
  Status write_split(uint32_t split, ExternalSorter::Stream& stream);
  Status write_in_order(ExternalSorter& sorter, PlanFileWriter& writer) const;
  Result<bool> next_entry(ExternalSorter::Stream& stream, SampleEntry* entry) const;

  ShuffleMode shuffle_of(uint32_t split) const {
    return resolved_shuffle(options_.shuffle, result_.listing.splits[split]);
  }

  const PackOptions& options_;
  Source& source_;
  std::string directory_;
  const std::atomic<bool>* cancel_;
  uint64_t sorter_bytes_;

  std::mutex mutex_;        // guards the next three while the source lists
  ExternalSorter entries_;  // by split, then by key, or by ordinal where the list has an order
  RepeatFinder repeats_;    // used where the list has an order
  std::vector<SplitTotals> totals_;

  RepeatFinder::Examples examples_;
  std::vector<std::optional<BlockOrder>> block_orders_;
  PlanResult result_;
};

Status Planner::size_unless_known(SampleEntry* entry) const {
  if (entry->size_bytes != kUnknownSize || !entry->reject.empty()) return {};
  auto handle = source_.open(*entry);
  if (handle.ok()) {
    entry->size_bytes = (*handle)->size_bytes();
    return {};
  }
  if (handle.status().code() != Code::kNotFound && handle.status().code() != Code::kDenied) {
    return std::move(handle).status();
  }
  entry->reject = handle.status().code() == Code::kNotFound ? "not found" : "permission denied";
  return {};
}

Status Planner::count(const SampleEntry& entry) {
  if (entry.split >= totals_.size()) totals_.resize(entry.split + 1);
  SplitTotals& totals = totals_[entry.split];
  ++totals.samples;
  if (!entry.int_labels.empty() || !entry.float_labels.empty()) ++totals.labelled;
  if (!entry.reject.empty()) {
    ++totals.rejects;
    return {};
  }
  if (!checked_add(totals.bytes, entry.size_bytes, &totals.bytes)) {
    return invalid_argument("the sizes of the samples add up to more than 2^64 bytes")
        .at_path(entry.key);
  }
  totals.max_bytes = std::max(totals.max_bytes, entry.size_bytes);
  if (entry.int_labels.size() == 1 && entry.int_labels[0] >= 0 &&
      entry.int_labels[0] < static_cast<int64_t>(kMostClasses)) {
    const auto label = static_cast<size_t>(entry.int_labels[0]);
    if (label >= totals.class_counts.size()) totals.class_counts.resize(label + 1);
    ++totals.class_counts[label];
  }
  return {};
}

Status Planner::take(SampleEntry&& entry) {
  SPK_TRY(check_cancel());
  SPK_TRY(size_unless_known(&entry));
  const bool ordered = source_.lists_in_order();
  thread_local std::string key, payload;
  key.clear();
  payload.clear();
  if (!directory_.empty()) {
    append_be32(key, entry.split);
    if (ordered) {
      append_be64(key, entry.ordinal);
      append_entry(payload, entry);
    } else {
      key += entry.key;
      append_entry_without_key(payload, entry);
    }
  }
  const std::lock_guard lock(mutex_);
  SPK_TRY(count(entry));
  if (directory_.empty()) return {};
  if (ordered) SPK_TRY(repeats_.add(entry));
  return entries_.add(as_bytes(key), as_bytes(payload));
}

Status Planner::check_totals() {
  Listing& listing = result_.listing;
  if (listing.ordered != source_.lists_in_order() || listing.splits.size() < totals_.size()) {
    return internal_error("the source contradicts its own listing");
  }
  totals_.resize(listing.splits.size());
  uint64_t samples = 0;
  for (const SplitTotals& totals : totals_) samples += totals.samples;
  uint64_t ignored = 0;
  std::string reasons;
  for (const auto& [reason, number] : listing.ignored) {
    ignored += number;
    reasons += str_cat(reasons.empty() ? "" : ", ", number, " ", reason);
  }
  const bool unselected = listing.ignored.size() == 1 && listing.ignored.contains("not selected");
  if (samples == 0) {
    std::string message =
        unselected ? "nothing to pack: no sample is selected" : "nothing to pack: no picture found";
    if (ignored != 0) message += str_cat(" (left out: ", reasons, ")");
    return invalid_argument(std::move(message)).at_path(options_.source);
  }
  if (options_.expect && *options_.expect != samples) {
    return Status(Code::kMismatch, str_cat("found ", count_of(samples, "sample"),
                                           ", but --expect says ", *options_.expect))
        .at_path(options_.source);
  }
  for (size_t split = 0; split < totals_.size(); ++split) {
    if (totals_[split].samples != 0) continue;
    const std::string name = escape_bytes(listing.splits[split]);
    if (unselected) {
      return invalid_argument(str_cat("nothing is selected in split '", name, "'"))
          .at_path(options_.source)
          .with_hint("name the splits that are wanted as SOURCE/SPLIT, or use --splits none");
    }
    return invalid_argument(str_cat("nothing to pack in split '", name, "': no picture found"))
        .at_path(options_.source)
        .with_hint("take the folder away, or use --splits none");
  }
  return {};
}

Result<PlanInfo> Planner::make_info(uint32_t split) const {
  const Listing& listing = result_.listing;
  const SplitTotals& totals = totals_[split];
  PlanInfo info;
  info.split = listing.splits[split];
  info.sample_count = totals.samples;
  info.total_bytes = totals.bytes;
  info.max_sample_bytes = totals.max_bytes;
  GeometryRequest request;
  request.sample_count = totals.samples;
  request.total_bytes = estimated_total_bytes(options_, totals.samples, totals.bytes);
  request.chunk_bytes = options_.chunk_bytes;
  request.shard_bytes = options_.shard_bytes;
  request.shard_count = options_.shard_count;
  request.target_count = options_.target_count;
  request.rank_count = options_.rank_count;
  SPK_ASSIGN(info.geometry, resolve_geometry(request));
  info.shuffled = shuffle_of(split) != ShuffleMode::kNone;
  info.label_kind = totals.labelled != 0 ? listing.label_kind : LabelKind::kNone;
  info.label_count = listing.label_count;
  info.classes = listing.classes;
  info.blobs = listing.blobs;
  info.numbers = listing.numbers;
  SPK_TRY(set_transformed_contents(options_, &info.blobs));
  info.listed_rejects = totals.rejects;
  if (!listing.classes.empty()) {
    info.class_counts = totals.class_counts;
    info.class_counts.resize(listing.classes.size());
  }
  resolve_settings(options_, listing, &info);
  return info;
}

Result<bool> Planner::next_entry(ExternalSorter::Stream& stream, SampleEntry* entry) const {
  SPK_TRY(check_cancel());
  ByteSpan key, payload;
  SPK_ASSIGN(const bool more, stream.next(&key, &payload));
  if (!more) return false;
  if (result_.listing.ordered) {
    SPK_TRY(take_entry(&payload, entry));
  } else {
    SPK_TRY(take_entry_without_key(&payload, as_text(key.subspan(4)), entry));
  }
  return true;
}

Status Planner::make_block_orders() {
  block_orders_.resize(totals_.size());
  bool any = false;
  for (uint32_t split = 0; split < totals_.size(); ++split) {
    if (shuffle_of(split) == ShuffleMode::kBlocks) any = true;
  }
  if (!any) return {};
  SPK_ASSIGN(const auto stream, entries_.read());
  SampleEntry entry;
  for (uint32_t split = 0; split < totals_.size(); ++split) {
    BlockOrder order;
    for (uint64_t left = totals_[split].samples; left != 0; --left) {
      SPK_ASSIGN(const bool more, next_entry(*stream, &entry));
      if (!more) return internal_error("the sorted listing ends early");
      order.add(entry.size_bytes == kUnknownSize ? 0 : entry.size_bytes);
    }
    if (shuffle_of(split) != ShuffleMode::kBlocks) continue;
    order.finish(options_.seed, xxh3_64(as_bytes(result_.listing.splits[split])));
    block_orders_[split] = std::move(order);
  }
  return {};
}

Status Planner::write_in_order(ExternalSorter& sorter, PlanFileWriter& writer) const {
  SPK_TRY(sorter.finish());
  SPK_ASSIGN(const auto stream, sorter.read());
  for (;;) {
    SPK_TRY(check_cancel());
    ByteSpan key, record;
    SPK_ASSIGN(const bool more, stream->next(&key, &record));
    if (!more) return {};
    SPK_TRY(writer.add(record));
  }
}

Status Planner::write_split(uint32_t split, ExternalSorter::Stream& stream) {
  PlannedSplit& planned = result_.splits[split];
  const PlanInfo& info = planned.info;
  SPK_ASSIGN(Directory directory, Directory::open(directory_));
  if (!info.split.empty()) {
    Result<Directory> made = Directory::create_at(directory, info.split);
    if (!made.ok() && made.status().code() == Code::kExists) {
      made = Directory::open_at(directory, info.split);
    }
    SPK_ASSIGN(directory, std::move(made));
  }
  SPK_ASSIGN(PlanFileWriter writer, PlanFileWriter::create(directory, info));

  const KeyedPermutation permutation(options_.seed, xxh3_64(as_bytes(info.split)),
                                     info.sample_count);
  std::optional<BlockOrder::Cursor> blocks;
  if (block_orders_[split]) blocks.emplace(*block_orders_[split]);
  ExternalSorter by_position(directory_, sorter_bytes_);
  ListingHash listing_hash;
  SampleEntry entry;
  std::string record, position, last_key;
  for (uint64_t ordinal = 0; ordinal < info.sample_count; ++ordinal) {
    SPK_ASSIGN(const bool more, next_entry(stream, &entry));
    if (!more) return internal_error("the sorted listing ends early");
    if (!result_.listing.ordered && ordinal != 0 && entry.key == last_key) {
      return Status(Code::kMismatch, "listed twice under one name; it seems to change meanwhile")
          .at_path(escape_bytes(entry.key))
          .with_hint("run again once nothing is written to the source");
    }
    if (const auto found = examples_.find({split, entry.ordinal}); found != examples_.end()) {
      result_.listing.warnings.add(found->second, escape_bytes(entry.key));
    }
    entry.ordinal = ordinal;
    listing_hash.add(entry);
    record.clear();
    append_entry(record, entry);
    if (info.shuffled) {
      position.clear();
      append_be64(position, blocks ? blocks->next() : permutation(ordinal));
      SPK_TRY(by_position.add(as_bytes(position), as_bytes(record)));
    } else {
      SPK_TRY(writer.add(as_bytes(record)));
    }
    last_key.swap(entry.key);
  }
  if (info.shuffled) SPK_TRY(write_in_order(by_position, writer));
  planned.info.plan_id = compute_plan_id(info, listing_hash.digest());
  SPK_TRY(writer.finish(planned.info.plan_id, kPlanName));
  planned.path = directory.path_of(kPlanName);
  return {};
}

Status Planner::write_plans() {
  SPK_TRY(entries_.finish());
  if (result_.listing.ordered) {
    SPK_ASSIGN(examples_, repeats_.finish(&result_.listing.warnings));
    repeats_ = RepeatFinder(directory_, 0);  // frees its memory
  }
  SPK_TRY(make_block_orders());
  SPK_ASSIGN(const auto stream, entries_.read());
  for (uint32_t split = 0; split < totals_.size(); ++split) SPK_TRY(write_split(split, *stream));
  return {};
}

}  // namespace

Result<PlanResult> make_plan(const PackOptions& options, Source& source,
                             const std::string& directory, const std::atomic<bool>* cancel) {
  return Planner(options, source, directory, cancel).run();
}

}  // namespace spk
