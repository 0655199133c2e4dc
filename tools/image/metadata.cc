#include "image/metadata.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/bytes.h"
#include "base/checked.h"
#include "image/still.h"

#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace spk::image {
namespace {

constexpr size_t kMostProfileBytes = size_t{4} << 20;
constexpr std::string_view kIccName("ICC_PROFILE\0", 12);

bool starts_with(ByteSpan data, std::string_view text) {
  return data.size() >= text.size() &&
         std::equal(text.begin(), text.end(), data.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

// One part of a file: a JPEG segment, a PNG or RIFF chunk.
struct Part {
  uint32_t code = 0;  // the marker's second byte, or the four letters as big-endian
  size_t begin = 0;   // of all of it
  size_t end = 0;
  ByteSpan content;
};

constexpr uint32_t letters(const char (&name)[5]) {
  return static_cast<uint32_t>(static_cast<uint8_t>(name[0])) << 24 |
         static_cast<uint32_t>(static_cast<uint8_t>(name[1])) << 16 |
         static_cast<uint32_t>(static_cast<uint8_t>(name[2])) << 8 |
         static_cast<uint32_t>(static_cast<uint8_t>(name[3]));
}

// The segments before the first scan; *rest is where that begins. False where they are cut.
bool jpeg_parts(ByteSpan data, std::vector<Part>* parts, size_t* rest) {
  size_t at = 2;
  while (range_fits(at, 4, data.size())) {
    if (data[at] != 0xff) return false;
    const uint8_t code = data[at + 1];
    if (code == 0xff) {  // fill bytes
      ++at;
      continue;
    }
    if (code == 0xda) {
      *rest = at;
      return true;
    }
    const size_t length = load_be<uint16_t>(&data[at + 2]);
    if (length < 2 || !range_fits(at + 2, length, data.size())) return false;
    parts->push_back({code, at, at + 2 + length, data.subspan(at + 4, length - 2)});
    at += 2 + length;
  }
  return false;
}

bool png_parts(ByteSpan data, std::vector<Part>* parts) {
  for (size_t at = 8; range_fits(at, 12, data.size());) {
    const size_t length = load_be<uint32_t>(&data[at]);
    if (!range_fits(at + 12, length, data.size())) return false;
    const uint32_t code = load_be<uint32_t>(&data[at + 4]);
    parts->push_back({code, at, at + 12 + length, data.subspan(at + 8, length)});
    at += 12 + length;
    if (code == letters("IEND")) return true;
  }
  return false;
}

bool webp_parts(ByteSpan data, std::vector<Part>* parts) {
  size_t at = 12;
  while (range_fits(at, 8, data.size())) {
    const size_t length = load_le<uint32_t>(&data[at + 4]);
    if (!range_fits(at + 8, length, data.size())) return false;
    const size_t end = std::min(at + 8 + length + length % 2, data.size());
    parts->push_back({load_be<uint32_t>(&data[at]), at, end, data.subspan(at + 8, length)});
    at = end;
  }
  return at == data.size();
}

std::vector<uint8_t> copy(ByteSpan bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<uint8_t> jpeg_profile(ByteSpan data) {
  std::vector<Part> parts;
  size_t rest = 0;
  if (!jpeg_parts(data, &parts, &rest)) return {};
  std::vector<ByteSpan> pieces;
  for (const Part& part : parts) {
    if (part.code != 0xe2 || !starts_with(part.content, kIccName) || part.content.size() < 14) {
      continue;
    }
    const size_t number = part.content[12];
    const size_t count = part.content[13];
    if (number < 1 || number > count) return {};
    pieces.resize(std::max(pieces.size(), count));
    pieces[number - 1] = part.content.subspan(14);
  }
  std::vector<uint8_t> profile;
  for (const ByteSpan piece : pieces) {
    if (piece.empty()) return {};
    profile.insert(profile.end(), piece.begin(), piece.end());
  }
  return profile;
}

std::vector<uint8_t> inflated([[maybe_unused]] ByteSpan packed) {
  std::vector<uint8_t> out;
#if SPK_HAVE_ZLIB
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return {};
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  int end = Z_OK;
  while (end == Z_OK && out.size() < kMostProfileBytes) {
    const size_t had = out.size();
    out.resize(had + 65536);
    stream.next_out = &out[had];
    stream.avail_out = 65536;
    end = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (end != Z_STREAM_END) out.clear();
#endif
  return out;
}

std::vector<uint8_t> png_profile(ByteSpan data) {
  std::vector<Part> parts;
  if (!png_parts(data, &parts)) return {};
  for (const Part& part : parts) {
    if (part.code != letters("iCCP")) continue;
    const auto zero = std::find(part.content.begin(), part.content.end(), 0);
    const auto name = static_cast<size_t>(zero - part.content.begin());
    if (name + 2 >= part.content.size()) return {};
    return inflated(part.content.subspan(name + 2));
  }
  return {};
}

std::vector<uint8_t> webp_profile(ByteSpan data) {
  std::vector<Part> parts;
  if (!webp_parts(data, &parts)) return {};
  for (const Part& part : parts) {
    if (part.code == letters("ICCP")) return copy(part.content);
  }
  return {};
}

// The file without the parts that are to go; what follows the last part stays.
std::vector<uint8_t> keep_parts(ByteSpan data, const std::vector<Part>& parts,
                                const std::function<bool(const Part&)>& goes) {
  std::vector<uint8_t> out;
  out.reserve(data.size());
  size_t from = 0;
  for (const Part& part : parts) {
    if (!goes(part)) continue;
    out.insert(out.end(), data.begin() + static_cast<ptrdiff_t>(from),
               data.begin() + static_cast<ptrdiff_t>(part.begin));
    from = part.end;
  }
  out.insert(out.end(), data.begin() + static_cast<ptrdiff_t>(from), data.end());
  return out;
}

// APP0 is JFIF's and APP14 tells how colours are coded.
bool jpeg_part_goes(const Part& part) {
  if (part.code == 0xfe) return true;  // a comment
  if (part.code < 0xe1 || part.code > 0xef || part.code == 0xee) return false;
  return !(part.code == 0xe2 && starts_with(part.content, kIccName));
}

bool png_part_goes(const Part& part) {
  for (const uint32_t code :
       {letters("tEXt"), letters("zTXt"), letters("iTXt"), letters("eXIf"), letters("tIME")}) {
    if (part.code == code) return true;
  }
  return false;
}

bool webp_part_goes(const Part& part) {
  return part.code == letters("EXIF") || part.code == letters("XMP ");
}

}  // namespace

std::vector<uint8_t> embedded_profile(ByteSpan data, PictureFormat format) {
  std::vector<uint8_t> profile;
  if (format == PictureFormat::kJpeg) profile = jpeg_profile(data);
  if (format == PictureFormat::kPng) profile = png_profile(data);
  if (format == PictureFormat::kWebp) profile = webp_profile(data);
  if (is_still(format)) profile = still_profile(data, format);
  constexpr size_t kHeaderBytes = 128;
  if (profile.size() < kHeaderBytes || profile.size() > kMostProfileBytes) return {};
  return profile;
}

std::vector<uint8_t> icc_profile(ByteSpan data, PictureFormat format, uint32_t channels) {
  std::vector<uint8_t> profile = embedded_profile(data, format);
  if (profile.empty()) return {};
  const std::string_view space = channels == 1 ? "GRAY" : "RGB ";
  if (!starts_with(ByteSpan(profile).subspan(16), space)) return {};
  return profile;
}

bool png_has_transparency(ByteSpan data) {
  std::vector<Part> parts;
  (void)png_parts(data, &parts);
  return std::any_of(parts.begin(), parts.end(),
                     [](const Part& part) { return part.code == letters("tRNS"); });
}

std::vector<uint8_t> without_metadata(ByteSpan data, PictureFormat format) {
  std::vector<Part> parts;
  if (format == PictureFormat::kJpeg) {
    size_t rest = 0;
    if (!jpeg_parts(data, &parts, &rest)) return copy(data);
    return keep_parts(data, parts, jpeg_part_goes);
  }
  if (format == PictureFormat::kPng) {
    if (!png_parts(data, &parts)) return copy(data);
    return keep_parts(data, parts, png_part_goes);
  }
  if (format != PictureFormat::kWebp || !webp_parts(data, &parts)) return copy(data);
  std::vector<uint8_t> out = keep_parts(data, parts, webp_part_goes);
  if (!parts.empty() && parts[0].code == letters("VP8X") && parts[0].content.size() >= 10) {
    out[20] = static_cast<uint8_t>(out[20] & ~0x0c);  // no EXIF, no XMP
  }
  if (out.size() != data.size()) store_le<uint32_t>(&out[4], static_cast<uint32_t>(out.size() - 8));
  return out;
}

}  // namespace spk::image
