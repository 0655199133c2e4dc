// What the first bytes of a file are.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "image/formats.h"

namespace spk::image {
namespace {

using namespace std::string_view_literals;

constexpr size_t kSniffBytes = 1024;
constexpr size_t kZeroBytes = 64 * 1024;
constexpr size_t kShortBytes = 4;  // fewer say nothing

struct Signature {
  size_t offset;
  std::string_view bytes;
  const char* name;
};

// Formats with a prober, for telling what a few remaining bytes began.
constexpr std::array kOwn = {
    Signature{0, "\xff\xd8\xff"sv, "jpeg"}, Signature{0, "\x89PNG\r\n\x1a\n"sv, "png"},
    Signature{0, "GIF87a"sv, "gif"},        Signature{0, "GIF89a"sv, "gif"},
    Signature{0, "RIFF"sv, "webp"},         Signature{0, "BM"sv, "bmp"},
    Signature{0, "II*\0"sv, "tiff"},        Signature{0, "MM\0*"sv, "tiff"},
};

// Pictures that are not taken.
constexpr std::array kOtherPictures = {
    Signature{0, "\xff\x0a"sv, "jpeg xl"},
    Signature{0, "\0\0\0\x0cJXL \r\n\x87\n"sv, "jpeg xl"},
    Signature{0, "\0\0\0\x0cjP  \r\n\x87\n"sv, "jpeg 2000"},
    Signature{0, "\xff\x4f\xff\x51"sv, "jpeg 2000"},
    Signature{0, "\xff\xd8\xff\xf7"sv, "jpeg-ls"},
    Signature{0, "8BPS"sv, "psd"},
    Signature{0, "\0\0\x01\0"sv, "ico"},
    Signature{0, "\0\0\x02\0"sv, "cur"},
    Signature{0, "gimp xcf "sv, "xcf"},
    Signature{0, "\x76\x2f\x31\x01"sv, "openexr"},
    Signature{0, "#?RADIANCE"sv, "radiance hdr"},
    Signature{0, "#?RGBE"sv, "radiance hdr"},
    Signature{0, "DDS "sv, "dds"},
    Signature{0, "qoif"sv, "qoi"},
    Signature{0, "FLIF"sv, "flif"},
    Signature{0, "BPG\xfb"sv, "bpg"},
    Signature{0, "icns"sv, "icns"},
    Signature{0, "II\xbc\x01"sv, "jpeg xr"},
    Signature{0, "IIRO"sv, "orf"},
    Signature{0, "IIU\0"sv, "rw2"},
    Signature{0, "FUJIFILMCCD-RAW"sv, "raf"},
    Signature{0, "\x8aMNG\r\n\x1a\n"sv, "mng"},
    Signature{0, "\x8bJNG\r\n\x1a\n"sv, "jng"},
    Signature{0, "\x01\xda\x01"sv, "sgi"},
    Signature{0, "\x59\xa6\x6a\x95"sv, "sun raster"},
    Signature{0, "SIMPLE  ="sv, "fits"},
    Signature{128, "DICM"sv, "dicom"},
    Signature{0, "AT&TFORM"sv, "djvu"},
    Signature{0, "farbfeld"sv, "farbfeld"},
};

constexpr std::array kOtherThings = {
    Signature{0, "version https://git-lfs.github.com/spec/"sv, "lfs pointer"},
    Signature{0, "\x1f\x8b"sv, "gzip"},
    Signature{0, "PK\x03\x04"sv, "zip"},
    Signature{0, "PK\x05\x06"sv, "zip"},
    Signature{0, "%PDF-"sv, "pdf"},
    Signature{0, "%!PS"sv, "postscript"},
    Signature{0, "BZh"sv, "bzip2"},
    Signature{0, "\xfd\x37zXZ\0"sv, "xz"},
    Signature{0, "\x28\xb5\x2f\xfd"sv, "zstd"},
    Signature{0, "7z\xbc\xaf\x27\x1c"sv, "7z"},
    Signature{0, "Rar!\x1a\x07"sv, "rar"},
    Signature{257, "ustar"sv, "tar"},
    Signature{0,
              "\x7f"
              "ELF"sv,
              "elf program"},
    Signature{0, "SQLite format 3\0"sv, "sqlite"},
    Signature{0, "\x93NUMPY"sv, "numpy array"},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, "hdf5"},
    Signature{0, "OggS"sv, "ogg"},
    Signature{0, "ID3"sv, "mp3"},
    Signature{0, "\x1a\x45\xdf\xa3"sv, "matroska"},
    Signature{0, "\0\0\x01\xba"sv, "mpeg video"},
    Signature{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "ole document"},
    Signature{0,
              "\0\0\0\x01"
              "Bud1"sv,
              "ds_store"},
    Signature{0, "\0\x05\x16\x07"sv, "appledouble"},
    Signature{0, "MZ"sv, "windows program"},
};

bool has(std::string_view head, const Signature& signature) {
  return head.size() >= signature.offset + signature.bytes.size() &&
         head.substr(signature.offset, signature.bytes.size()) == signature.bytes;
}

template <size_t N>
const char* find_signature(std::string_view head, const std::array<Signature, N>& list) {
  for (const Signature& signature : list) {
    if (has(head, signature)) return signature.name;
  }
  return nullptr;
}

std::string lower_start(std::string_view head) {
  while (!head.empty() && (head[0] == '\xef' || head[0] == '\xbb' || head[0] == '\xbf' ||
                           head[0] == ' ' || (head[0] >= '\t' && head[0] <= '\r'))) {
    head.remove_prefix(1);
  }
  std::string out(head);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// Markup and plain text; null where it is neither.
const char* text_kind(std::string_view head) {
  const std::string text = lower_start(head);
  const bool svg = text.find("<svg") != std::string::npos;
  if (text.starts_with("<svg") || (text.starts_with("<?xml") && svg) ||
      (text.starts_with("<!doctype svg"))) {
    return "svg";
  }
  for (std::string_view start : {"<!doctype html", "<html", "<head", "<body", "<script"}) {
    if (text.starts_with(start)) return "html";
  }
  if (text.starts_with("<?xml")) {
    return text.find("<html") != std::string::npos ? "html" : "xml";
  }
  if (text.starts_with("<!--") && text.find("<html") != std::string::npos) return "html";
  // A multi-byte character may be cut where the head ends.
  std::string_view whole = head;
  for (int cut = 0; cut < 3 && head.size() == kSniffBytes && !is_valid_utf8(whole); ++cut) {
    whole.remove_suffix(1);
  }
  if (!is_valid_utf8(whole)) return nullptr;
  for (unsigned char c : whole) {
    if ((c < 0x20 && !(c >= '\t' && c <= '\r')) || c == 0x7f) return nullptr;
  }
  return "text";
}

// ISO base media: the brands say which picture or film it is.
std::string iso_media_kind(std::string_view head) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(head.data());
  const size_t end = std::min<size_t>(load_be<uint32_t>(bytes), head.size());
  bool heic = false, avif = false, video = false, generic = false, cr3 = false;
  for (size_t at = 8; at + 4 <= end; at += 4) {
    if (at == 12) continue;  // minor version
    const std::string_view brand = head.substr(at, 4);
    avif |= brand == "avif" || brand == "avis";
    heic |= brand == "heic" || brand == "heix" || brand == "hevc" || brand == "hevx" ||
            brand == "heim" || brand == "heis";
    generic |= brand == "mif1" || brand == "msf1";
    cr3 |= brand == "crx ";
    video |= brand == "isom" || brand == "mp41" || brand == "mp42" || brand == "qt  " ||
             brand == "M4V " || brand == "iso2";
  }
  if (cr3) return "unsupported format: cr3";
  if (avif) return "unsupported format: avif";
  if (heic) return "unsupported format: heic";
  if (generic) return "unsupported format: heif";
  if (video) return "not an image (mp4)";
  return str_cat("unsupported format: iso media, brand '",
                 escape_bytes(head.substr(8, std::min<size_t>(4, head.size() - 8))), "'");
}

// "BM" alone is two letters; a known size of the second header must follow.
bool is_bmp(std::string_view head) {
  if (!head.starts_with("BM")) return false;
  if (head.size() < 18) return head.find_first_not_of("BM") != std::string_view::npos;
  switch (load_le<uint32_t>(reinterpret_cast<const uint8_t*>(head.data()) + 14)) {
    case 12:
    case 16:
    case 40:
    case 52:
    case 56:
    case 64:
    case 108:
    case 124: return true;
    default: return false;
  }
}

bool is_pnm(std::string_view head) {
  return head.size() >= 3 && head[0] == 'P' && head[1] >= '1' && head[1] <= '7' &&
         (head[2] == ' ' || head[2] == '\n' || head[2] == '\r' || head[2] == '\t');
}

PictureFormat own_format(std::string_view head) {
  if (head.starts_with("\xff\xd8"sv)) return PictureFormat::kJpeg;
  if (head.starts_with("\x89PNG\r\n\x1a\n"sv)) return PictureFormat::kPng;
  if (head.starts_with("GIF87a"sv) || head.starts_with("GIF89a"sv)) return PictureFormat::kGif;
  if (head.starts_with("RIFF"sv) && head.size() >= 12 && head.substr(8, 4) == "WEBP") {
    return PictureFormat::kWebp;
  }
  if (head.size() > 10 && has(head, {8, "CR"sv, ""}) && head.starts_with("II*\0"sv)) {
    return PictureFormat::kUnknown;  // Canon's raw format, a TIFF in name only
  }
  for (std::string_view start : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (head.starts_with(start)) return PictureFormat::kTiff;
  }
  if (is_bmp(head)) return PictureFormat::kBmp;
  return PictureFormat::kUnknown;
}

std::string describe(std::string_view head, uint64_t size) {
  for (const Signature& own : kOwn) {
    if (head.size() < own.bytes.size() && own.bytes.starts_with(head)) {
      return str_cat("truncated: ", count_of(size, "byte"), ", begins like ", own.name);
    }
  }
  if (head.size() < kShortBytes) {
    return str_cat("truncated: only ", count_of(size, "byte"));
  }
  if (head.starts_with("RIFF"sv)) {
    if (head.size() < 12)
      return str_cat("truncated: ", count_of(size, "byte"), ", begins like webp");
    return str_cat("not an image (riff ", escape_bytes(head.substr(8, 4)), ")");
  }
  if (has(head, {8, "CR"sv, ""}) && head.starts_with("II*\0"sv)) return "unsupported format: cr2";
  if (has(head, {4, "ftyp"sv, ""}) && head.size() >= 12) return iso_media_kind(head);
  if (const char* name = find_signature(head, kOtherPictures)) {
    return str_cat("unsupported format: ", name);
  }
  if (is_pnm(head)) return "unsupported format: pnm";
  if (const char* name = find_signature(head, kOtherThings)) {
    return str_cat("not an image (", name, ")");
  }
  if (const char* name = text_kind(head)) return str_cat("not an image (", name, ")");
  std::string digits;
  for (size_t i = 0; i < std::min<size_t>(8, head.size()); ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    const uint8_t byte = static_cast<uint8_t>(head[i]);
    digits += kHex[byte >> 4];
    digits += kHex[byte & 15];
  }
  return str_cat("not an image (unknown bytes 0x", digits, ")");
}

}  // namespace

Result<Sniffed> sniff(ByteView& view) {
  Sniffed result;
  SPK_ASSIGN(ByteSpan bytes, view.at(0, kSniffBytes));
  const std::string_view head = as_text(bytes);
  result.format = own_format(head);
  if (result.format != PictureFormat::kUnknown) return result;
  if (bytes.size() >= kShortBytes && is_all_zero(bytes)) {
    SPK_ASSIGN(ByteSpan more, view.at(0, kZeroBytes));
    if (is_all_zero(more)) {
      result.reject = str_cat("not an image (zeros): ", view.size(), " bytes");
      return result;
    }
    SPK_ASSIGN(bytes, view.at(0, kSniffBytes));
  }
  result.reject = describe(as_text(bytes), view.size());
  return result;
}

}  // namespace spk::image
