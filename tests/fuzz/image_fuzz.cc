// Any bytes taken for a picture: decoding, in whole and in part, must neither crash nor hang nor
// take memory beyond the limit of pixels; and the decoder for the usual JPEGs never reads what is
// not there. The first byte chooses what is done.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stripepack/image.h"

namespace {

void decode(const uint8_t* data, size_t size, const spk_image_ops& ops, uint64_t sample) {
  spk_image_item item = {};
  item.data = data;
  item.size = size;
  item.sample = sample;
  spk_image_decode(&item, &ops, nullptr);  // for its size
  const uint64_t bytes = uint64_t{3} * item.width * item.height;
  if (bytes > uint64_t{64} << 20) return;
  std::vector<uint8_t> out(bytes);
  item.out = out.data();
  item.capacity = bytes;
  const int32_t code = spk_image_decode(&item, &ops, nullptr);
  // Room was as asked for, so that nothing but the picture can be at fault.
  if (code == SPK_INVALID_ARGUMENT || code == SPK_INTERNAL) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  spk_image_ops ops = {};
  ops.struct_size = sizeof ops;
  ops.kind = data[0] % 5;
  ops.layout = data[0] >> 3 & 1;
  ops.exif_orientation = data[0] >> 4 & 1;
  ops.flip_probability = 0.5;
  ops.width = 1 + (data[0] >> 5) * 9;
  ops.height = 13;
  ops.short_side = 64;
  ops.max_pixels = 1 << 20;
  spk_image_header header = {};
  header.struct_size = sizeof header;
  spk_image_info(data + 1, size - 1, &header, nullptr);
  decode(data + 1, size - 1, ops, data[0]);
  return 0;
}
