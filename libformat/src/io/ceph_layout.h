// CephFS layouts as they cross its interface: the text of the extended attributes ceph.file.layout
// and ceph.dir.layout, "stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=NAME". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "layout/stripe_layout.h"

namespace spk {

inline constexpr uint64_t kCephUnitBytes = uint64_t{64} << 10;  // sizes are multiples of it
// osd_max_object_size as clusters come. Larger ones are taken by setxattr and by write; the bytes
// are refused only when they are synced, so the limit is heeded before anything is written.
inline constexpr uint64_t kCephMostObjectBytes = uint64_t{128} << 20;

// kDamaged where a number is missing or contradicts the rules of file layouts.
Result<StripeLayout> parse_ceph_layout(std::string_view text);

struct CephRequest {
  uint64_t stripe_bytes = 0;
  uint32_t stripe_count = 1;
  uint64_t object_bytes = 0;
  std::string pool;  // "": the directory's
};
// All in one text: set one by one, the fields pass through layouts that are refused.
// kInvalidArgument for what CephFS cannot do.
Result<std::string> format_ceph_layout(const CephRequest& request);

}  // namespace spk
