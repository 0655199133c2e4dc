// Loaders and their batches.
#include "loader/loader.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "capi/guard.h"

using spk::guard;
using spk::invalid_argument;
using spk::need;
using spk::Status;

static_assert(sizeof(spk_loader_options) == 168);
static_assert(sizeof(spk_loader_info) == 152);
static_assert(sizeof(spk_span) == 16);
static_assert(static_cast<int>(spk::OrderKind::kShuffled) == SPK_ORDER_SHUFFLED);
static_assert(static_cast<int>(spk::OrderKind::kSequential) == SPK_ORDER_SEQUENTIAL);
static_assert(static_cast<int>(spk::OrderKind::kRandom) == SPK_ORDER_RANDOM);
static_assert(static_cast<int>(spk::DirectChoice::kAuto) == SPK_DIRECT_AUTO);
static_assert(static_cast<int>(spk::DirectChoice::kOn) == SPK_DIRECT_ON);
static_assert(static_cast<int>(spk::DirectChoice::kOff) == SPK_DIRECT_OFF);
static_assert(static_cast<int>(spk::EngineChoice::kPool) == SPK_ENGINE_POOL);
static_assert(static_cast<int>(spk::EngineChoice::kUring) == SPK_ENGINE_URING);
static_assert(static_cast<int>(spk::EngineChoice::kMmap) == SPK_ENGINE_MMAP);
static_assert(static_cast<int>(spk::TailRule::kDrop) == SPK_TAIL_DROP);
static_assert(static_cast<int>(spk::TailRule::kPad) == SPK_TAIL_PAD);
static_assert(static_cast<int>(spk::TailRule::kExact) == SPK_TAIL_EXACT);

struct spk_loader {
  std::unique_ptr<spk::Loader> loader;
};

struct spk_batch {
  std::shared_ptr<const spk::Batch> batch;
  std::shared_ptr<const spk::Pack> pack;
  std::vector<uint64_t> samples;
};

