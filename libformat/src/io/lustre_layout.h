// Lustre's layouts as they cross its interface: the value of the extended attribute "lustre.lov",
// struct lov_user_md_v1, _v3 and lov_comp_md_v1 of lustre_user.h, little-endian. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "layout/stripe_layout.h"

namespace spk {

inline constexpr uint32_t kLustreMagicV1 = 0x0BD10BD0;
inline constexpr uint32_t kLustreMagicV3 = 0x0BD30BD0;
inline constexpr uint32_t kLustreMagicSpecific = 0x0BD50BD0;
inline constexpr uint32_t kLustreMagicComposite = 0x0BD60BD0;
inline constexpr uint32_t kLustreMagicForeign = 0x0BD70BD0;
inline constexpr uint32_t kLustreMagicSelfExtending = 0x0BD80BD0;
inline constexpr uint32_t kLustrePatternRaid0 = 1;
inline constexpr uint32_t kLustrePatternMdt = 0x100;
inline constexpr uint32_t kLustrePatternReleased = 0x80000000;
inline constexpr size_t kLustrePoolBytes = 16;                          // with the NUL at its end
inline constexpr uint64_t kLustreStripeUnitBytes = uint64_t{64} << 10;  // sizes are multiples of it
inline constexpr uint32_t kLustreMostStripes = 2000;

// Of a file or a directory's default. kDamaged where lengths contradict each other, kUnsupported
// for a magic that is not known; nothing outside of `value` is read.
Result<StripeLayout> parse_lustre_layout(ByteSpan value);

struct LustreRequest {
  uint64_t stripe_bytes = 0;  // 0: the directory's default
  uint32_t stripe_count = 0;  // 0: the same; kAllTargets: every one
  int32_t start_target = -1;  // -1: the file system chooses
  std::string pool;           // "": none
};
// What to set on a new file that has no objects yet. kInvalidArgument for what Lustre cannot do.
Result<std::vector<uint8_t>> encode_lustre_layout(const LustreRequest& request);

}  // namespace spk
