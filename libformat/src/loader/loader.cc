#include "loader/loader.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/hash.h"
#include "base/text.h"
#include "io/cache_memory.h"
#include "loader/class_warning.h"
#include "loader/target_map.h"

namespace spk {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kUsualRingBytes = 512 * kMiB;
constexpr uint32_t kLocalThreads = 8;
constexpr uint32_t kNetworkThreads = 16;
constexpr uint32_t kUringReadsAtOnce = 16;
// Planned beyond what is needed in one call of next(), so that no call takes long.
constexpr uint64_t kSamplesAheadACall = 8192;
constexpr uint64_t kMostNodeLoaders = 1024;

OrderSettings resolve_order(const LoaderOptions& options) {
  OrderSettings order = default_order(options.order, options.world);
  order.seed = options.seed;
  order.epoch = options.epoch;
  if (options.lanes != 0) {
    order.lanes = options.lanes;
    order.window = 1;
  }
  if (options.window != 0) order.window = options.window;
  return order;
}

}  // namespace

Result<std::unique_ptr<Loader>> Loader::open(std::shared_ptr<const Pack> pack,
                                             LoaderOptions options) {
  // Other orders go by samples, wherever their chunks lie.
  if (options.order == OrderKind::kShuffled && options.targets.empty() &&
      options.use_recorded_map) {
    SPK_ASSIGN(options.targets, current_targets(*pack));
  }
  LoaderState state;
  state.content_id = pack->content_id();
  state.map_digest = target_map_digest(options.targets);
  state.order = resolve_order(options);
  return make(std::move(pack), std::move(options), state);
}

Result<std::unique_ptr<Loader>> Loader::resume(std::shared_ptr<const Pack> pack,
                                               LoaderOptions options, const LoaderState& state) {
  if (state.content_id != pack->content_id()) {
    return Status(Code::kMismatch, str_cat("the loader state is of the pack with content id ",
                                           state.content_id.to_hex(), ", this one has ",
                                           pack->content_id().to_hex()))
        .at_path(pack->path())
        .with_hint("resume with the pack that the run began with, or begin a new run");
  }
  if (options.targets.empty() && options.use_recorded_map) {
    SPK_ASSIGN(options.targets, targets_of_digest(*pack, state.map_digest));
  }
  if (state.map_digest != target_map_digest(options.targets)) {
    return Status(Code::kMismatch, str_cat("the loader state is of the target map with digest ",
                                           to_hex(state.map_digest), ", at hand is ",
                                           to_hex(target_map_digest(options.targets))))
        .at_path(pack->path())
        .with_hint("give the target map that the run began with, or begin a new run");
  }
  if (state.consumed > pack->sample_count()) {
    return invalid_argument(str_cat("the loader state says that ", state.consumed,
                                    " samples were consumed, the pack has ", pack->sample_count()))
        .at_path(pack->path());
  }
  return make(std::move(pack), std::move(options), state);
}

Result<std::unique_ptr<Loader>> Loader::make(std::shared_ptr<const Pack> pack,
                                             LoaderOptions&& options, const LoaderState& state) {
  std::unique_ptr<Loader> loader(new Loader());
  loader->options_ = std::move(options);
  loader->state_ = state;
  loader->context_ = std::make_shared<UnitContext>();
  loader->context_->pack = std::move(pack);
  loader->context_->check = loader->options_.check_checksums;
  loader->rules_ = {loader->pack().sample_count(), loader->state_.order.lanes,
                    loader->options_.rank,         loader->options_.world,
                    loader->options_.batch,        loader->options_.tail};
  SPK_TRY(loader->rules_.check());
  if (loader->options_.workers == 0 || loader->options_.worker >= loader->options_.workers) {
    return invalid_argument(
        str_cat("there is no worker ", loader->options_.worker, " of ", loader->options_.workers));
  }
  SPK_TRY(loader->find_units());
  SPK_TRY(loader->choose_fields());
  SPK_TRY(loader->choose_engine());
  SPK_TRY(loader->begin(loader->state_.consumed));
  SPK_TRY(loader->size_ring());
  return loader;
}

Loader::~Loader() {
  // The threads of a parent are not here: neither can they be waited for, nor may what they hold be
  // freed.
  if (process_ != 0 && process_ != ::getpid()) {
    (void)pool_.release();
    (void)current_.planner.release();
    if (following_) (void)following_->planner.release();
  }
}

Status Loader::find_units() {
  const uint64_t chunks = pack().chunk_count();
  first_samples_.reserve(chunks + 1);
  for (uint64_t i = 0; i < chunks; ++i) {
    SPK_ASSIGN(const ChunkLocation chunk, pack().chunk(i));
    first_samples_.push_back(chunk.first_sample);
    largest_unit_bytes_ = std::max(largest_unit_bytes_, chunk.read_bytes);
    chunk_bytes_ += chunk.read_bytes;
  }
  first_samples_.push_back(pack().sample_count());
  return {};
}

