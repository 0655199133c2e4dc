#include "sources/caffe_datum.h"

#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "sources/picture_bytes.h"

namespace spk {

namespace {

enum DatumField : uint32_t {
  kChannels = 1,
  kHeight = 2,
  kWidth = 3,
  kData = 4,
  kLabel = 5,
  kFloatData = 6,
  kEncoded = 7,
};

}  // namespace

Result<CaffeDatum> parse_datum(WireWalk::Read read, uint64_t offset, uint64_t bytes) {
  CaffeDatum datum;
  WireWalk walk(std::move(read), offset, offset + bytes);
  const auto wrong = [&] {
    return damaged("no Datum: a field is of another type").at_offset(walk.offset());
  };
  WireField field;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&field));
    if (!more) break;
    if (field.number > kEncoded) return damaged("no Datum: an unknown field");
    if (field.number == kData) {
      if (field.type != WireType::kBytes) return wrong();
      datum.has_data = true;
      datum.data_offset = field.offset;
      datum.data_bytes = field.bytes;
      continue;
    }
    if (field.number == kFloatData) {  // packed or one by one
      if (field.type != WireType::kBytes && field.type != WireType::kFixed32) return wrong();
      datum.has_floats = true;
      continue;
    }
    if (field.type != WireType::kVarint) return wrong();
    // int32 in the message: its low 32 bits count, as protobuf reads them.
    const int64_t number = static_cast<int32_t>(static_cast<uint32_t>(field.value));
    switch (field.number) {
      case kChannels: datum.channels = number; break;
      case kHeight: datum.height = number; break;
      case kWidth: datum.width = number; break;
      case kLabel: datum.label = number; break;
      default: datum.encoded = field.value != 0; break;
    }
  }
  if (!datum.has_data && !datum.has_floats) return damaged("no Datum: it has no data");
  return datum;
}

std::string check_raw_datum(const CaffeDatum& datum, ByteSpan head, uint64_t max_pixels) {
  const std::string size = str_cat(datum.channels, " x ", datum.height, " x ", datum.width);
  if (!datum.has_data) return "float_data instead of bytes";
  uint64_t pixels = 0, wanted = 0;
  const bool has_size = datum.channels > 0 && datum.height > 0 && datum.width > 0;
  if (has_size && (!checked_mul(static_cast<uint64_t>(datum.height),
                                static_cast<uint64_t>(datum.width), &pixels) ||
                   !checked_mul(pixels, static_cast<uint64_t>(datum.channels), &wanted))) {
    return str_cat("too many pixels: ", size);
  }
  if (wanted != datum.data_bytes) {
    const std::string picture = picture_kind(head);
    return str_cat("data size: ", datum.data_bytes, " bytes, ", wanted, " expected for ", size,
                   picture.empty() ? "" : str_cat("; it is a ", picture, " with encoded=false"));
  }
  if (!has_size) return "no pixels";
  if (pixels > max_pixels) {
    return str_cat("too many pixels: ", datum.width, " x ", datum.height, ", more than ",
                   max_pixels);
  }
  return {};
}

}  // namespace spk
