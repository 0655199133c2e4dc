#include "image/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "image/formats.h"
#include "image/jpeg_walk.h"
#include "unit/probe_pictures.h"

namespace spk {
namespace {

using test::Bytes;
using test::JpegRecipe;
using test::make_jpeg;
using test::operator+;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr CheckMode kStructure = CheckMode::kStructure;
constexpr CheckMode kDecode = CheckMode::kDecode;

ProbeResult probe(const Bytes& bytes, CheckMode mode = kStructure, uint64_t max_pixels = 1 << 20) {
  MemoryView view({bytes.data(), bytes.size()});
  auto result = probe_picture(view, {mode, max_pixels});
  EXPECT_TRUE(result.ok()) << result.status().to_string();
  return result.ok() ? *result : ProbeResult{};
}

Bytes text(std::string_view characters) { return Bytes(characters.begin(), characters.end()); }
Bytes prefix(const Bytes& bytes, size_t count) {
  return Bytes(bytes.begin(), bytes.begin() + static_cast<long>(count));
}

#if SPK_HAVE_JPEG

size_t find_marker(const Bytes& bytes, uint8_t code) {
  size_t at = 0;
  while (at + 1 < bytes.size() && (bytes[at] != 0xff || bytes[at + 1] != code)) ++at;
  return at;
}

// Accepted in both modes with these dimensions; no warning.
void expect_sound(const Bytes& bytes, PictureFormat format, uint32_t height, uint32_t width,
                  uint32_t channels) {
  for (CheckMode mode : {CheckMode::kNone, kStructure, kDecode}) {
    const ProbeResult result = probe(bytes, mode);
    EXPECT_EQ(result.reject, "") << "mode " << static_cast<int>(mode);
    EXPECT_EQ(result.format, format);
    EXPECT_EQ(result.height, height);
    EXPECT_EQ(result.width, width);
    EXPECT_EQ(result.channels, channels);
    EXPECT_THAT(result.warnings, IsEmpty());
  }
}

// Rejected in both modes however short it is cut, but for the last `spare` bytes.
void expect_no_prefix_accepted(const Bytes& bytes, size_t spare = 0) {
  ASSERT_GT(bytes.size(), spare);
  for (size_t count = 0; count + spare < bytes.size(); ++count) {
    for (CheckMode mode : {kStructure, kDecode}) {
      const ProbeResult result = probe(prefix(bytes, count), mode);
      ASSERT_NE(result.reject, "")
          << count << " of " << bytes.size() << " bytes, mode " << static_cast<int>(mode);
    }
  }
}

std::vector<JpegRecipe> jpeg_recipes() {
  std::vector<JpegRecipe> all(9);
  all[1].progressive = true;
  all[2].restart_mcus = 2;
  all[3].separate_scans = true;
  all[4].channels = 1;
  all[5].channels = 4;
  all[6].progressive = all[6].full_chroma = true;
  all[6].restart_mcus = 3;
  all[7].flat = true;
  all[8].flat = all[8].progressive = true;
  return all;
}

TEST(ProbeJpeg, SoundPicturesAreAccepted) {
  for (const JpegRecipe& recipe : jpeg_recipes()) {
    expect_sound(make_jpeg(recipe), PictureFormat::kJpeg, 44, 60,
                 static_cast<uint32_t>(recipe.channels));
  }
}

TEST(ProbeJpeg, NothingIsDecodedWithoutNeed) {
  EXPECT_FALSE(probe(make_jpeg({})).decoded);
  EXPECT_TRUE(probe(make_jpeg({}), kDecode).decoded);
}

TEST(ProbeJpeg, EveryCutIsRejectedUnlessOnlyEoiIsMissing) {
  int number = 0;
  for (const JpegRecipe& recipe : jpeg_recipes()) {
    SCOPED_TRACE(number++);
    const Bytes bytes = make_jpeg(recipe);
    expect_no_prefix_accepted(bytes, 2);
    for (size_t missing : {1, 2}) {
      const ProbeResult result = probe(prefix(bytes, bytes.size() - missing));
      EXPECT_EQ(result.reject, "");
      EXPECT_THAT(result.warnings, ElementsAre("no EOI marker"));
      EXPECT_TRUE(result.decoded);
    }
  }
}

TEST(ProbeJpeg, ReasonsOfCutsSayTruncated) {
  const Bytes bytes = make_jpeg({});
  EXPECT_EQ(probe(prefix(bytes, 1)).reject, "truncated: 1 byte, begins like jpeg");
  EXPECT_EQ(probe(prefix(bytes, 2)).reject, "truncated: the file ends at 2 before any scan");
  EXPECT_EQ(probe(prefix(bytes, 10)).reject,
            "truncated: segment FF e0 at offset 2 needs 18 bytes, the file ends at 10");
  for (size_t count = 2; count + 2 < bytes.size(); ++count) {
    ASSERT_THAT(probe(prefix(bytes, count)).reject, StartsWith("truncated: ")) << count;
  }
}

TEST(ProbeJpeg, CutsClosedByANewEoiAreFoundByDecoding) {
  for (const JpegRecipe& recipe : jpeg_recipes()) {
    if (recipe.progressive || recipe.separate_scans) continue;
    const Bytes bytes = make_jpeg(recipe);
    for (size_t count = 0; count + 2 < bytes.size(); ++count) {
      ASSERT_NE(probe(prefix(bytes, count) + Bytes{0xff, 0xd9}, kDecode).reject, "") << count;
    }
  }
}

TEST(ProbeJpeg, ScansTooShortForTheirBlocksAreDecoded) {
  const Bytes bytes = make_jpeg({.quality = 20});
  const size_t scan = find_marker(bytes, 0xda);
  const ProbeResult result = probe(prefix(bytes, scan + 20) + Bytes{0xff, 0xd9});
  EXPECT_THAT(result.reject, StartsWith("corrupt scan: the scan at offset "));
  EXPECT_THAT(result.reject, HasSubstr("bytes for 12 MCUs; libjpeg: "));
}

TEST(ProbeJpeg, RestartMarkersMustBeInTurnAndInNumber) {
  JpegRecipe recipe;
  recipe.restart_mcus = 1;
  const Bytes bytes = make_jpeg(recipe);
  std::vector<size_t> restarts;
  for (size_t i = 600; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0xff && bytes[i + 1] >= 0xd0 && bytes[i + 1] <= 0xd7) restarts.push_back(i);
  }
  ASSERT_EQ(restarts.size(), 11u);
  Bytes wrong = bytes;
  wrong[restarts[3] + 1] = 0xd6;
  EXPECT_THAT(probe(wrong).reject, HasSubstr("restart marker FF d6 at offset"));
  Bytes missing = bytes;
  missing.erase(missing.begin() + static_cast<long>(restarts[9]), missing.end() - 2);
  EXPECT_THAT(probe(missing).reject, HasSubstr("has 9 restart markers, its size demands 11"));
}

TEST(ProbeJpeg, HolesOfZerosInTheScanAreDecoded) {
  Bytes bytes = make_jpeg({.width = 300, .height = 300, .quality = 95});
  std::fill(bytes.end() - 8000, bytes.end() - 4000, uint8_t{0});
  EXPECT_THAT(probe(bytes).reject, HasSubstr("a run of zero bytes in the scan at offset"));
}

TEST(ProbeJpeg, BytesBehindEoiAreAWarning) {
  const Bytes first = make_jpeg({}), second = make_jpeg({.width = 16, .height = 16});
  for (const Bytes& tail : {Bytes(1), Bytes(5000), second, text("junk")}) {
    for (CheckMode mode : {kStructure, kDecode}) {
      const ProbeResult result = probe(first + tail, mode);
      EXPECT_EQ(result.reject, "");
      EXPECT_EQ(result.width, 60u);
      EXPECT_THAT(result.warnings, ElementsAre("bytes after the end"));
    }
  }
  // A cut picture is not mended by a whole one behind it.
  EXPECT_NE(probe(prefix(first, first.size() - 40) + second).reject, "");
}

TEST(ProbeJpeg, UnsupportedKindsAreNamed) {
  const Bytes bytes = make_jpeg({});
  const size_t frame = find_marker(bytes, 0xc0);
  const auto with = [&](size_t at, uint8_t value) {
    Bytes changed = bytes;
    changed[frame + at] = value;
    return probe(changed).reject;
  };
  const std::string where = "at offset " + std::to_string(frame);
  EXPECT_EQ(with(4, 12), "12-bit precision: SOF0 " + where + " says precision 12, only 8 is taken");
  EXPECT_EQ(with(1, 0xc3), "unsupported jpeg: lossless (SOF3 " + where + ")");
  EXPECT_EQ(with(1, 0xc9), "unsupported jpeg: arithmetic-coded (SOF9 " + where + ")");
  EXPECT_EQ(with(1, 0xc5), "unsupported jpeg: hierarchical (SOF5 " + where + ")");
  EXPECT_EQ(with(9, 2), "unsupported jpeg: SOF0 " + where + " says 2 components");
  EXPECT_EQ(with(6, 0), "unsupported jpeg: SOF0 " + where + " leaves the height to a DNL marker");
}

TEST(ProbeJpeg, MetadataNeverRejects) {
  const Bytes bytes = make_jpeg({});
  const Bytes rest(bytes.begin() + 2, bytes.end());
  for (uint8_t marker : {0xe1, 0xe2, 0xed, 0xee, 0xfe}) {
    Bytes segment = {0xff, 0xd8, 0xff, marker, 0xff, 0xff};
    segment.resize(segment.size() + 65533, 0xff);
    for (CheckMode mode : {kStructure, kDecode}) EXPECT_EQ(probe(segment + rest, mode).reject, "");
  }
}

TEST(ProbeJpeg, ProgressionThatEndsEarlyIsAWarningWithEoiAndACutWithout) {
  const Bytes bytes = make_jpeg({.progressive = true});
  size_t last_scan = 0;
  for (size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == 0xff && bytes[i + 1] == 0xc4) last_scan = i;  // its Huffman table
  }
  EXPECT_THAT(probe(prefix(bytes, last_scan)).reject, HasSubstr("before the picture is complete"));
  const ProbeResult closed = probe(prefix(bytes, last_scan) + Bytes{0xff, 0xd9});
  EXPECT_EQ(closed.reject, "");
  EXPECT_THAT(closed.warnings, ElementsAre("progressive scans end before full precision"));
}

