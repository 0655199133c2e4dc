#include "picture/plain_jpeg.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/checked.h"
#include "picture/idct.h"
#include "picture/vector_target.h"

namespace spk::picture {
namespace {

constexpr uint8_t kFirstRestart = 0xd0;
constexpr uint8_t kLastRestart = 0xd7;

// Where coefficient k of the file's order lies in a block, row by row.
constexpr uint8_t kNatural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                  35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                  58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct Component {
  // Blocks wait for a second one, for two are transformed at once.
  alignas(32) std::array<int16_t, 128> waiting{};
  alignas(32) std::array<int16_t, 64> quant{};
  std::array<BlockPlace, 2> places{};
  size_t waiting_count = 0;
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  Plane* plane = nullptr;
  uint32_t across = 1;  // blocks of an MCU
  uint32_t down = 1;
  int32_t mean = 0;  // of the block before

  void transform() {
    if (waiting_count > 0) inverse_dct(waiting.data(), quant.data(), waiting_count, places.data());
    waiting_count = 0;
  }
};

namespace any_machine {
#include "picture/plain_blocks.h"
}  // namespace any_machine

#if SPK_HAVE_AVX2_TARGET
SPK_BEGIN_AVX2
namespace with_avx2 {
#include "picture/plain_blocks.h"
}  // namespace with_avx2
SPK_END_AVX2
#endif

struct Functions {
  decltype(&any_machine::skip_mcus) skip;
  decltype(&any_machine::read_mcus) read;
};

Functions functions() {
#if SPK_HAVE_AVX2_TARGET
  if (have_avx2()) return {with_avx2::skip_mcus, with_avx2::read_mcus};
#endif
  return {any_machine::skip_mcus, any_machine::read_mcus};
}

class Decoder {
 public:
  Decoder(ByteSpan data, const JpegMarkers& markers, const Window& window, PlainJpeg& tables)
      : data_(data), markers_(markers), window_(window), tables_(tables) {}

  bool run(Memory& memory, Planes& planes) {
    if (!is_plain() || !set_components(planes)) return false;
    set_window();
    make_planes(memory, planes);
    return unstuff() && decode();
  }

 private:
  bool is_plain() const {
    const JpegMarkers& from = markers_;
    if ((from.frame != 0xc0 && from.frame != 0xc1) || from.precision != 8 || !from.plain_scan) {
      return false;
    }
    if (from.component_count == 1) return true;
    if (from.component_count != 3) return false;
    if (from.jfif) return true;  // libjpeg's way of telling YCbCr from RGB
    if (from.adobe) return from.adobe_transform == 1;
    return from.components[0].id == 1 && from.components[1].id == 2 && from.components[2].id == 3;
  }

  bool set_components(Planes& planes) {
    count_ = markers_.component_count;
    planes.model = count_ == 1 ? ColourModel::kGrey : ColourModel::kYcc;
    for (size_t i = 0; i < count_; ++i) {
      const JpegComponent& from = markers_.components[i];
      Component& to = components_[i];
      if (from.quant > 3 || from.dc > 3 || from.ac > 3) return false;
      if (!markers_.quant_defined[from.quant]) return false;
      if (!tables_.dc[from.dc].make(markers_.dc[from.dc], false)) return false;
      if (!tables_.ac[from.ac].make(markers_.ac[from.ac], true)) return false;
      to.dc = &tables_.dc[from.dc];
      to.ac = &tables_.ac[from.ac];
      for (size_t k = 0; k < 64; ++k) {
        to.quant[kNatural[k]] = static_cast<int16_t>(markers_.quant[from.quant][k]);
      }
      to.plane = &planes.planes[i];
      if (count_ == 1) continue;  // a scan of one component has one block an MCU
      if (from.h < 1 || from.h > 2 || from.v < 1 || from.v > 2) return false;
      to.across = from.h;
      to.down = from.v;
      if (from.h > components_[0].across || from.v > components_[0].down) return false;
    }
    mcu_width_ = 8 * components_[0].across;
    mcu_height_ = 8 * components_[0].down;
    return true;
  }

  void set_window() {
    mcus_across_ = static_cast<uint32_t>(divide_up(markers_.width, mcu_width_));
    mcus_ = uint64_t{mcus_across_} * divide_up(markers_.height, mcu_height_);
    left_ = window_.left / mcu_width_;
    top_ = window_.top / mcu_height_;
    right_ = static_cast<uint32_t>(divide_up(window_.left + window_.width, mcu_width_));
    bottom_ = static_cast<uint32_t>(divide_up(window_.top + window_.height, mcu_height_));
  }

  void make_planes(Memory& memory, Planes& planes) {
    size_t bytes = 0;
    std::array<size_t, 3> begin{};
    for (size_t i = 0; i < count_; ++i) {
      const Component& component = components_[i];
      Plane& plane = planes.planes[i];
      plane.per_x = components_[0].across / component.across;
      plane.per_y = components_[0].down / component.down;
      plane.left = left_ * component.across * 8;
      plane.top = top_ * component.down * 8;
      plane.stride = size_t{right_ - left_} * component.across * 8;
      const size_t rows = size_t{bottom_ - top_} * component.down * 8;
      // What fills up the last blocks is no part of the picture.
      const auto last_x = static_cast<uint32_t>(divide_up(markers_.width, plane.per_x));
      const auto last_y = static_cast<uint32_t>(divide_up(markers_.height, plane.per_y));
      plane.width = std::min(static_cast<uint32_t>(plane.stride), last_x - plane.left);
      plane.height = std::min(static_cast<uint32_t>(rows), last_y - plane.top);
      begin[i] = bytes;
      bytes += plane.stride * rows;
    }
    uint8_t* data = memory.need(bytes + kPlaneSlack);
    for (size_t i = 0; i < count_; ++i) planes.planes[i].data = data + begin[i];
  }

