// stripepack for C++17 and newer: owners of what stripepack.h hands out, and nothing more.
//
// Each call that can fail comes twice: one that throws stripepack::Error, and one whose last
// argument is an Error& that it fills instead, and which then yields an empty value. Where
// exceptions are off only the latter are there.
// Threads and lifetimes are as in stripepack.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stripepack/error.hpp"
#include "stripepack/stripepack.h"

namespace stripepack {

namespace detail {
struct ClosePack {
  void operator()(spk_pack* pack) const noexcept { spk_close(pack); }
};
struct CloseIter {
  void operator()(spk_iter* iter) const noexcept { spk_iter_close(iter); }
};
struct CloseLoader {
  void operator()(spk_loader* loader) const noexcept { spk_loader_close(loader); }
};
struct CloseBatch {
  void operator()(spk_batch* batch) const noexcept { spk_batch_close(batch); }
};
}  // namespace detail

// One after the other, the samples of one part of a pack.
class Iterator {
 public:
  Iterator() noexcept = default;
  // False at the end, and where ERROR is filled.
  bool next(Error& error) noexcept {
    const int code = spk_iter_next(iter_.get(), &sample_, error.fill());
    return code == SPK_OK;
  }
  std::uint64_t sample() const noexcept { return sample_; }
  // Valid until the next call of blob() or next().
  std::string_view blob(std::uint32_t field, Error& error) noexcept {
    const void* data = nullptr;
    std::uint64_t size = 0;
    if (spk_iter_blob(iter_.get(), field, &data, &size, error.fill()) != SPK_OK) return {};
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
  }
#if defined(__cpp_exceptions)
  bool next() {
    return detail::or_throw([&](Error& error) { return next(error); });
  }
  std::string_view blob(std::uint32_t field) {
    return detail::or_throw([&](Error& error) { return blob(field, error); });
  }
#endif

 private:
  friend class Pack;
  std::unique_ptr<spk_iter, detail::CloseIter> iter_;
  std::uint64_t sample_ = 0;
};

// What a rank is given in a step. May outlive its loader.
class Batch {
 public:
  Batch() noexcept = default;  // none: the epoch is at its end
  explicit operator bool() const noexcept { return batch_ != nullptr; }
  spk_batch* get() const noexcept { return batch_.get(); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(spk_batch_size(get())); }
  const std::uint64_t* samples() const noexcept { return spk_batch_samples(get()); }

  // Positions in the epoch's order.
  std::vector<std::uint64_t> positions(Error& error) const {
    std::vector<std::uint64_t> values(size());
    spk_batch_positions(get(), values.data(), nullptr, error.fill());
    return values;
  }
  // 1 for each sample that was given before, to fill the batch.
  std::vector<std::uint8_t> repeated(Error& error) const {
    std::vector<std::uint8_t> values(size());
    spk_batch_positions(get(), nullptr, values.data(), error.fill());
    return values;
  }
  // Not copied: valid as long as the batch. data() is null where a sample has no value.
  std::vector<std::string_view> blobs(std::uint32_t field, Error& error) const {
    std::vector<spk_span> spans(size());
    std::vector<std::string_view> blobs;
    if (spk_batch_blobs(get(), field, spans.data(), error.fill()) != SPK_OK) return blobs;
    blobs.reserve(spans.size());
    for (const spk_span& span : spans) {
      blobs.emplace_back(static_cast<const char*>(span.data), static_cast<std::size_t>(span.size));
    }
    return blobs;
  }
  // Of a field of fixed length, sample after sample.
  std::vector<std::int64_t> ints(std::uint32_t field, Error& error) const {
    std::vector<std::int64_t> values(room_for(field));
    if (spk_batch_ints(get(), field, values.data(), nullptr, error.fill()) != SPK_OK) return {};
    return values;
  }
  std::vector<double> floats(std::uint32_t field, Error& error) const {
    std::vector<double> values(room_for(field));
    if (spk_batch_floats(get(), field, values.data(), nullptr, error.fill()) != SPK_OK) return {};
    return values;
  }
#if defined(__cpp_exceptions)
  std::vector<std::uint64_t> positions() const {
    return detail::or_throw([&](Error& error) { return positions(error); });
  }
  std::vector<std::uint8_t> repeated() const {
    return detail::or_throw([&](Error& error) { return repeated(error); });
  }
  std::vector<std::string_view> blobs(std::uint32_t field) const {
    return detail::or_throw([&](Error& error) { return blobs(field, error); });
  }
  std::vector<std::int64_t> ints(std::uint32_t field) const {
    return detail::or_throw([&](Error& error) { return ints(field, error); });
  }
  std::vector<double> floats(std::uint32_t field) const {
    return detail::or_throw([&](Error& error) { return floats(field, error); });
  }
#endif