TEST(ProbeJpeg, ViewsOfWindowsGiveTheSame) {
  const Bytes bytes = make_jpeg({.width = 1600, .height = 1100, .quality = 100, .restart_mcus = 1});
  ASSERT_GT(bytes.size(), 2 * ByteView::kWindowBytes);
  for (CheckMode mode : {kStructure, kDecode}) {
    for (size_t size : {bytes.size(), bytes.size() - 2, bytes.size() - 300}) {
      CallbackView view(size, [&](uint64_t offset, MutableByteSpan into) {
        EXPECT_LE(offset + into.size(), size);
        std::memcpy(into.data(), bytes.data() + offset, into.size());
        return Status();
      });
      const auto result = probe_picture(view, {mode, 1u << 21});
      ASSERT_TRUE(result.ok());
      const ProbeResult other = probe(prefix(bytes, size), mode, 1u << 21);
      EXPECT_EQ(result->reject, other.reject);
      EXPECT_EQ(result->warnings, other.warnings);
      EXPECT_EQ(result->reject.empty(), size + 2 >= bytes.size());
    }
  }
}

#endif  // SPK_HAVE_JPEG

// One grey block by hand: builds without libjpeg check the structure, and say what they cannot
// tell.
TEST(ProbeJpeg, BuildsWithoutDecoderSaySo) {
  Bytes bytes = {0xff, 0xd8, 0xff, 0xdb, 0, 67, 0};
  bytes.insert(bytes.end(), 64, 16);
  for (uint8_t table : {0x00, 0x10}) {  // one code of one bit for symbol 0
    bytes = bytes + Bytes{0xff, 0xc4, 0, 20, table, 1} + Bytes(15) + Bytes{0};
  }
  bytes = bytes + Bytes{0xff, 0xc0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
  bytes = bytes + Bytes{0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0, 0x3f, 0xff, 0xd9};
  EXPECT_EQ(probe(bytes).reject, "");
  EXPECT_FALSE(probe(bytes).decoded);
  const ProbeResult decoded = probe(bytes, kDecode), open = probe(prefix(bytes, bytes.size() - 2));
#if SPK_HAVE_JPEG
  EXPECT_EQ(decoded.reject, "");
  EXPECT_EQ(open.reject, "");
#else
  EXPECT_EQ(decoded.reject, "cannot be decoded: this build has no libjpeg");
  EXPECT_THAT(open.reject, StartsWith("truncated: no EOI marker behind the scan at offset "));
  EXPECT_THAT(open.reject, HasSubstr("this build has no libjpeg"));
#endif
}

TEST(ProbeJpeg, MarkerSearchAgreesWithTheObviousOne) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 3000; ++round) {
    Bytes bytes(random() % 300);
    for (uint8_t& byte : bytes) {
      const uint32_t kind = random() % 64;
      byte = kind < 3 ? 0xff : kind < 40 ? 0 : static_cast<uint8_t>(random());
    }
    size_t expected = bytes.size();
    for (size_t i = bytes.size(); i-- > 1;) {
      if (bytes[i - 1] == 0xff && bytes[i] != 0) expected = i - 1;
    }
    ASSERT_EQ(image::find_jpeg_marker({bytes.data(), bytes.size()}), expected) << "round " << round;
  }
}

