// Protobuf's wire format, walked without holding it.
#include "sources/proto_wire.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/varint.h"

namespace spk {
namespace {

std::string tag(uint32_t number, int type) {
  std::string out;
  append_varint(out, uint64_t{number} << 3 | static_cast<uint64_t>(type));
  return out;
}

TEST(WireWalk, GivesEachFieldByItsPlace) {
  std::string bytes = tag(1, 0);
  append_varint(bytes, 300);
  bytes += tag(4, 2);
  append_varint(bytes, 3000);
  const size_t data = bytes.size();
  bytes += std::string(3000, 'x') + tag(5, 0);
  append_varint(bytes, UINT64_MAX);
  bytes += tag(6, 5) + std::string("\1\0\0\2", 4) + tag(536870911, 1) + std::string(8, '\3');
  WireWalk walk{as_bytes(bytes)};
  WireField field;
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.value, 300u);
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.type, WireType::kBytes);
  EXPECT_EQ(field.offset, data);
  EXPECT_EQ(field.bytes, 3000u);
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.value, UINT64_MAX);
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.type, WireType::kFixed32);
  EXPECT_EQ(field.value, 0x02000001u);
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.number, 536870911u);
  EXPECT_EQ(field.value, 0x0303030303030303u);
  EXPECT_FALSE(*walk.next(&field));
}

TEST(WireWalk, WhatIsNoMessageIsToldWithItsPlace) {
  const auto fails_at = [](const std::string& bytes) {
    WireWalk walk{as_bytes(bytes)};
    WireField field;
    for (;;) {
      const auto more = walk.next(&field);
      if (!more.ok()) {
        EXPECT_EQ(more.status().code(), Code::kDamaged);
        return more.status().offset();
      }
      if (!*more) return Status::kNoOffset;
    }
  };
  EXPECT_EQ(fails_at(std::string("\0\0", 2)), 0u);  // field 0
  EXPECT_EQ(fails_at("\x08\x01\x0b"), 2u);          // a group
  EXPECT_EQ(fails_at("\x0a\x05"
                     "abcd"),
            2u);                                              // reaches beyond the end
  EXPECT_EQ(fails_at("\x08"), 1u);                            // no number
  EXPECT_EQ(fails_at("\x08\xff"), 1u);                        // half a number
  EXPECT_EQ(fails_at("\x0d\x01\x02"), 1u);                    // half a fixed number
  EXPECT_EQ(fails_at("\x08" + std::string(10, '\xff')), 1u);  // more than 64 bits
  EXPECT_EQ(fails_at("\x08" + std::string(9, '\xff') + "\x01"), Status::kNoOffset);
}

TEST(WireWalk, ReadsNothingOfALargeField) {
  std::string bytes = tag(4, 2);
  append_varint(bytes, 1 << 20);
  const uint64_t start = bytes.size();
  bytes += std::string(1 << 20, 'x') + tag(5, 0) + "\7";
  uint64_t read = 0;
  WireWalk walk(
      [&](uint64_t offset, MutableByteSpan into) -> Status {
        read += into.size();
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return {};
      },
      0, bytes.size());
  WireField field;
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.offset, start);
  ASSERT_TRUE(*walk.next(&field));
  EXPECT_EQ(field.value, 7u);
  EXPECT_FALSE(*walk.next(&field));
  EXPECT_LT(read, 2000u);
}

}  // namespace
}  // namespace spk
