// Reads the stripe layout of a file or directory, and makes files with a layout that was asked for.
// Needs no vendor's library: extended attributes and ioctls alone, as any user may use them.
// Detection is by what the file system answers, not by its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/file.h"
#include "io/stripe_calls.h"
#include "layout/stripe_layout.h"

namespace spk {

// Of an open file; or of an open directory: what new files in it get, also where it inherits that
// from further up. A system of kNone and no components where nothing is told. Errors (kDamaged,
// kUnsupported) are answers that make no sense; packing and reading go on without a layout then.
Result<StripeLayout> read_stripes(int fd, const FileSystemInfo& fs,
                                  const StripeCalls& calls = kernel_stripe_calls());

// How many targets the file system has in all; 0 where it does not tell (only Lustre does).
uint32_t count_targets(int fd, const FileSystemInfo& fs,
                       const StripeCalls& calls = kernel_stripe_calls());

// Zeros and "" leave it to the directory.
struct StripeRequest {
  uint64_t stripe_bytes = 0;
  uint32_t stripe_count = 0;
  uint64_t object_bytes = 0;  // Ceph; 0: as large as a stripe
  std::string pool{};
  int32_t start_target = -1;  // Lustre; -1: the file system chooses
  bool operator==(const StripeRequest&) const = default;
  bool asks() const noexcept {
    return stripe_bytes != 0 || stripe_count != 0 || !pool.empty() || start_target >= 0;
  }
};

// kInvalidArgument where this file system could never do it; the option is named. Writes nothing.
Status check_stripe_request(StripeSystem system, const StripeRequest& request);

struct StripedFile {
  File file;
  StripeLayout got;  // read back
  Status refused;    // ok, or why the file has the directory's layout and not what was asked for
};

// A new, empty file as File::create makes it, striped as asked before its first byte. Where the
// file system refuses the layout the file is made plain, and `refused` says why. SYSTEM is of the
// directory, as read_stripes found it.
Result<StripedFile> create_striped(const Directory& dir, std::string_view name,
                                   const FileSystemInfo& fs, StripeSystem system,
                                   const StripeRequest& request,
                                   const StripeCalls& calls = kernel_stripe_calls());

}  // namespace spk
