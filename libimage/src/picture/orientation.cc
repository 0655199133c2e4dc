#include "picture/orientation.h"

#include <algorithm>

#include "base/checked.h"

namespace spk::picture {

namespace {

constexpr uint16_t kOrientationTag = 0x0112;
constexpr uint16_t kShortType = 3;
constexpr size_t kEntryBytes = 12;

}  // namespace

Turn turn_of(uint32_t orientation) noexcept {
  switch (orientation) {
    case 2: return {false, true, false};
    case 3: return {false, true, true};
    case 4: return {false, false, true};
    case 5: return {true, false, false};
    case 6: return {true, false, true};
    case 7: return {true, true, true};
    case 8: return {true, true, false};
    default: return {};
  }
}

Turn mirrored(Turn turn) noexcept {
  bool& shown_x = turn.transpose ? turn.flip_y : turn.flip_x;
  shown_x = !shown_x;
  return turn;
}

uint32_t exif_orientation(ByteSpan tiff) noexcept {
  if (tiff.size() < 8) return 1;
  const bool big = tiff[0] == 'M' && tiff[1] == 'M';
  if (!big && !(tiff[0] == 'I' && tiff[1] == 'I')) return 1;
  const auto u16 = [&](size_t at) {
    return big ? load_be<uint16_t>(&tiff[at]) : load_le<uint16_t>(&tiff[at]);
  };
  const size_t folder = big ? load_be<uint32_t>(&tiff[4]) : load_le<uint32_t>(&tiff[4]);
  if (u16(2) != 42 || !range_fits(folder, 2, tiff.size())) return 1;
  const size_t entries = std::min<size_t>(u16(folder), (tiff.size() - folder - 2) / kEntryBytes);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = folder + 2 + i * kEntryBytes;
    if (u16(at) != kOrientationTag || u16(at + 2) != kShortType) continue;
    const uint16_t value = u16(at + 8);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

}  // namespace spk::picture
