// Samples: keys, numbers, places, bytes.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/text.h"
#include "capi/guard.h"
#include "container/layout_record.h"
#include "loader/target_map.h"

using spk::guard;
using spk::invalid_argument;
using spk::need;
using spk::Status;

static_assert(sizeof(spk_extent) == 32);
static_assert(sizeof(spk_read_item) == 40);

namespace {

spk::MutableByteSpan bytes_of(void* buffer, uint64_t capacity) {
  return {static_cast<uint8_t*>(buffer), capacity};
}

// The numbers of one sample, copied to the caller.
template <typename T>
Status copy_sample_numbers(spk::Result<std::vector<T>> numbers, T* out, uint64_t capacity,
                           uint64_t* count) {
  SPK_TRY(numbers.status());
  SPK_TRY(need(count, "count"));
  *count = numbers->size();
  if (numbers->empty()) return {};
  if (numbers->size() > capacity) {
    return invalid_argument(
        spk::str_cat("room for ", capacity, " numbers, but the sample has ", numbers->size()));
  }
  SPK_TRY(need(out, "out"));
  std::memcpy(out, numbers->data(), numbers->size() * sizeof(T));
  return {};
}

}  // namespace

int32_t spk_sample_key(const spk_pack* pack, uint64_t sample, char* buffer, uint64_t capacity,
                       uint64_t* size, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_ASSIGN(const std::string key, pack->pack->key(sample));
    if (size != nullptr) *size = key.size();
    if (capacity <= key.size()) {
      return invalid_argument(spk::str_cat("room for ", capacity, " bytes, but the key takes ",
                                           key.size() + 1, " with its zero byte"));
    }
    SPK_TRY(need(buffer, "buffer"));
    std::memcpy(buffer, key.c_str(), key.size() + 1);
    return {};
  });
}

int32_t spk_find_key(const spk_pack* pack, const char* key, uint64_t size, uint64_t* sample,
                     spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(key, "key"));
    SPK_TRY(need(sample, "sample"));
    SPK_ASSIGN(*sample, pack->pack->find_key({key, size}));
    return {};
  });
}

int32_t spk_get_ints(const spk_pack* pack, uint32_t field, uint64_t begin, uint64_t count,
                     int64_t* out, uint8_t* present, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    if (count != 0) SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    return pack->pack->copy_ints(number, begin, count, out, present);
  });
}

int32_t spk_get_floats(const spk_pack* pack, uint32_t field, uint64_t begin, uint64_t count,
                       double* out, uint8_t* present, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    if (count != 0) SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    return pack->pack->copy_floats(number, begin, count, out, present);
  });
}

int32_t spk_get_sample_ints(const spk_pack* pack, uint32_t field, uint64_t sample, int64_t* out,
                            uint64_t capacity, uint64_t* count, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    return copy_sample_numbers(pack->pack->ints(sample, number), out, capacity, count);
  });
}

int32_t spk_get_sample_floats(const spk_pack* pack, uint32_t field, uint64_t sample, double* out,
                              uint64_t capacity, uint64_t* count, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    return copy_sample_numbers(pack->pack->floats(sample, number), out, capacity, count);
  });
}

int32_t spk_locate(const spk_pack* pack, uint32_t field, const uint64_t* samples, uint64_t count,
                   spk_extent* out, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    if (count == 0) return {};
    SPK_TRY(need(samples, "samples"));
    SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    for (uint64_t i = 0; i < count; ++i) {
      SPK_ASSIGN(const spk::SampleLocation location, pack->pack->locate(samples[i], number));
      out[i] = {};
      if (!location.present) continue;
      out[i] = {location.shard, 1, location.offset, location.bytes, location.checksum};
    }
    return {};
  });
}

int32_t spk_recorded_targets(const spk_pack* pack, const char* digest, uint32_t* out,
                             uint64_t capacity, uint64_t* count, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(count, "count"));
    *count = 0;
    std::vector<uint32_t> targets;
    if (digest == nullptr || *digest == 0) {
      SPK_ASSIGN(targets, spk::current_targets(*pack->pack));
    } else {
      SPK_ASSIGN(const uint64_t number, spk::parse_map_digest(digest));
      SPK_ASSIGN(targets, spk::targets_of_digest(*pack->pack, number));
    }
    *count = targets.size();
    if (targets.empty() || capacity == 0) return {};
    if (targets.size() > capacity) {
      return invalid_argument(
          spk::str_cat("room for ", capacity, " targets, but the pack has ", targets.size()));
    }
    SPK_TRY(need(out, "out"));
    std::copy(targets.begin(), targets.end(), out);
    return {};
  });
}