  // Copies the scan's data without the zero behind each FF. Ends at the first marker that is no
  // restart marker.
  bool unstuff() {
    const uint8_t* from = data_.data() + markers_.scan;
    const uint8_t* const end = data_.data() + data_.size();
    uint8_t* const begin = tables_.scan.need(static_cast<size_t>(end - from) + BitReader::kSlack);
    uint8_t* to = begin;
    tables_.intervals.assign(1, 0);
    while (from < end) {
      const auto* found =
          static_cast<const uint8_t*>(std::memchr(from, 0xff, static_cast<size_t>(end - from)));
      if (found == nullptr) found = end;
      const auto plain = static_cast<size_t>(found - from);
      std::memcpy(to, from, plain);
      to += plain;
      from = found;
      if (end - from < 2) break;
      const uint8_t second = from[1];
      if (second == 0) {
        *to++ = 0xff;
      } else if (second >= kFirstRestart && second <= kLastRestart) {
        // Out of turn: libjpeg knows what to do.
        if (markers_.restart_interval == 0 ||
            second != kFirstRestart + (tables_.intervals.size() - 1) % 8) {
          return false;
        }
        tables_.intervals.push_back(static_cast<uint64_t>(to - begin));
      } else {
        break;
      }
      from += 2;
    }
    std::memset(to, 0, BitReader::kSlack);
    tables_.intervals.push_back(static_cast<uint64_t>(to - begin));
    scan_ = begin;
    return true;
  }

  // The first MCU from `mcu` on that is in the window; any number from last + 1 on if there is
  // none.
  uint64_t next_needed(uint64_t mcu) const {
    const auto row = static_cast<uint32_t>(mcu / mcus_across_);
    const auto column = static_cast<uint32_t>(mcu % mcus_across_);
    if (row < top_) return uint64_t{top_} * mcus_across_ + left_;
    if (column < left_) return uint64_t{row} * mcus_across_ + left_;
    if (column < right_) return mcu;
    return (uint64_t{row} + 1) * mcus_across_ + left_;
  }

  bool decode() {
    const uint64_t last = uint64_t{bottom_ - 1} * mcus_across_ + right_ - 1;
    const uint64_t interval = markers_.restart_interval == 0 ? mcus_ : markers_.restart_interval;
    for (uint64_t first = 0, i = 0; first <= last; first += interval, ++i) {
      if (i + 1 >= tables_.intervals.size()) return false;
      const uint64_t behind = std::min(first + interval, last + 1);
      if (next_needed(first) >= behind) continue;
      const uint64_t begin = tables_.intervals[i];
      if (!decode_interval(first, behind, begin, 8 * (tables_.intervals[i + 1] - begin))) {
        return false;
      }
    }
    for (Component& component : components_) component.transform();
    return true;
  }

  bool decode_interval(uint64_t first, uint64_t behind, uint64_t begin, uint64_t bits) {
    for (Component& component : components_) component.mean = 0;
    BitReader reader(scan_ + begin);
    const std::span<Component> components(components_.data(), count_);
    for (uint64_t mcu = first; mcu < behind;) {
      const uint64_t needed = next_needed(mcu);
      if (needed > mcu) {
        const uint64_t run = std::min(needed, behind) - mcu;
        if (!mcus_of_.skip(reader, components, run, bits)) return false;
        mcu += run;
        continue;
      }
      const auto row = static_cast<uint32_t>(mcu / mcus_across_);
      const auto column = static_cast<uint32_t>(mcu % mcus_across_);
      const uint64_t run = std::min<uint64_t>(right_ - column, behind - mcu);
      if (!mcus_of_.read(reader, components, row - top_, column - left_, run, bits)) return false;
      mcu += run;
    }
    for (Component& component : components) component.transform();
    return true;
  }

  std::array<Component, 3> components_{};  // first, for they are aligned
  ByteSpan data_;
  const JpegMarkers& markers_;
  const Window window_;
  PlainJpeg& tables_;
  const Functions mcus_of_ = functions();
  size_t count_ = 0;
  uint32_t mcu_width_ = 8;
  uint32_t mcu_height_ = 8;
  uint32_t mcus_across_ = 0;
  uint64_t mcus_ = 0;
  uint32_t left_ = 0;  // the window in MCUs
  uint32_t top_ = 0;
  uint32_t right_ = 0;
  uint32_t bottom_ = 0;
  const uint8_t* scan_ = nullptr;
};

}  // namespace

bool decode_plain_jpeg(ByteSpan data, const JpegMarkers& markers, const Window& window,
                       PlainJpeg& tables, Memory& memory, Planes& planes) {
  return Decoder(data, markers, window, tables).run(memory, planes);
}

}  // namespace spk::picture
