#include "commands/bench_decode.h"

#if SPK_HAVE_IMAGE

#include <algorithm>
#include <vector>

#include "stripepack/image.h"

namespace spk {

namespace {

constexpr uint32_t kSide = 224;
constexpr uint64_t kPictureBytes = uint64_t{3} * kSide * kSide;

struct ClosePool {
  void operator()(spk_image_pool* pool) const noexcept { spk_image_pool_close(pool); }
};

class ImageDecoder final : public BatchDecoder {
 public:
  ImageDecoder(uint16_t field, spk_image_pool* pool) : field_(field), pool_(pool) {
    ops_.struct_size = sizeof ops_;
    ops_.kind = SPK_IMAGE_RANDOM_RESIZED_CROP;
    ops_.width = kSide;
    ops_.height = kSide;
    ops_.flip_probability = 0.5;
  }

  Result<uint64_t> decode(const Batch& batch, uint64_t epoch) override {
    const auto& fields = batch.blob_fields();
    const auto place =
        static_cast<size_t>(std::find(fields.begin(), fields.end(), field_) - fields.begin());
    pixels_.resize(std::max<size_t>(pixels_.size(), batch.size() * kPictureBytes));
    items_.clear();
    for (size_t i = 0; i < batch.size(); ++i) {
      const ByteSpan blob = batch.blob(i, place);
      spk_image_item item = {};
      item.data = blob.data();
      item.size = blob.size();
      item.out = pixels_.data() + i * kPictureBytes;
      item.capacity = kPictureBytes;
      item.sample = batch.sample(i);
      if (blob.data() != nullptr) items_.push_back(item);
    }
    ops_.epoch = epoch;
    spk_error error = {};
    error.struct_size = sizeof error;
    const int32_t code =
        spk_image_decode_many(pool_.get(), items_.data(), items_.size(), &ops_, &error);
    if (code != SPK_OK && code != SPK_PARTIAL) {
      return Status(static_cast<Code>(code), error.message);
    }
    return static_cast<uint64_t>(
        std::count_if(items_.begin(), items_.end(),
                      [](const spk_image_item& item) { return item.code != SPK_OK; }));
  }

 private:
  const uint16_t field_;
  const std::unique_ptr<spk_image_pool, ClosePool> pool_;
  spk_image_ops ops_ = {};
  std::vector<uint8_t> pixels_;
  std::vector<spk_image_item> items_;
};

}  // namespace

Result<std::unique_ptr<BatchDecoder>> BatchDecoder::make(const Pack& pack, uint32_t threads) {
  const uint16_t field = pack.schema().find("image");
  if (field == kNoField || pack.schema().fields[field].kind != FieldKind::kBlob) {
    return Status(Code::kNotFound, "there are no pictures to decode: no field 'image'")
        .at_path(pack.path());
  }
  spk_error error = {};
  error.struct_size = sizeof error;
  spk_image_pool* pool = nullptr;
  const int32_t code = spk_image_pool_open(threads, &pool, &error);
  if (code != SPK_OK) return Status(static_cast<Code>(code), error.message);
  return std::unique_ptr<BatchDecoder>(std::make_unique<ImageDecoder>(field, pool));
}

}  // namespace spk

#else

namespace spk {

Result<std::unique_ptr<BatchDecoder>> BatchDecoder::make(const Pack&, uint32_t) {
  return unsupported("this build of stripepack has no picture decoders")
      .with_hint("build it with libjpeg, or leave --decode out");
}

}  // namespace spk

#endif