int32_t spk_shard_name(const spk_pack* pack, uint32_t shard, char* buffer, uint64_t capacity,
                       spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(buffer, "buffer"));
    if (shard >= pack->pack->shards().size()) {
      return invalid_argument(spk::str_cat("shard ", shard, " of ", pack->pack->shards().size()));
    }
    const std::string name = spk::shard_file_name(shard);
    if (capacity <= name.size()) {
      return invalid_argument(spk::str_cat("room for ", capacity, " bytes, but the name takes ",
                                           name.size() + 1, " with its zero byte"));
    }
    std::memcpy(buffer, name.c_str(), name.size() + 1);
    return {};
  });
}

int32_t spk_shard_path(const spk_pack* pack, uint32_t shard, char* buffer, uint64_t capacity,
                       uint64_t* size, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(buffer, "buffer"));
    if (shard >= pack->pack->shards().size()) {
      return invalid_argument(spk::str_cat("shard ", shard, " of ", pack->pack->shards().size()));
    }
    const std::string path = pack->pack->shard_path(shard);
    if (size != nullptr) *size = path.size();
    if (capacity <= path.size()) {
      return invalid_argument(spk::str_cat("room for ", capacity, " bytes, but the path takes ",
                                           path.size() + 1, " with its zero byte"));
    }
    std::memcpy(buffer, path.c_str(), path.size() + 1);
    return {};
  });
}

int32_t spk_chunk_samples(const spk_pack* pack, uint64_t begin, uint64_t count,
                          uint64_t* first_samples, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    const uint64_t chunks = pack->pack->chunk_count();
    if (begin > chunks || count > chunks - begin) {
      return invalid_argument(spk::str_cat(spk::count_of(count, "chunk"), " from chunk ", begin,
                                           " on, but the pack has ", chunks));
    }
    if (count > 0) SPK_TRY(need(first_samples, "first_samples"));
    for (uint64_t i = 0; i < count; ++i) {
      SPK_ASSIGN(const spk::ChunkLocation chunk, pack->pack->chunk(begin + i));
      first_samples[i] = chunk.first_sample;
    }
    return {};
  });
}

int32_t spk_read(const spk_pack* pack, uint32_t field, uint64_t sample, void* buffer,
                 uint64_t capacity, uint64_t* size, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    if (capacity != 0) SPK_TRY(need(buffer, "buffer"));
    SPK_ASSIGN(const uint16_t number, spk::field_number(*pack->pack, field));
    auto bytes = pack->pack->read(sample, number, bytes_of(buffer, capacity));
    if (bytes.ok()) {
      if (size != nullptr) *size = *bytes;
      return {};
    }
    if (size != nullptr && bytes.status().code() == spk::Code::kInvalidArgument) {
      const auto location = pack->pack->locate(sample, number);
      if (location.ok()) *size = location->bytes;
    }
    return std::move(bytes).status();
  });
}

int32_t spk_read_many(const spk_pack* pack, uint32_t field, spk_read_item* items, uint64_t count,
                      spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    if (count == 0) return {};
    SPK_TRY(need(items, "items"));
    std::vector<spk::ReadItem> wanted;
    if (count > wanted.max_size()) {
      return invalid_argument(spk::str_cat("count is ", count, ", more than any array holds"));
    }
    wanted.resize(count);
    for (uint64_t i = 0; i < count; ++i) {
      if (items[i].capacity != 0) SPK_TRY(need(items[i].buffer, "buffer of an item"));
      wanted[i].sample = items[i].sample;
      wanted[i].into = bytes_of(items[i].buffer, items[i].capacity);
    }
    const spk::Result<uint16_t> number = spk::field_number(*pack->pack, field);
    const Status status = number.ok() ? pack->pack->read_many(*number, wanted) : number.status();
    // A fault of the whole call is the code of each item, for none was read.
    const bool judged = status.ok() || status.code() == spk::Code::kPartial;
    for (uint64_t i = 0; i < count; ++i) {
      items[i].size = wanted[i].bytes;
      items[i].code = static_cast<int32_t>(judged ? wanted[i].status.code() : status.code());
    }
    return status;
  });
}
