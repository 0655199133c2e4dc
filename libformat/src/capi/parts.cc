// Parts of a pack, iterators over them, and verifying.
#include <optional>

#include "base/text.h"
#include "capi/guard.h"
#include "container/part_reader.h"
#include "container/verify.h"

using spk::guard;
using spk::invalid_argument;
using spk::need;
using spk::Status;

static_assert(sizeof(spk_damage) == 80);

struct spk_iter {
  spk_iter(std::shared_ptr<spk::Pack> from, spk::PositionRange range)
      : pack(std::move(from)), reader(*pack, range) {}

  std::shared_ptr<spk::Pack> pack;
  spk::PartReader reader;
  bool stands_on_sample = false;
};

namespace {

spk::Result<spk::PositionRange> part_of(const spk_pack* pack, uint64_t rank, uint64_t world) {
  SPK_TRY(need(pack, "pack"));
  if (world == 0 || world > UINT32_MAX || rank >= world) {
    return invalid_argument(
        spk::str_cat("there is no rank ", rank, " in a world of ", spk::count_of(world, "rank")));
  }
  return pack->pack->part(static_cast<uint32_t>(rank), static_cast<uint32_t>(world));
}

spk_damage damage_of(const spk::Damage& from) {
  spk_damage damage = {};
  damage.struct_size = sizeof damage;
  damage.code = static_cast<int32_t>(from.code);
  damage.kind = spk::damage_kind_name(from.kind);
  damage.file = from.file.c_str();
  damage.key = from.key.c_str();
  damage.key_size = from.key.size();
  damage.what = from.what.c_str();
  damage.shard = from.shard;
  damage.chunk = from.chunk;
  damage.offset = from.offset;
  damage.samples_lost = from.samples_lost;
  return damage;
}

}  // namespace

int32_t spk_part(const spk_pack* pack, uint64_t rank, uint64_t world, uint64_t* begin,
                 uint64_t* end, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(begin, "begin"));
    SPK_TRY(need(end, "end"));
    SPK_ASSIGN(const spk::PositionRange range, part_of(pack, rank, world));
    *begin = range.begin;
    *end = range.end;
    return {};
  });
}

int32_t spk_iter_open(const spk_pack* pack, uint64_t rank, uint64_t world, spk_iter** out,
                      spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const spk::PositionRange range, part_of(pack, rank, world));
    *out = std::make_unique<spk_iter>(pack->pack, range).release();
    return {};
  });
}

int32_t spk_iter_next(spk_iter* iter, uint64_t* sample, spk_error* err) noexcept {
  bool at_end = false;
  const int32_t code = guard(err, [&]() -> Status {
    SPK_TRY(need(iter, "iter"));
    SPK_TRY(need(sample, "sample"));
    iter->stands_on_sample = false;
    SPK_ASSIGN(iter->stands_on_sample, iter->reader.next());
    at_end = !iter->stands_on_sample;
    if (!at_end) *sample = iter->reader.sample();
    return {};
  });
  return at_end ? SPK_END : code;
}

int32_t spk_iter_blob(spk_iter* iter, uint32_t field, const void** data, uint64_t* size,
                      spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(iter, "iter"));
    SPK_TRY(need(data, "data"));
    SPK_TRY(need(size, "size"));
    if (!iter->stands_on_sample) {
      return invalid_argument("the iterator stands on no sample; spk_iter_next goes to one");
    }
    SPK_ASSIGN(const uint16_t number, spk::field_number(*iter->pack, field));
    SPK_ASSIGN(const spk::ByteSpan blob, iter->reader.blob(number));
    *data = blob.data();
    *size = blob.size();
    return {};
  });
}

void spk_iter_close(spk_iter* iter) noexcept { delete iter; }

int32_t spk_verify(const char* path, uint32_t level, uint32_t threads, spk_damage_fn callback,
                   void* user, uint64_t* damages, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(path, "path"));
    if (level != SPK_VERIFY_QUICK && level != SPK_VERIFY_FULL) {
      return invalid_argument(spk::str_cat("there is no level ", level, " of verifying"));
    }
    spk::VerifyOptions options;
    options.level = level == SPK_VERIFY_QUICK ? spk::VerifyLevel::kQuick : spk::VerifyLevel::kFull;
    options.threads = threads == 0 ? 1 : threads;
    const auto tell = [&](const spk::Damage& found) {
      if (callback == nullptr) return;
      const spk_damage damage = damage_of(found);
      callback(&damage, user);
    };
    SPK_ASSIGN(const spk::VerifyReport report, spk::verify_pack(path, options, tell));
    if (damages != nullptr) *damages = report.damages;
    if (report.ok()) return {};
    return spk::damaged(spk::str_cat("found ", spk::count_of(report.damages, "damage"),
                                     ", which cost ", spk::count_of(report.samples_lost, "sample")))
        .at_path(path);
  });
}
