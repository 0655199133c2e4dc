// How a parallel file system deals the bytes of a file to its storage targets. Pure arithmetic;
// what the file system says is read in io/stripes.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spk {

enum class StripeSystem : uint8_t { kNone, kLustre, kBeegfs, kCeph };

// "none", "lustre", "beegfs", "ceph", as in layout.json.
const char* stripe_system_name(StripeSystem system) noexcept;

// One stretch of a file that is dealt by one rule.
struct StripeComponent {
  uint64_t begin_bytes = 0;
  uint64_t end_bytes = UINT64_MAX;
  uint64_t stripe_bytes = 0;  // 0: not said, the file system's default
  uint32_t stripe_count = 0;  // objects the stripes go round; 0: not said, kAllTargets: every one
  uint64_t object_bytes = 0;  // Ceph: where the next set of objects begins; 0 elsewhere
  std::string pool;           // "" where none is said
  // Of a file whose objects exist: targets[k] serves stripe k mod stripe_count. Empty: not told.
  std::vector<uint32_t> targets;
  bool operator==(const StripeComponent&) const = default;
};
inline constexpr uint32_t kAllTargets = UINT32_MAX;

// Of a file; or of a directory: what files made in it get.
struct StripeLayout {
  StripeSystem system = StripeSystem::kNone;
  std::vector<StripeComponent> components;  // by offset; empty: the file system does not say
  bool composite = false;                   // its parts have rules of their own (Lustre PFL, DoM)
  bool released = false;                    // the data is in an archive (HSM): reading recalls it
  bool foreign = false;                     // the layout is one that only another program knows
  bool operator==(const StripeLayout&) const = default;

  // The component that OFFSET lies in; null where none is said.
  const StripeComponent* at(uint64_t offset) const noexcept;
};

// Which target serves the byte at OFFSET. Lustre and BeeGFS, whose targets are told: stripe k of a
// component goes to targets[k mod stripe_count]. Nothing where it is not known; on Ceph, which
// places each object by hashing its name, never.
std::optional<uint32_t> stripe_target(const StripeLayout& layout, uint64_t offset) noexcept;

// Ceph: the number of the object that holds the byte at OFFSET (docs.ceph.com, file layouts).
// Nothing for other systems.
std::optional<uint64_t> stripe_object(const StripeLayout& layout, uint64_t offset) noexcept;

}  // namespace spk
