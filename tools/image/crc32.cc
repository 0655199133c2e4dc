// CRC-32 as PNG uses it, sixteen bytes a step. Kept here so that PNGs are checked in every build,
// whatever libraries are found.
#include <array>

#include "image/formats.h"

namespace spk::image {
namespace {

constexpr size_t kSlices = 16;
using Table = std::array<std::array<uint32_t, 256>, kSlices>;

constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
    table[0][byte] = crc;
  }
  // table[s][b] is the effect of byte b followed by s zero bytes.
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = table[slice - 1][byte];
      table[slice][byte] = (before >> 8) ^ table[0][before & 0xff];
    }
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

uint32_t crc32_ieee(uint32_t crc, ByteSpan bytes) noexcept {
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  crc = ~crc;
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    const uint32_t a = load_le<uint32_t>(at) ^ crc;
    const uint32_t b = load_le<uint32_t>(at + 4);
    const uint32_t c = load_le<uint32_t>(at + 8);
    const uint32_t d = load_le<uint32_t>(at + 12);
    crc = kTable[15][a & 0xff] ^ kTable[14][(a >> 8) & 0xff] ^ kTable[13][(a >> 16) & 0xff] ^
          kTable[12][a >> 24] ^ kTable[11][b & 0xff] ^ kTable[10][(b >> 8) & 0xff] ^
          kTable[9][(b >> 16) & 0xff] ^ kTable[8][b >> 24] ^ kTable[7][c & 0xff] ^
          kTable[6][(c >> 8) & 0xff] ^ kTable[5][(c >> 16) & 0xff] ^ kTable[4][c >> 24] ^
          kTable[3][d & 0xff] ^ kTable[2][(d >> 8) & 0xff] ^ kTable[1][(d >> 16) & 0xff] ^
          kTable[0][d >> 24];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8) ^ kTable[0][(crc ^ *at) & 0xff];
  return ~crc;
}

}  // namespace spk::image
