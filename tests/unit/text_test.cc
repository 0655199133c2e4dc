#include "base/text.h"

#include <gtest/gtest.h>

namespace spk {
namespace {

TEST(Text, EscapingIsReversibleForEveryByte) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  all += "caf\xe9/\xf0\x9f\x93\xb7 \\ z";
  const std::string escaped = escape_bytes(all);
  EXPECT_TRUE(is_valid_utf8(escaped));
  EXPECT_EQ(unescape_bytes(escaped).value(), all);
  EXPECT_EQ(escape_bytes("a\\b\n\xff\xf0\x9f\x93\xb7"), "a\\\\b\\x0a\\xff\xf0\x9f\x93\xb7");
  EXPECT_FALSE(unescape_bytes("a\\q").ok());
  EXPECT_FALSE(unescape_bytes("a\\").ok());
  // What would be read, but is never written.
  EXPECT_FALSE(unescape_bytes("\\x41").ok());
  EXPECT_FALSE(unescape_bytes("\\xC3").ok());
  EXPECT_FALSE(unescape_bytes("\n").ok());
  EXPECT_FALSE(unescape_bytes("\xc3").ok());
}

TEST(Text, SizesTakeBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_size("4MiB").value(), 4u << 20);
  EXPECT_EQ(parse_size("512 KiB").value(), 512u << 10);
  EXPECT_EQ(parse_size("1G").value(), 1u << 30);
  EXPECT_EQ(parse_size("3kB").value(), 3000u);
  EXPECT_EQ(parse_size("17").value(), 17u);
  for (const char* bad :
       {"", "MiB", "4 Mib", "-1", "4.5MiB", "20000000000000000000", "99999999TiB"}) {
    EXPECT_EQ(parse_size(bad).status().code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(format_size(4u << 20), "4 MiB");
  EXPECT_EQ(format_size(1536), "1.50 KiB");
  EXPECT_EQ(format_count(1281167), "1,281,167");
}

TEST(Text, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(count_of(0, "sample"), "0 samples");
  EXPECT_EQ(count_of(1, "sample"), "1 sample");
  EXPECT_EQ(count_of(1281167, "sample"), "1,281,167 samples");
  EXPECT_EQ(count_of(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(count_of(2, "entry", "entries"), "2 entries");
  EXPECT_EQ(count_of(1, "file was", "files were"), "1 file was");
}

}  // namespace
}  // namespace spk
