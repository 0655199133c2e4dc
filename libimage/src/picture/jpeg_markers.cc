#include "picture/jpeg_markers.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "picture/orientation.h"

namespace spk::picture {
namespace {

constexpr uint8_t kSoi = 0xd8;
constexpr uint8_t kEoi = 0xd9;
constexpr uint8_t kSos = 0xda;
constexpr uint8_t kDqt = 0xdb;
constexpr uint8_t kDht = 0xc4;
constexpr uint8_t kDac = 0xcc;
constexpr uint8_t kJpg = 0xc8;
constexpr uint8_t kDri = 0xdd;
constexpr uint8_t kApp0 = 0xe0;
constexpr uint8_t kApp1 = 0xe1;
constexpr uint8_t kApp14 = 0xee;

bool is_frame(uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != kDht && marker != kDac && marker != kJpg;
}
bool stands_alone(uint8_t marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7); }
bool begins_with(ByteSpan body, std::string_view text) {
  return body.size() >= text.size() && std::memcmp(body.data(), text.data(), text.size()) == 0;
}

// Segments that are malformed leave their part of the markers as it was; libjpeg has the last word.

void read_quant(ByteSpan body, JpegMarkers& to) {
  while (!body.empty()) {
    const bool wide = body[0] >> 4 != 0;
    const size_t number = body[0] & 15;
    const size_t bytes = wide ? 128 : 64;
    if (number > 3 || body.size() < 1 + bytes) return;
    for (size_t i = 0; i < 64; ++i) {
      to.quant[number][i] = wide ? load_be<uint16_t>(&body[1 + 2 * i]) : body[1 + i];
    }
    to.quant_defined[number] = true;
    body = body.subspan(1 + bytes);
  }
}

void read_huffman(ByteSpan body, JpegMarkers& to) {
  while (body.size() >= 17) {
    const size_t number = body[0] & 15;
    size_t total = 0;
    for (size_t i = 0; i < 16; ++i) total += body[1 + i];
    if (number > 3 || body[0] >> 4 > 1 || total > 256 || body.size() < 17 + total) return;
    JpegHuffman& table = body[0] >> 4 != 0 ? to.ac[number] : to.dc[number];
    table = {};
    table.defined = true;
    std::copy_n(&body[1], 16, table.counts.begin());
    std::copy_n(body.begin() + 17, total, table.symbols.begin());
    body = body.subspan(17 + total);
  }
}

void read_frame(uint8_t marker, ByteSpan body, JpegMarkers& to) {
  if (body.size() < 6 || body.size() < 6 + size_t{3} * body[5]) return;
  to.frame = marker;
  to.precision = body[0];
  to.height = load_be<uint16_t>(&body[1]);
  to.width = load_be<uint16_t>(&body[3]);
  to.component_count = body[5];
  for (size_t i = 0; i < std::min<size_t>(body[5], 4); ++i) {
    const ByteSpan from = body.subspan(6 + 3 * i, 3);
    JpegComponent& component = to.components[i];
    component.id = from[0];
    component.h = from[1] >> 4;
    component.v = from[1] & 15;
    component.quant = from[2];
  }
}

void read_scan(ByteSpan body, JpegMarkers& to) {
  const size_t count = to.component_count;
  if (count == 0 || count > 4 || body.size() < 4 + 2 * count || body[0] != count) return;
  for (size_t i = 0; i < count; ++i) {
    if (body[1 + 2 * i] != to.components[i].id) return;
    to.components[i].dc = body[2 + 2 * i] >> 4;
    to.components[i].ac = body[2 + 2 * i] & 15;
  }
  to.plain_scan =
      !to.odd && body[1 + 2 * count] == 0 && body[2 + 2 * count] == 63 && body[3 + 2 * count] == 0;
}

void read_segment(uint8_t marker, ByteSpan body, JpegMarkers& to) {
  if (is_frame(marker)) {
    if (to.frame != 0) to.odd = true;
    if (to.frame == 0) read_frame(marker, body, to);
  } else if (marker == kDqt) {
    read_quant(body, to);
  } else if (marker == kDht) {
    read_huffman(body, to);
  } else if (marker == kDri && body.size() >= 2) {
    to.restart_interval = load_be<uint16_t>(body.data());
  } else if (marker == kApp0 && begins_with(body, std::string_view("JFIF\0", 5)) &&
             body.size() >= 14) {
    to.jfif = true;
  } else if (marker == kApp1 && begins_with(body, std::string_view("Exif\0\0", 6)) &&
             to.orientation == 1) {
    to.orientation = exif_orientation(body.subspan(6));
  } else if (marker == kApp14 && begins_with(body, "Adobe") && body.size() >= 12) {
    to.adobe = true;
    to.adobe_transform = body[11];
  } else if (marker == kSos) {
    read_scan(body, to);
  }
}

Result<JpegMarkers> checked(const JpegMarkers& markers, size_t at) {
  if (markers.frame == 0) {
    return damaged(str_cat("a JPEG that ends at offset ", at, " without a frame header"));
  }
  return markers;
}

}  // namespace

Result<JpegMarkers> read_jpeg_markers(ByteSpan data) {
  JpegMarkers markers;
  size_t at = 2;
  while (at < data.size()) {
    // Bytes that are no marker are passed over, as libjpeg does.
    const auto* found = static_cast<const uint8_t*>(std::memchr(&data[at], 0xff, data.size() - at));
    if (found == nullptr) break;
    at = static_cast<size_t>(found - data.data());
    while (at < data.size() && data[at] == 0xff) ++at;
    if (at == data.size()) break;
    const uint8_t marker = data[at++];
    if (marker == 0 || marker == kSoi || stands_alone(marker)) continue;
    if (marker == kEoi || data.size() - at < 2) break;
    const size_t length = load_be<uint16_t>(&data[at]);
    if (length < 2 || length > data.size() - at) break;
    read_segment(marker, data.subspan(at + 2, length - 2), markers);
    at += length;
    if (marker == kSos) {
      markers.scan = at;
      break;
    }
  }
  return checked(markers, std::min(at, data.size()));
}

}  // namespace spk::picture