Status Loader::choose_fields() {
  const std::vector<Field>& fields = pack().schema().fields;
  for (const std::string& name : options_.fields) {
    const bool there = std::any_of(fields.begin(), fields.end(),
                                   [&](const Field& field) { return field.name == name; });
    if (there) continue;
    std::string names;
    for (const Field& field : fields) names += str_cat(names.empty() ? "" : ", ", field.name);
    return Status(Code::kNotFound,
                  str_cat("the pack has no field '", escape_bytes(name), "'; there are ", names))
        .at_path(pack().path());
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool wanted = options_.fields.empty() ||
                        std::find(options_.fields.begin(), options_.fields.end(), fields[i].name) !=
                            options_.fields.end();
    if (!wanted) continue;
    auto& chosen =
        fields[i].kind == FieldKind::kBlob ? context_->blob_fields : context_->numeric_fields;
    chosen.push_back(static_cast<uint16_t>(i));
  }
  if (options_.check_checksums) {
    Xxh3Stream chosen_fields;
    for (const uint16_t field : context_->blob_fields) chosen_fields.update_u64(field);
    // Never 0, which is nothing.
    context_->check_key = chosen_fields.digest_64() | 1;
  }
  return {};
}

Status Loader::choose_engine() {
  ReadingWish wish;
  wish.engine = options_.engine;
  wish.direct = options_.direct;
  wish.epoch_bytes = chunk_bytes_;
  const std::string unshared = why_not_shared();
  wish.reads_each_once = state_.order.kind == OrderKind::kShuffled &&
                         (unshared.empty() || (rules_.own_lanes() && options_.workers == 1));
  wish.cache_bytes = options_.cache_bytes;
  SPK_ASSIGN(reading_, choose_reading(pack(), wish));
  const bool maps = reading_.engine == EngineChoice::kMmap;
  shares_ = unshared.empty() && !maps;
  if (options_.node_ranks != 0) {
    reading_.why += shares_ ? "; chunks are shared on the node"
                            : str_cat("; not shared: ", maps ? "files are mapped" : unshared);
  }
  const ShardAccess access = maps              ? ShardAccess::kMapping
                             : reading_.direct ? ShardAccess::kDirect
                                               : ShardAccess::kDescriptor;
  context_->direct = reading_.direct;
  context_->files =
      std::make_unique<ShardFiles>(pack().directory(), pack().shards(), pack().cache(), access);
  threads_ = options_.threads != 0 ? options_.threads
             : reading_.network    ? kNetworkThreads
                                   : kLocalThreads;
  if (maps) context_->populated = std::make_unique<std::atomic<bool>[]>(pack().chunk_count());
  const bool uring = reading_.engine == EngineChoice::kUring;
  SPK_ASSIGN(engine_,
             make_read_engine(uring ? EngineKind::kUring : EngineKind::kSync, 0, reading_.network));
  if (uring) {
    // Many reads in flight for each thread, which then checks what they brought.
    reads_at_once_ = kUringReadsAtOnce;
    if (options_.threads == 0) threads_ = 2;
    // Where there is no io_uring, threads do it.
    if (std::string_view(engine_->name()) != "uring") reading_.engine = EngineChoice::kPool;
  }
  return {};
}

// Every open window, and what a step needs where windows end within it; but no more than there is.
Status Loader::size_ring() {
  const OrderSettings& order = state_.order;
  const uint64_t unit = buffer_class_bytes(largest_unit_bytes_);
  uint64_t need = 2 * unit;
  uint64_t held = 0;  // by a batch that is given back only after the next one was asked for
  if (order.kind == OrderKind::kShuffled) {
    const uint64_t lanes = rules_.own_lanes()
                               ? order.lanes / rules_.world
                               : std::min<uint64_t>(order.lanes / rules_.world + 2, order.lanes);
    const uint64_t open = std::min(std::min<uint64_t>(lanes, rules_.sample_count) * order.window,
                                   pack().chunk_count());
    // A step within one row needs each lane once. Else all lanes may come to their next window in
    // one step, and samples of both windows are in one batch.
    const bool within_row = order.lanes % rules_.step_samples() == 0;
    const uint64_t more = within_row ? 1 : std::max<uint64_t>(std::min(open, rules_.batch), 1);
    context_->slot_bytes = std::min<uint64_t>(pack().identity().chunk_bytes(), unit);
    need = std::max(need, (open + more - 1) * context_->slot_bytes + unit);
    held = std::min(open, rules_.batch) * context_->slot_bytes;
  }
  if (options_.memory_bytes != 0 && options_.memory_bytes < need) {
    const bool windows = order.kind == OrderKind::kShuffled;
    const std::string what =
        windows ? str_cat(count_of(order.lanes, "lane"), " with windows of ",
                          count_of(order.window, "chunk"), " and batches of ", rules_.batch, " on ",
                          count_of(rules_.world, "rank"), " need ")
                : str_cat("two reads of up to ", format_size(unit), " need ");
    return invalid_argument(str_cat("a memory limit of ", format_size(options_.memory_bytes),
                                    " is too small: ", what, format_size(need)))
        .at_path(pack().path())
        .with_hint(windows ? "allow more memory, or use fewer lanes or a smaller window"
                           : "allow more memory");
  }
  const uint64_t limit = options_.memory_bytes != 0
                             ? options_.memory_bytes
                             : std::max(need + held + 2 * unit, kUsualRingBytes);
  context_->ring = std::make_shared<Ring>(limit);
  return {};
}