 private:
  friend class Loader;
  std::size_t room_for(std::uint32_t field) const noexcept {
    return lengths_ != nullptr && field < lengths_->size() ? size() * (*lengths_)[field] : 0;
  }

  std::unique_ptr<spk_batch, detail::CloseBatch> batch_;
  std::shared_ptr<const std::vector<std::uint32_t>> lengths_;  // of the pack's fields
};

// As spk_loader_options.
struct LoaderOptions {
  std::uint32_t order = SPK_ORDER_SHUFFLED;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  std::uint64_t batch = 32;
  std::uint32_t lanes = 0;
  std::uint32_t window = 0;
  std::uint32_t tail = SPK_TAIL_DROP;
  std::uint32_t engine = SPK_ENGINE_AUTO;
  std::uint64_t worker = 0;
  std::uint64_t workers = 1;
  std::uint64_t memory_bytes = 0;
  std::uint32_t threads = 0;
  std::uint32_t direct = SPK_DIRECT_AUTO;
  bool skip_checksums = false;
  bool skip_damaged = false;
  std::vector<std::string> fields;     // empty: all
  std::vector<std::uint32_t> targets;  // empty: by the recorded map
  bool use_recorded_map = true;        // where targets is empty
  std::string state;                   // empty: begin
  std::string node_group;
  std::uint64_t node_memory_bytes = 0;
  std::uint32_t node_ranks = 0;
};

// A rank's batches, epoch by epoch. The pack may go before it.
class Loader {
 public:
  Loader() noexcept = default;  // none
  explicit operator bool() const noexcept { return loader_ != nullptr; }
  spk_loader* get() const noexcept { return loader_.get(); }

  // The next batch; none at the end of the epoch, and where ERROR is filled.
  Batch next(Error& error) noexcept {
    spk_batch* given = nullptr;
    Batch batch;
    if (spk_loader_next(get(), &given, error.fill()) != SPK_OK) return batch;
    batch.batch_.reset(given);
    batch.lengths_ = lengths_;
    return batch;
  }
  void start_epoch(std::uint64_t epoch, Error& error) noexcept {
    spk_loader_start_epoch(get(), epoch, error.fill());
  }
  std::string state(Error& error) const {
    char text[512] = {};
    spk_loader_state(get(), text, sizeof text, error.fill());
    return text;
  }
  spk_loader_info info() const noexcept {
    spk_loader_info info{};
    info.struct_size = sizeof info;
    spk_loader_get_info(get(), &info, nullptr);
    return info;
  }
  // Why it reads as it does, and what people should be warned of (empty: nothing). Both live as
  // long as the loader.
  const char* reading() const noexcept { return spk_loader_reading(get()); }
  const char* warning() const noexcept { return spk_loader_warning(get()); }
#if defined(__cpp_exceptions)
  Batch next() {
    return detail::or_throw([&](Error& error) { return next(error); });
  }
  void start_epoch(std::uint64_t epoch) {
    detail::or_throw([&](Error& error) { start_epoch(epoch, error); });
  }
  std::string state() const {
    return detail::or_throw([&](Error& error) { return state(error); });
  }
#endif

 private:
  friend class Pack;
  std::unique_ptr<spk_loader, detail::CloseLoader> loader_;
  std::shared_ptr<const std::vector<std::uint32_t>> lengths_;
};

// As spk_open_options.
struct Options {
  std::uint32_t engine = SPK_ENGINE_AUTO;
  std::uint32_t threads = 0;
  bool skip_checksums = false;
  std::string cache{};  // empty: none

  // Lives no longer than these options.
  spk_open_options raw() const noexcept {
    return {sizeof(spk_open_options), engine, threads, skip_checksums ? 1u : 0u, cache.c_str()};
  }
};

class Pack {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  Pack() noexcept = default;  // none
  explicit operator bool() const noexcept { return pack_ != nullptr; }
  spk_pack* get() const noexcept { return pack_.get(); }

  static Pack open(const std::string& path, const Options& options, Error& error) noexcept {
    const spk_open_options raw = options.raw();
    spk_pack* opened = nullptr;
    Pack pack;
    if (spk_open(path.c_str(), &raw, &opened, error.fill()) != SPK_OK) return pack;
    pack.pack_.reset(opened);
    return pack;
  }
  // With the bytes of its index.spki at hand.
  static Pack open_index(const std::string& path, std::string_view index, const Options& options,
                         Error& error) noexcept {
    const spk_open_options raw = options.raw();
    spk_pack* opened = nullptr;
    Pack pack;
    if (spk_open_index(path.c_str(), index.data(), index.size(), &raw, &opened, error.fill()) !=
        SPK_OK) {
      return pack;
    }
    pack.pack_.reset(opened);
    return pack;
  }