namespace {

spk::Result<spk::LoaderOptions> loader_options(const spk_loader_options& from,
                                               const spk::Pack& pack) {
  spk::LoaderOptions options;
  if (from.order > SPK_ORDER_RANDOM) {
    return invalid_argument(spk::str_cat("there is no order ", from.order));
  }
  if (from.tail > SPK_TAIL_EXACT) {
    return invalid_argument(spk::str_cat("there is no tail rule ", from.tail));
  }
  options.order = static_cast<spk::OrderKind>(from.order);
  options.tail = static_cast<spk::TailRule>(from.tail);
  SPK_ASSIGN(options.engine, spk::engine_choice(from.engine));
  options.seed = from.seed;
  options.epoch = from.epoch;
  options.rank = from.rank;
  options.world = from.world != 0 ? from.world : 1;
  if (from.batch != 0) options.batch = from.batch;
  options.lanes = from.lanes;
  options.window = from.window;
  options.worker = from.worker;
  options.workers = from.workers != 0 ? from.workers : 1;
  options.memory_bytes = from.memory_bytes;
  options.threads = from.threads;
  if (from.direct > SPK_DIRECT_OFF) {
    return invalid_argument(spk::str_cat("there is no choice of direct reads ", from.direct));
  }
  options.direct = static_cast<spk::DirectChoice>(from.direct);
  options.check_checksums = from.skip_checksums == 0;
  options.skip_damaged = from.skip_damaged != 0;
  for (uint64_t i = 0; from.fields != nullptr && i < from.field_count; ++i) {
    SPK_TRY(need(from.fields[i], "fields"));
    options.fields.emplace_back(from.fields[i]);
  }
  if (from.targets != nullptr) {
    // Before so many are read.
    if (from.target_count > pack.chunk_count()) {
      return invalid_argument(spk::str_cat("target_count is ", from.target_count,
                                           ", but the pack has ",
                                           spk::count_of(pack.chunk_count(), "chunk")));
    }
    options.targets.assign(from.targets, from.targets + from.target_count);
  }
  options.use_recorded_map = from.no_recorded_map == 0;
  options.node_ranks = from.node_ranks;
  options.node_memory_bytes = from.node_memory_bytes;
  if (from.node_group != nullptr) options.node_group = from.node_group;
  return options;
}

// The place of a field of the pack among those that the batch has, FIELDS.
spk::Result<size_t> place_of(const spk_batch& batch, const std::vector<uint16_t>& fields,
                             uint32_t field, const char* kind) {
  const auto at = std::find(fields.begin(), fields.end(), field);
  if (at != fields.end()) return static_cast<size_t>(at - fields.begin());
  const std::vector<spk::Field>& all = batch.pack->schema().fields;
  const std::string name =
      field < all.size() ? spk::str_cat("'", all[field].name, "'") : spk::str_cat(field);
  return invalid_argument(spk::str_cat("field ", name, " is not among the ", kind,
                                       " fields that the loader was asked for"));
}

double as_double(uint64_t bits, spk::FieldKind kind) {
  if (kind == spk::FieldKind::kFloat64) return std::bit_cast<double>(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

// Numbers of a field of fixed length, one sample after the other.
template <typename T, typename Convert>
Status copy_numbers(const spk_batch* batch, uint32_t field, bool want_ints, T* out,
                    uint8_t* present, const Convert& convert) {
  SPK_TRY(need(batch, "batch"));
  const spk::Batch& from = *batch->batch;
  SPK_ASSIGN(const size_t place, place_of(*batch, from.numeric_fields(), field, "numeric"));
  const spk::Field& schema = batch->pack->schema().fields[field];
  if ((schema.kind == spk::FieldKind::kInt64) != want_ints) {
    return invalid_argument(spk::str_cat("field '", schema.name, "' holds ",
                                         want_ints ? "floating-point numbers" : "integers"));
  }
  if (schema.length == 0) {
    return invalid_argument(
        spk::str_cat("field '", schema.name, "' has another number of values for each sample"));
  }
  if (from.size() == 0) return {};
  SPK_TRY(need(out, "out"));
  for (size_t i = 0; i < from.size(); ++i) {
    const std::span<const uint64_t> numbers = from.numbers(i, place);
    T* const to = out + i * schema.length;
    std::fill(to, to + schema.length, T{});
    for (size_t n = 0; n < numbers.size(); ++n) to[n] = convert(numbers[n], schema.kind);
    if (present != nullptr) present[i] = numbers.empty() ? 0 : 1;
  }
  return {};
}

}  // namespace

int32_t spk_loader_open(const spk_pack* pack, const spk_loader_options* options, spk_loader** out,
                        spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(out, "out"));
    spk_loader_options known = {};
    if (options != nullptr) {
      SPK_ASSIGN(known, spk::copy_in(options));
    }
    SPK_ASSIGN(const spk::LoaderOptions wanted, loader_options(known, *pack->pack));
    auto made = std::make_unique<spk_loader>();
    if (known.state != nullptr) {
      SPK_ASSIGN(const spk::LoaderState state, spk::LoaderState::parse(known.state));
      SPK_ASSIGN(made->loader, spk::Loader::resume(pack->pack, wanted, state));
    } else {
      SPK_ASSIGN(made->loader, spk::Loader::open(pack->pack, wanted));
    }
    *out = made.release();
    return {};
  });
}

int32_t spk_loader_next(spk_loader* loader, spk_batch** out, spk_error* err) noexcept {
  bool at_end = false;
  const int32_t code = guard(err, [&]() -> Status {
    SPK_TRY(need(loader, "loader"));
    SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const std::shared_ptr<const spk::Batch> batch, loader->loader->next());
    at_end = batch == nullptr;
    if (at_end) return {};
    auto made = std::make_unique<spk_batch>();
    made->batch = batch;
    made->pack = loader->loader->context().pack;
    made->samples.reserve(batch->size());
    for (size_t i = 0; i < batch->size(); ++i) made->samples.push_back(batch->sample(i));
    *out = made.release();
    return {};
  });
  return at_end ? SPK_END : code;
}

int32_t spk_loader_start_epoch(spk_loader* loader, uint64_t epoch, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(loader, "loader"));
    return loader->loader->start_epoch(epoch);
  });
}

int32_t spk_loader_state(const spk_loader* loader, char* buffer, uint64_t capacity,
                         spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(loader, "loader"));
    SPK_TRY(need(buffer, "buffer"));
    const std::string text = loader->loader->state().to_text();
    if (capacity <= text.size()) {
      return invalid_argument(spk::str_cat("room for ", capacity, " bytes, but the state takes ",
                                           text.size() + 1, " with its zero byte"));
    }
    std::memcpy(buffer, text.c_str(), text.size() + 1);
    return {};
  });
}

