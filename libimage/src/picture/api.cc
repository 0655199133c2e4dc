// The C interface: image.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "base/text.h"
#include "capi/report.h"
#include "picture/pool.h"
#include "stripepack/image.h"

using spk::guard;
using spk::invalid_argument;
using spk::need;
using spk::Status;
namespace picture = spk::picture;

static_assert(sizeof(spk_image_header) == 32);
static_assert(sizeof(spk_image_ops) == 96);
static_assert(sizeof(spk_image_crop) == 48);
static_assert(sizeof(spk_image_item) == 56);
static_assert(static_cast<uint32_t>(picture::Format::kJpeg) == SPK_IMAGE_JPEG);
static_assert(static_cast<uint32_t>(picture::Format::kPng) == SPK_IMAGE_PNG);
static_assert(static_cast<uint32_t>(picture::Format::kWebp) == SPK_IMAGE_WEBP);
static_assert(static_cast<uint32_t>(picture::Kind::kFull) == SPK_IMAGE_FULL);
static_assert(static_cast<uint32_t>(picture::Kind::kResize) == SPK_IMAGE_RESIZE);
static_assert(static_cast<uint32_t>(picture::Kind::kResizeShort) == SPK_IMAGE_RESIZE_SHORT);
static_assert(static_cast<uint32_t>(picture::Kind::kCenterCrop) == SPK_IMAGE_CENTER_CROP);
static_assert(static_cast<uint32_t>(picture::Kind::kRandomResizedCrop) ==
              SPK_IMAGE_RANDOM_RESIZED_CROP);

struct spk_image_pool {
  explicit spk_image_pool(uint32_t threads) : pool(threads) {}
  picture::DecodePool pool;
};

namespace {

spk::Result<picture::Ops> checked_ops(const spk_image_ops* ops) {
  SPK_TRY(need(ops, "ops"));
  // Members that an older caller does not know keep their defaults, which zeros stand for.
  spk_image_ops known = {};
  if (ops->struct_size < offsetof(spk_image_ops, flip_probability)) {
    return invalid_argument("struct_size of the ops is not set");
  }
  std::memcpy(&known, ops, std::min<size_t>(ops->struct_size, sizeof known));
  if (known.kind > SPK_IMAGE_RANDOM_RESIZED_CROP) {
    return invalid_argument(spk::str_cat("there is no operation ", known.kind));
  }
  if (known.layout > SPK_IMAGE_CHW) {
    return invalid_argument(spk::str_cat("there is no layout ", known.layout));
  }
  picture::Ops out;
  out.kind = static_cast<picture::Kind>(known.kind);
  out.planar = known.layout == SPK_IMAGE_CHW;
  out.width = known.width;
  out.height = known.height;
  out.short_side = known.short_side;
  out.exif_orientation = known.exif_orientation != 0;
  out.flip_probability = known.flip_probability;
  if (known.scale_min != 0 || known.scale_max != 0) {
    out.scale_min = known.scale_min;
    out.scale_max = known.scale_max;
  }
  if (known.ratio_min != 0 || known.ratio_max != 0) {
    out.ratio_min = known.ratio_min;
    out.ratio_max = known.ratio_max;
  }
  if (known.max_pixels != 0) out.max_pixels = known.max_pixels;
  out.seed = known.seed;
  out.epoch = known.epoch;
  SPK_TRY(picture::check_ops(out));
  return out;
}

spk::Result<spk::ByteSpan> bytes_of(const void* data, uint64_t size) {
  if (size > 0) SPK_TRY(need(data, "data"));
  return spk::ByteSpan(static_cast<const uint8_t*>(data), static_cast<size_t>(size));
}

Status decode_item(spk_image_item& item, const picture::Ops& ops, picture::Scratch& scratch,
                   std::mutex* heavy) {
  SPK_ASSIGN(const spk::ByteSpan data, bytes_of(item.data, item.size));
  if (item.capacity > 0) SPK_TRY(need(item.out, "out"));
  picture::Size size;
  Status status;
  try {
    const picture::Source source{
        data, {static_cast<uint8_t*>(item.out), static_cast<size_t>(item.capacity)}, item.sample};
    status = picture::decode(source, ops, scratch, heavy, size);
  } catch (const std::bad_alloc&) {
    status = Status(spk::Code::kNoMemory, "no memory left to decode a picture");
  }
  item.width = size.width;
  item.height = size.height;
  return status;
}

// Decodes and notes the code.
Status decode_noted(spk_image_item& item, const picture::Ops& ops, picture::Scratch& scratch,
                    std::mutex* heavy) {
  item.width = 0;
  item.height = 0;
  Status status = decode_item(item, ops, scratch, heavy);
  item.code = static_cast<int32_t>(status.code());
  return status;
}

// The first failure of a batch, whatever the threads.
class FirstFailure {
 public:
  void note(uint64_t index, Status status) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (index >= index_) return;
    index_ = index;
    status_ = std::move(status);
  }
  Status summary(uint64_t items) {
    if (count_ == 0) return {};
    return Status(spk::Code::kPartial,
                  spk::str_cat(count_, " of ", items, " pictures failed, the first is number ",
                               index_, ": ", status_.to_string()));
  }