Result<Loader::EpochPlan> Loader::make_plan(uint64_t epoch, uint64_t consumed) {
  OrderSettings settings = state_.order;
  settings.epoch = epoch;
  const OrderUnits units{first_samples_, options_.targets};
  SPK_ASSIGN(EpochOrder order, EpochOrder::make(units, settings));
  EpochPlan plan;
  plan.planner = std::make_unique<StepPlanner>(
      context_, std::move(order), rules_, consumed, options_.worker, options_.workers,
      [this](std::shared_ptr<ReadUnit> unit) { pool_->submit(std::move(unit)); });
  return plan;
}

Status Loader::begin(uint64_t consumed) {
  SPK_ASSIGN(current_, make_plan(state_.order.epoch, consumed));
  stand_at(consumed);
  return {};
}

void Loader::stand_at(uint64_t consumed) {
  state_.consumed = consumed;
  step_count_ = rules_.steps_from(consumed);
}

Status Loader::check_process() {
  const pid_t here = ::getpid();
  if (process_ == 0) {
    process_ = here;
    if (shares_) join_node();
    pool_ = std::make_unique<UnitPool>(*engine_, threads_, reads_at_once_);
  }
  if (process_ == here) return {};
  return invalid_argument("this loader began to read before fork(), in the parent")
      .with_hint("make a new loader in the child, from state() where it should go on");
}

// Empty where several loaders of the node want the same chunks.
std::string Loader::why_not_shared() const {
  if (options_.node_ranks == 0) return "as asked";
  if (options_.node_ranks == 1 && options_.workers == 1) return "there is one loader";
  if (state_.order.kind != OrderKind::kShuffled) return "each sample is read by who is given it";
  if (rules_.own_lanes() && options_.workers == 1) return "each rank has lanes of its own";
  return {};
}

// Not before this process reads: it may be a child of the one that opened the loader.
void Loader::join_node() {
  SharedChunksOptions options;
  SegmentOptions& segment = options.segment;
  segment.content_id = pack().content_id();
  segment.name = shared_segment_name(segment.content_id, options_.node_group);
  segment.chunk_count = pack().chunk_count();
  segment.slot_bytes = round_up(
      std::min<uint64_t>(largest_unit_bytes_, pack().identity().chunk_bytes()), page_bytes());
  segment.members = static_cast<uint32_t>(std::min(
      options_.node_ranks * std::min(options_.workers, kMostNodeLoaders), kMostNodeLoaders));
  segment.limit_bytes =
      options_.node_memory_bytes != 0
          ? options_.node_memory_bytes
          : segment.members *
                std::min(context_->ring->limit_bytes(), cache_memory_bytes() / 2 / segment.members);
  segment.leaves_half = options_.node_memory_bytes == 0;
  auto joined = SharedChunks::join(options);
  if (joined.ok()) {
    context_->shared = std::move(*joined);
  } else {
    // Each reads by itself.
    reading_.why = str_cat(reading_.why.substr(0, reading_.why.find(';')),
                           "; not shared: ", joined.status().to_string());
  }
}

Status Loader::start_epoch(uint64_t epoch) {
  if (process_ != 0) SPK_TRY(check_process());
  const bool has_ended = current_.steps.empty() && current_.planner->at_end();
  epochs_follow_ = has_ended && epoch == state_.order.epoch + 1;
  state_.order.epoch = epoch;
  if (epochs_follow_ && following_) {
    current_ = *std::exchange(following_, std::nullopt);
    stand_at(0);
    return {};
  }
  following_.reset();
  if (pool_ != nullptr) pool_->clear();
  return begin(0);
}