int32_t spk_loader_get_info(const spk_loader* loader, spk_loader_info* out,
                            spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(loader, "loader"));
    const spk::Loader& from = *loader->loader;
    const spk::LoaderStats stats = from.stats();
    spk_loader_info info = {};
    info.order = static_cast<uint32_t>(from.order().kind);
    info.lanes = from.order().lanes;
    info.window = from.order().window;
    info.seed = from.order().seed;
    info.epoch = from.order().epoch;
    info.consumed = from.state().consumed;
    info.step_count = from.step_count();
    info.steps = stats.steps;
    info.samples = stats.samples;
    info.payload_bytes = stats.payload_bytes;
    info.repeated = stats.repeated;
    info.skipped = stats.skipped;
    info.reads = stats.reads;
    info.read_bytes = stats.read_bytes;
    info.wait_ns = stats.wait_ns;
    info.memory_limit_bytes = stats.ring_limit_bytes;
    info.memory_peak_bytes = stats.ring_peak_bytes;
    info.engine = static_cast<uint32_t>(from.reading().engine);
    info.direct = from.reading().direct ? 1 : 0;
    info.shared_reads = stats.shared_reads;
    info.shared_hits = stats.shared_hits;
    return spk::copy_out(info, out, sizeof(spk_loader_info));
  });
}

const char* spk_loader_reading(const spk_loader* loader) noexcept {
  return loader != nullptr ? loader->loader->reading().why.c_str() : "";
}

const char* spk_loader_warning(spk_loader* loader) noexcept {
  const char* text = "";
  (void)guard(nullptr, [&]() -> Status {
    if (loader != nullptr) text = loader->loader->warning().c_str();
    return {};
  });
  return text;
}

void spk_loader_close(spk_loader* loader) noexcept { delete loader; }

uint64_t spk_batch_size(const spk_batch* batch) noexcept {
  return batch != nullptr ? batch->samples.size() : 0;
}

const uint64_t* spk_batch_samples(const spk_batch* batch) noexcept {
  return batch != nullptr ? batch->samples.data() : nullptr;
}

int32_t spk_batch_positions(const spk_batch* batch, uint64_t* positions, uint8_t* repeated,
                            spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(batch, "batch"));
    for (size_t i = 0; i < batch->samples.size(); ++i) {
      if (positions != nullptr) positions[i] = batch->batch->position(i);
      if (repeated != nullptr) repeated[i] = batch->batch->is_repeated(i) ? 1 : 0;
    }
    return {};
  });
}

int32_t spk_batch_blobs(const spk_batch* batch, uint32_t field, spk_span* out,
                        spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(batch, "batch"));
    const spk::Batch& from = *batch->batch;
    SPK_ASSIGN(const size_t place, place_of(*batch, from.blob_fields(), field, "blob"));
    if (from.size() > 0) SPK_TRY(need(out, "out"));
    for (size_t i = 0; i < from.size(); ++i) {
      const spk::ByteSpan blob = from.blob(i, place);
      out[i] = {blob.data(), blob.size()};
    }
    return {};
  });
}

int32_t spk_batch_copy(const spk_batch* batch, uint32_t field, void* buffer, uint64_t capacity,
                       uint64_t* offsets, uint64_t* size, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(batch, "batch"));
    SPK_TRY(need(size, "size"));
    const spk::Batch& from = *batch->batch;
    SPK_ASSIGN(const size_t place, place_of(*batch, from.blob_fields(), field, "blob"));
    uint64_t total = 0;
    for (size_t i = 0; i < from.size(); ++i) total += from.blob(i, place).size();
    *size = total;
    if (total > capacity) {
      return invalid_argument(
          spk::str_cat("room for ", capacity, " bytes, but the batch has ", total));
    }
    SPK_TRY(need(offsets, "offsets"));
    if (total > 0) SPK_TRY(need(buffer, "buffer"));
    uint64_t at = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const spk::ByteSpan blob = from.blob(i, place);
      offsets[i] = at;
      if (!blob.empty()) std::memcpy(static_cast<uint8_t*>(buffer) + at, blob.data(), blob.size());
      at += blob.size();
    }
    offsets[from.size()] = at;
    return {};
  });
}

int32_t spk_batch_ints(const spk_batch* batch, uint32_t field, int64_t* out, uint8_t* present,
                       spk_error* err) noexcept {
  return guard(err, [&] {
    return copy_numbers(batch, field, true, out, present,
                        [](uint64_t bits, spk::FieldKind) { return static_cast<int64_t>(bits); });
  });
}

int32_t spk_batch_floats(const spk_batch* batch, uint32_t field, double* out, uint8_t* present,
                         spk_error* err) noexcept {
  return guard(err, [&] { return copy_numbers(batch, field, false, out, present, as_double); });
}

void spk_batch_close(spk_batch* batch) noexcept { delete batch; }
