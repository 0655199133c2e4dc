#include "sources/planar.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kAtOnceBytes = uint64_t{1} << 20;

class PlanarHandle : public SampleHandle {
 public:
  PlanarHandle(std::unique_ptr<SampleHandle> planes, const PixelDimensions& pixels, bool reversed)
      : planes_(std::move(planes)),
        plane_bytes_(uint64_t{pixels.height} * pixels.width),
        channels_(pixels.channels),
        reversed_(reversed) {}

  uint64_t size_bytes() const override { return planes_->size_bytes(); }

  Status read_at(uint64_t offset, MutableByteSpan into) override {
    if (offset > size_bytes() || into.size() > size_bytes() - offset) {
      return internal_error("read behind the end of a sample");
    }
    const uint64_t pixels_at_once = std::max<uint64_t>(kAtOnceBytes / channels_, 1);
    while (!into.empty()) {
      const uint64_t first = offset / channels_;
      const uint64_t end =
          std::min((offset + into.size() - 1) / channels_ + 1, first + pixels_at_once);
      SPK_TRY(read_pixels(first, end - first));
      const uint64_t skip = offset - first * channels_;
      const uint64_t bytes = std::min<uint64_t>((end - first) * channels_ - skip, into.size());
      interleave(end - first, skip, into.first(bytes));
      into = into.subspan(bytes);
      offset += bytes;
    }
    return {};
  }

 private:
  // Into buffer_, channel after channel.
  Status read_pixels(uint64_t first, uint64_t count) {
    buffer_.resize(count * channels_);
    if (count == plane_bytes_) return planes_->read_at(0, buffer_);
    for (uint64_t channel = 0; channel < channels_; ++channel) {
      SPK_TRY(planes_->read_at(channel * plane_bytes_ + first,
                               MutableByteSpan(buffer_).subspan(channel * count, count)));
    }
    return {};
  }

  // The bytes from `skip` on of the `count` pixels in buffer_.
  void interleave(uint64_t count, uint64_t skip, MutableByteSpan into) const {
    if (channels_ == 3 && skip == 0 && into.size() == count * 3) {
      const uint8_t* red = buffer_.data() + (reversed_ ? 2 * count : 0);
      const uint8_t* green = buffer_.data() + count;
      const uint8_t* blue = buffer_.data() + (reversed_ ? 0 : 2 * count);
      uint8_t* to = into.data();
      for (uint64_t i = 0; i < count; ++i, to += 3) {
        to[0] = red[i];
        to[1] = green[i];
        to[2] = blue[i];
      }
      return;
    }
    for (uint64_t i = 0; i < into.size(); ++i) {
      const uint64_t channel = (skip + i) % channels_;
      const uint64_t plane = reversed_ ? channels_ - 1 - channel : channel;
      into[i] = buffer_[plane * count + (skip + i) / channels_];
    }
  }

  std::unique_ptr<SampleHandle> planes_;
  uint64_t plane_bytes_;
  uint64_t channels_;
  bool reversed_;
  std::vector<uint8_t> buffer_;
};

}  // namespace

std::unique_ptr<SampleHandle> interleave_planes(std::unique_ptr<SampleHandle> planes,
                                                const PixelDimensions& pixels, bool reversed) {
  if (pixels.channels <= 1) return planes;
  return std::make_unique<PlanarHandle>(std::move(planes), pixels, reversed);
}

}  // namespace spk