 private:
  std::mutex mutex_;
  uint64_t count_ = 0;
  uint64_t index_ = UINT64_MAX;
  Status status_;
};

// Where an axis ends in the source; exact where that is a whole number.
double far_end(const picture::Axis& axis, picture::Kind kind) {
  if (kind != picture::Kind::kCenterCrop) return axis.end;
  return axis.origin + axis.count * axis.scale;
}

}  // namespace

uint32_t spk_image_abi_version(void) noexcept { return SPK_IMAGE_ABI_VERSION; }

int32_t spk_image_decodes(uint32_t format) noexcept {
  if (format < SPK_IMAGE_JPEG || format > SPK_IMAGE_WEBP) return 0;
  return picture::can_decode(static_cast<picture::Format>(format)) ? 1 : 0;
}

int32_t spk_image_info(const void* data, uint64_t size, spk_image_header* out,
                       spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_ASSIGN(const spk::ByteSpan bytes, bytes_of(data, size));
    SPK_ASSIGN(const picture::Header from, picture::read_header(bytes));
    spk_image_header header = {};
    header.format = static_cast<uint32_t>(from.format);
    header.width = from.width;
    header.height = from.height;
    header.channels = from.channels;
    header.depth = from.depth;
    header.orientation = from.orientation;
    return spk::copy_out(header, out, sizeof(spk_image_header));
  });
}

int32_t spk_image_plan_crop(uint32_t width, uint32_t height, const spk_image_ops* ops,
                            uint64_t sample, spk_image_crop* out, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_ASSIGN(const picture::Ops wanted, checked_ops(ops));
    if (width < 1 || height < 1 || width > picture::kMaxSide || height > picture::kMaxSide) {
      return invalid_argument(
          spk::str_cat("there is no picture of ", width, " x ", height, " pixels"));
    }
    const picture::Plan plan = picture::make_plan(width, height, wanted, sample);
    spk_image_crop crop = {};
    crop.flipped = plan.flip ? 1 : 0;
    crop.width = plan.x.count;
    crop.height = plan.y.count;
    crop.left = plan.x.origin;
    crop.top = plan.y.origin;
    crop.right = far_end(plan.x, wanted.kind);
    crop.bottom = far_end(plan.y, wanted.kind);
    return spk::copy_out(crop, out, sizeof(spk_image_crop));
  });
}

int32_t spk_image_decode(spk_image_item* item, const spk_image_ops* ops, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(item, "item"));
    SPK_ASSIGN(const picture::Ops wanted, checked_ops(ops));
    const auto scratch = std::make_unique<picture::Scratch>();
    return decode_noted(*item, wanted, *scratch, nullptr);
  });
}

int32_t spk_image_pool_open(uint32_t threads, spk_image_pool** out, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(out, "out"));
    constexpr uint32_t kMaxThreads = 4096;
    if (threads > kMaxThreads) {
      return invalid_argument(spk::str_cat(threads, " threads are more than ", kMaxThreads));
    }
    *out = std::make_unique<spk_image_pool>(threads).release();
    return {};
  });
}

uint32_t spk_image_pool_threads(const spk_image_pool* pool) noexcept {
  return pool == nullptr ? 1 : pool->pool.threads();
}

void spk_image_pool_close(spk_image_pool* pool) noexcept { delete pool; }

int32_t spk_image_decode_many(spk_image_pool* pool, spk_image_item* items, uint64_t count,
                              const spk_image_ops* ops, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    if (count > 0) SPK_TRY(need(items, "items"));
    SPK_ASSIGN(const picture::Ops wanted, checked_ops(ops));
    FirstFailure failure;
    const auto decode_one = [&](uint64_t index, picture::Scratch& scratch, std::mutex* heavy) {
      // No exception may leave a thread of the pool.
      try {
        Status status = decode_noted(items[index], wanted, scratch, heavy);
        if (!status.ok()) failure.note(index, std::move(status));
      } catch (...) {
        items[index].code = SPK_NO_MEMORY;
        failure.note(index, Status());
      }
    };
    if (pool != nullptr) {
      pool->pool.run(count, [&](uint64_t index, picture::Scratch& scratch, std::mutex& heavy) {
        decode_one(index, scratch, &heavy);
      });
    } else {
      const auto scratch = std::make_unique<picture::Scratch>();
      for (uint64_t i = 0; i < count; ++i) decode_one(i, *scratch, nullptr);
    }
    return failure.summary(count);
  });
}
