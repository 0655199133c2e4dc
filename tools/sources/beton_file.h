// FFCV's .beton files, version 2: header, fields, one row of metadata a sample, data in pages, and
// a table of all allocations at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace spk {

enum class BetonType : uint8_t {
  kFloat = 0,
  kInt = 1,
  kImage = 2,
  kBytes = 3,
  kArray = 4,
  kJson = 5,
  kTensor = 6,
  kCustom = 255
};

struct BetonField {
  BetonType type = BetonType::kInt;
  std::string name;     // of 16 bytes at most: the format cuts the rest
  uint64_t offset = 0;  // in a row
};

struct BetonHeader {
  uint64_t samples = 0;
  uint64_t rows_offset = 0;
  uint64_t row_bytes = 0;
  uint64_t table_offset = 0;  // of allocations
  uint64_t table_rows = 0;
  std::vector<BetonField> fields;
};

// An allocation: sample, place and size.
constexpr uint64_t kBetonAllocationBytes = 24;

// kDamaged where parts do not fit into the file, as in one that was not finished; kUnsupported for
// fields of the user's own, whose rows have no known size.
Result<BetonHeader> read_beton_header(const File& file);
// Whether a file may begin so. There is no magic: all that the first field tells is looked at.
bool is_beton(ByteSpan head);

// What an image's row tells.
struct BetonImage {
  uint8_t mode = 0;
  uint16_t width = 0;
  uint16_t height = 0;
  uint64_t offset = 0;
  static constexpr uint8_t kJpeg = 0, kRaw = 1;
};
BetonImage read_beton_image(const uint8_t* row);

}  // namespace spk