Status Loader::plan_some(EpochPlan& plan) {
  uint64_t samples = 0;
  while (!plan.planner->at_end() && (plan.steps.empty() || samples < kSamplesAheadACall)) {
    PlannedStep step;
    SPK_ASSIGN(const bool whole, plan.planner->next(step));
    if (!whole) break;
    samples += step.samples.size();
    plan.steps.push_back(std::move(step));
  }
  return {};
}

Status Loader::plan_ahead() {
  SPK_TRY(plan_some(current_));
  if (epochs_follow_ && current_.planner->at_end()) plan_next_epoch();
  return {};
}

// With what room the rest of this epoch leaves. What goes wrong here will be told when that epoch
// is begun, if it is.
void Loader::plan_next_epoch() {
  if (!following_) {
    auto plan = make_plan(state_.order.epoch + 1, 0);
    if (plan.ok()) following_ = std::move(*plan);
  }
  if (following_ && !plan_some(*following_).ok()) {
    following_.reset();
    epochs_follow_ = false;
  }
}

Status Loader::explain_no_room() const {
  const Ring& ring = *context_->ring;
  const uint64_t batches = context_->live_batches;
  if (batches != 0) {
    return Status(Code::kBusy,
                  str_cat(count_of(batches, "batch that was", "batches that were"), " given out ",
                          batches == 1 ? "holds" : "hold", " what is missing of the ",
                          format_size(ring.limit_bytes()), " for buffers"))
        .with_hint(
            "release batches before asking for the next, copy what must live longer, or "
            "allow more memory");
  }
  return invalid_argument(
             str_cat("a memory limit of ", format_size(ring.limit_bytes()),
                     " is too small for one batch: ", format_size(ring.reserved_bytes()),
                     " are in use, ", format_size(current_.planner->wanted_bytes()),
                     " more are needed"))
      .at_path(pack().path())
      .with_hint("allow more memory, or make the batch smaller");
}

// Errors of the file system are tried again by the next call.
Status Loader::wait_for(const PlannedStep& step) {
  const std::shared_ptr<ReadUnit>* failed = nullptr;
  for (const auto& unit : step.units) {
    stats_.wait_ns += pool_->wait(*unit);
    if (failed == nullptr && !unit->status().ok()) failed = &unit;
  }
  if (failed == nullptr) return {};
  Status status = (*failed)->status();
  for (const auto& unit : step.units) {
    if (!unit->status().ok()) pool_->submit(unit);
  }
  return status;
}

Result<std::shared_ptr<const Batch>> Loader::next() {
  SPK_TRY(check_process());
  SPK_TRY(plan_ahead());
  std::shared_ptr<const Batch> batch;
  while (batch == nullptr) {
    if (current_.steps.empty()) {
      if (current_.planner->at_end()) return std::shared_ptr<const Batch>();
      // A thread may not have let go yet of what it has loaded.
      pool_->settle();
      SPK_TRY(plan_ahead());
      if (current_.steps.empty()) return explain_no_room();
    }
    PlannedStep& step = current_.steps.front();
    SPK_TRY(wait_for(step));
    uint64_t kept = 0;
    for (const PlannedSample& sample : step.samples) {
      const Status& status = step.units[sample.unit]->sample_status(sample.row);
      if (!status.ok() && !options_.skip_damaged) return status;
      if (status.ok()) step.samples[kept++] = sample;
    }
    stats_.skipped += step.samples.size() - kept;
    step.samples.resize(kept);
    state_.consumed = step.consumed_after;
    stats_.steps += 1;
    stats_.samples += kept;
    // With the tail rule `exact` a rank may have no sample in the last step, and then no batch.
    const bool has_batch = !step.units.empty();
    if (has_batch) {
      batch = std::make_shared<const Batch>(context_, std::move(step), rules_.sample_count);
    }
    current_.steps.pop_front();
    if (!has_batch && current_.steps.empty() && current_.planner->at_end()) return batch;
  }
  for (size_t i = 0; i < batch->size(); ++i) {
    stats_.repeated += batch->is_repeated(i) ? 1 : 0;
    for (size_t field = 0; field < batch->blob_fields().size(); ++field) {
      stats_.payload_bytes += batch->blob(i, field).size();
    }
  }
  SPK_TRY(plan_ahead());
  return batch;
}

const std::string& Loader::warning() const {
  if (!warning_) {
    warning_ = class_warning(pack(), first_samples_, state_.order, rules_.step_samples());
  }
  return *warning_;
}

LoaderStats Loader::stats() const {
  LoaderStats stats = stats_;
  stats.reads = context_->reads;
  stats.read_bytes = context_->read_bytes;
  stats.shared_reads = context_->shared_reads;
  stats.shared_hits = context_->shared_hits;
  stats.ring_limit_bytes = context_->ring->limit_bytes();
  stats.ring_peak_bytes = context_->ring->peak_bytes();
  return stats;
}

}  // namespace spk
