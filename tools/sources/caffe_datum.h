// Datum, the message in which Caffe keeps a picture and its label.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "sources/proto_wire.h"

namespace spk {

struct CaffeDatum {
  int64_t channels = 0, height = 0, width = 0;
  uint64_t data_offset = 0;  // in what was read
  uint64_t data_bytes = 0;
  std::optional<int64_t> label;
  bool has_data = false;
  bool has_floats = false;  // float_data, instead of data
  bool encoded = false;     // data is a picture file; otherwise channels x height x width bytes
};

// The message at [offset, offset + bytes) of what READ reads; of the picture nothing is read.
// kDamaged where it is no Datum.
Result<CaffeDatum> parse_datum(WireWalk::Read read, uint64_t offset, uint64_t bytes);

// Why `datum`, whose picture begins with `head`, is no pixels of that size; empty where it is.
std::string check_raw_datum(const CaffeDatum& datum, ByteSpan head, uint64_t max_pixels);

}  // namespace spk
