// Any bytes taken for a picture that is to be made anew, with options that the first bytes choose:
// neither a crash nor more pixels than are allowed, what comes out is a picture of the size that is
// told, and the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "image/transform.h"

namespace {

constexpr uint64_t kMostPixels = uint64_t{1} << 20;
constexpr size_t kOptionBytes = 8;

spk::TransformOptions options_from(const uint8_t* data) {
  spk::TransformOptions options;
  options.width = options.height = data[0];
  options.mode = static_cast<spk::ResizeMode>(data[1] % 5);
  options.filter = static_cast<spk::ResizeFilter>(data[1] / 5 % 3);
  options.only_if_bigger = (data[2] & 1) != 0;
  options.orient = (data[2] & 2) != 0;
  options.strip_metadata = (data[2] & 4) != 0;
  if ((data[2] & 8) != 0) options.background = data[3] * 0x10203u & 0xffffffu;
  options.encode = static_cast<spk::EncodeAs>(data[4] % 5);
  options.colour = static_cast<spk::ColourMode>(data[5] % 3);
  options.quality = 1 + data[6] % 100;
  options.box = (data[2] & 16) != 0;
  if ((data[2] & 32) != 0) options.profile = spk::ProfileMode::kSrgb;
  if ((options.box || options.mode == spk::ResizeMode::kExact) && options.width != 0) {
    options.height = 1 + data[7] % 255;
  }
  return options;
}

spk::Transformed made(const spk::TransformOptions& options, spk::ByteSpan data) {
  const spk::Transformer transformer(options, kMostPixels, uint64_t{64} << 20);
  spk::Result<spk::Transformed> result = transformer.run(data, {});
  if (!result.ok()) std::abort();  // nothing but the picture can be at fault
  return std::move(result).value();
}

// The picture as its own mask: what comes out is again one, in the place of the picture.
void try_as_mask(const spk::TransformOptions& options, spk::ByteSpan data,
                 const spk::PictureGeometry& geometry) {
  const spk::Transformer transformer(options, kMostPixels, uint64_t{64} << 20);
  const spk::Result<spk::Transformed> mask = transformer.run_mask(data, geometry);
  if (!mask.ok()) std::abort();
  if (mask->same || !mask->reject.empty()) return;
  spk::PictureGeometry nowhere;
  nowhere.stored = nowhere.shown = nowhere.inner = geometry.made;
  nowhere.made = {geometry.made.width + 1, geometry.made.height};
  const spk::Result<spk::Transformed> again = transformer.run_mask(mask->bytes, nowhere);
  if (!again.ok() || !again->reject.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kOptionBytes) return 0;
  spk::TransformOptions options = options_from(data);
  if (!spk::check_transform(options).ok()) options = {};
  const spk::ByteSpan picture(data + kOptionBytes, size - kOptionBytes);
  const spk::Transformed result = made(options, picture);
  if (result.reject.empty()) try_as_mask(options, picture, result.geometry);
  if (result.same || !result.reject.empty()) return 0;
  const spk::RawSize& shape = result.size;
  const uint64_t pixels = uint64_t{shape.height} * shape.width;
  if (pixels == 0 || pixels > kMostPixels || shape.channels == 0) std::abort();
  if (options.encode == spk::EncodeAs::kRaw && result.bytes.size() != pixels * shape.channels) {
    std::abort();
  }
  if (made(options, picture).bytes != result.bytes) std::abort();
  return 0;
}