TEST(Probe, ErrorsOfTheViewAreStatusNotRejects) {
  const Bytes start = {0xff, 0xd8, 0xff, 0xe0, 0xff, 0xff};  // segments without end
  for (uint64_t good : {uint64_t{0}, uint64_t{ByteView::kWindowBytes}}) {
    CallbackView view(5 * ByteView::kWindowBytes, [&](uint64_t offset, MutableByteSpan into) {
      if (offset >= good) return Status::from_errno(5, "read");
      for (size_t i = 0; i < into.size(); ++i) {
        const size_t at = (i + static_cast<size_t>(offset)) % 65537;
        into[i] = i < 2 ? start[i] : at >= 2 && at < 6 ? start[at] : 0;
      }
      return Status();
    });
    const auto result = probe_picture(view, {});
    EXPECT_EQ(result.status().code(), Code::kIo);
    EXPECT_EQ(result.status().os_errno(), 5);
  }
}

TEST(Probe, OtherBytesAreNamed) {
  const std::vector<std::pair<Bytes, std::string>> cases = {
      {{}, "empty file"},
      {{0x89}, "truncated: 1 byte, begins like png"},
      {{7}, "truncated: only 1 byte"},
      {Bytes(4096), "not an image (zeros): 4096 bytes"},
      {text("\n <!DOCTYPE HTML><p>403"), "not an image (html)"},
      {text("<?xml version=\"1.0\"?><svg/>"), "not an image (svg)"},
      {text("<?xml version=\"1.0\"?><a/>"), "not an image (xml)"},
      {text("version https://git-lfs.github.com/spec/v1\noid x"), "not an image (lfs pointer)"},
      {{0x1f, 0x8b, 8, 0, 0}, "not an image (gzip)"},
      {text("PK\x03\x04zip"), "not an image (zip)"},
      {text("%PDF-1.4"), "not an image (pdf)"},
      {text("404: Not Found"), "not an image (text)"},
      {text("BM is a start of text, too"), "not an image (text)"},
      {Bytes{0, 0, 0, 24} + text("ftypavif") + Bytes(4) + text("mif1avif"),
       "unsupported format: avif"},
      {Bytes{0, 0, 0, 24} + text("ftypmif1") + Bytes(4) + text("mif1heic"),
       "unsupported format: heic"},
      {{0xff, 0x0a, 1, 2}, "unsupported format: jpeg xl"},
      {text("8BPS") + Bytes(20, 1), "unsupported format: psd"},
      {{0, 0, 1, 0, 1, 0, 16, 16}, "unsupported format: ico"},
      {text("P6\n2 2\n255\n"), "unsupported format: pnm"},
      {text("RIFF\x10"), "truncated: 5 bytes, begins like webp"},
      {{1, 2, 3, 0xfe, 0xdc, 9, 8, 7, 6}, "not an image (unknown bytes 0x010203fedc090807)"},
  };
  for (const auto& [bytes, reason] : cases) {
    EXPECT_EQ(probe(bytes).reject, reason);
    EXPECT_EQ(probe(bytes, kDecode).reject, reason);
    EXPECT_EQ(probe(bytes, CheckMode::kNone).reject, "");
  }
}

}  // namespace
}  // namespace spk