  spk_info info() const noexcept {
    spk_info info{};
    info.struct_size = sizeof info;
    spk_get_info(get(), &info, nullptr);
    return info;
  }
  std::uint64_t size() const noexcept { return info().sample_count; }

  std::uint32_t field(const char* name, Error& error) const noexcept {
    std::uint32_t number = 0;
    spk_field_find(get(), name, &number, error.fill());
    return number;
  }
  std::string class_name(std::uint64_t number, Error& error) const {
    const char* name = nullptr;
    std::uint64_t size = 0;
    if (spk_class_name(get(), number, &name, &size, error.fill()) != SPK_OK) return {};
    return {name, static_cast<std::size_t>(size)};
  }
  std::string setting(const char* name, Error& error) const {
    const char* value = nullptr;
    std::uint64_t size = 0;
    if (spk_get_setting(get(), name, &value, &size, error.fill()) != SPK_OK) return {};
    return {value, static_cast<std::size_t>(size)};
  }
  std::string key(std::uint64_t sample, Error& error) const {
    std::string key(256, '\0');
    std::uint64_t size = 0;
    int code = spk_sample_key(get(), sample, key.data(), key.size(), &size, error.fill());
    if (code == SPK_INVALID_ARGUMENT && size >= key.size()) {
      key.resize(static_cast<std::size_t>(size) + 1);
      code = spk_sample_key(get(), sample, key.data(), key.size(), &size, error.fill());
    }
    key.resize(code == SPK_OK ? static_cast<std::size_t>(size) : 0);
    return key;
  }
  std::uint64_t find_key(std::string_view key, Error& error) const noexcept {
    std::uint64_t sample = 0;
    spk_find_key(get(), key.data(), key.size(), &sample, error.fill());
    return sample;
  }
  // Numbers of the samples in RANGE, of a field of fixed length.
  std::vector<std::int64_t> ints(std::uint32_t field, Range range, Error& error) const {
    std::vector<std::int64_t> values(room_for(field, range));
    const int code = spk_get_ints(get(), field, range.begin, range.end - range.begin, values.data(),
                                  nullptr, error.fill());
    if (code != SPK_OK) values.clear();
    return values;
  }
  std::vector<double> floats(std::uint32_t field, Range range, Error& error) const {
    std::vector<double> values(room_for(field, range));
    const int code = spk_get_floats(get(), field, range.begin, range.end - range.begin,
                                    values.data(), nullptr, error.fill());
    if (code != SPK_OK) values.clear();
    return values;
  }
  spk_extent locate(std::uint32_t field, std::uint64_t sample, Error& error) const noexcept {
    spk_extent extent{};
    spk_locate(get(), field, &sample, 1, &extent, error.fill());
    return extent;
  }
  std::vector<std::uint8_t> read(std::uint32_t field, std::uint64_t sample, Error& error) const {
    const spk_extent extent = locate(field, sample, error);
    if (error) return {};
    std::vector<std::uint8_t> blob(static_cast<std::size_t>(extent.size));
    const int code =
        spk_read(get(), field, sample, blob.data(), blob.size(), nullptr, error.fill());
    if (code != SPK_OK) blob.clear();
    return blob;
  }
  // SPK_PARTIAL fills ERROR, too; each item has its own code.
  void read_many(std::uint32_t field, std::vector<spk_read_item>& items,
                 Error& error) const noexcept {
    spk_read_many(get(), field, items.data(), items.size(), error.fill());
  }
  Range part(std::uint64_t rank, std::uint64_t world, Error& error) const noexcept {
    Range range;
    spk_part(get(), rank, world, &range.begin, &range.end, error.fill());
    return range;
  }
  // The pack must outlive it.
  Iterator iterate(std::uint64_t rank, std::uint64_t world, Error& error) const noexcept {
    spk_iter* opened = nullptr;
    Iterator iterator;
    if (spk_iter_open(get(), rank, world, &opened, error.fill()) == SPK_OK) {
      iterator.iter_.reset(opened);
    }
    return iterator;
  }
  // Empty where none are known. DIGEST: as spk_recorded_targets; "": the current map's.
  std::vector<std::uint32_t> recorded_targets(const std::string& digest, Error& error) const {
    std::vector<std::uint32_t> targets(info().chunk_count);
    std::uint64_t count = 0;
    spk_recorded_targets(get(), digest.c_str(), targets.data(), targets.size(), &count,
                         error.fill());
    targets.resize(count);
    return targets;
  }
  Loader load(const LoaderOptions& options, Error& error) const {
    std::vector<const char*> names;
    for (const std::string& name : options.fields) names.push_back(name.c_str());
    spk_loader_options raw{};
    raw.struct_size = sizeof raw;
    raw.order = options.order;
    raw.seed = options.seed;
    raw.epoch = options.epoch;
    raw.rank = options.rank;
    raw.world = options.world;
    raw.batch = options.batch;
    raw.lanes = options.lanes;
    raw.window = options.window;
    raw.tail = options.tail;
    raw.engine = options.engine;
    raw.worker = options.worker;
    raw.workers = options.workers;
    raw.memory_bytes = options.memory_bytes;
    raw.threads = options.threads;
    raw.direct = options.direct;
    raw.skip_checksums = options.skip_checksums ? 1 : 0;
    raw.skip_damaged = options.skip_damaged ? 1 : 0;
    raw.fields = names.empty() ? nullptr : names.data();
    raw.field_count = names.size();
    raw.targets = options.targets.empty() ? nullptr : options.targets.data();
    raw.target_count = options.targets.size();
    raw.state = options.state.empty() ? nullptr : options.state.c_str();
    raw.node_group = options.node_group.c_str();
    raw.node_memory_bytes = options.node_memory_bytes;
    raw.node_ranks = options.node_ranks;
    raw.no_recorded_map = options.use_recorded_map ? 0 : 1;
    spk_loader* opened = nullptr;
    Loader loader;
    if (spk_loader_open(get(), &raw, &opened, error.fill()) != SPK_OK) return loader;
    loader.loader_.reset(opened);
    auto lengths = std::make_shared<std::vector<std::uint32_t>>(info().field_count);
    for (std::uint32_t i = 0; i < lengths->size(); ++i) {
      spk_field field{};
      field.struct_size = sizeof field;
      if (spk_field_info(get(), i, &field, nullptr) == SPK_OK) (*lengths)[i] = field.length;
    }
    loader.lengths_ = std::move(lengths);
    return loader;
  }

#if defined(__cpp_exceptions)
  static Pack open(const std::string& path, const Options& options = Options()) {
    return detail::or_throw([&](Error& error) { return open(path, options, error); });
  }
  static Pack open_index(const std::string& path, std::string_view index,
                         const Options& options = Options()) {
    return detail::or_throw([&](Error& error) { return open_index(path, index, options, error); });
  }
  Loader load(const LoaderOptions& options = LoaderOptions()) const {
    return detail::or_throw([&](Error& error) { return load(options, error); });
  }
  std::uint32_t field(const char* name) const {
    return detail::or_throw([&](Error& error) { return field(name, error); });
  }
  std::string class_name(std::uint64_t number) const {
    return detail::or_throw([&](Error& error) { return class_name(number, error); });
  }
  std::string setting(const char* name) const {
    return detail::or_throw([&](Error& error) { return setting(name, error); });
  }
  std::string key(std::uint64_t sample) const {
    return detail::or_throw([&](Error& error) { return key(sample, error); });
  }
  std::uint64_t find_key(std::string_view wanted) const {
    return detail::or_throw([&](Error& error) { return find_key(wanted, error); });
  }
  std::vector<std::int64_t> ints(std::uint32_t field, Range range) const {
    return detail::or_throw([&](Error& error) { return ints(field, range, error); });
  }
  std::vector<double> floats(std::uint32_t field, Range range) const {
    return detail::or_throw([&](Error& error) { return floats(field, range, error); });
  }
  spk_extent locate(std::uint32_t field, std::uint64_t sample) const {
    return detail::or_throw([&](Error& error) { return locate(field, sample, error); });
  }
  std::vector<std::uint8_t> read(std::uint32_t field, std::uint64_t sample) const {
    return detail::or_throw([&](Error& error) { return read(field, sample, error); });
  }
  void read_many(std::uint32_t field, std::vector<spk_read_item>& items) const {
    detail::or_throw([&](Error& error) { read_many(field, items, error); });
  }
  Range part(std::uint64_t rank, std::uint64_t world) const {
    return detail::or_throw([&](Error& error) { return part(rank, world, error); });
  }
  Iterator iterate(std::uint64_t rank, std::uint64_t world) const {
    return detail::or_throw([&](Error& error) { return iterate(rank, world, error); });
  }
#endif

 private:
  // Numbers in RANGE. None where RANGE or the field is no good: the call that follows says so. More
  // than any vector holds where a hostile pack claims so many.
  std::size_t room_for(std::uint32_t field, Range range) const noexcept {
    spk_field known{};
    known.struct_size = sizeof known;
    if (range.end > size() || range.begin > range.end) return 0;
    if (spk_field_info(get(), field, &known, nullptr) != SPK_OK) return 0;
    const std::uint64_t samples = range.end - range.begin;
    if (known.length != 0 && samples > SIZE_MAX / 8 / known.length) return SIZE_MAX;
    return static_cast<std::size_t>(samples * known.length);
  }

  std::unique_ptr<spk_pack, detail::ClosePack> pack_;
};

}  // namespace stripepack
