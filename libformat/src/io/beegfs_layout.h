// BeeGFS' stripe calls: ioctls of beegfs_client.h (client_module/include/uapi), by their numbers on
// x86-64 and aarch64.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "io/stripe_calls.h"
#include "layout/stripe_layout.h"

namespace spk {

inline constexpr uint64_t kBeegfsLeastChunkBytes = uint64_t{64} << 10;

// Of a file or directory. Pattern, chunk size and targets; a file of buddy mirrors tells the groups
// for targets. System kNone where it answers nothing; kDamaged where the answer makes no sense.
Result<StripeLayout> read_beegfs_layout(int fd, const StripeCalls& calls);

// kInvalidArgument: chunks are powers of two from 64 KiB on. Zeros leave it to the directory.
Status check_beegfs_request(uint64_t chunk_bytes, uint32_t target_count);

// Makes the file, which must not be there. The errno of what the file system refused is kept.
Status make_beegfs_file(int directory_fd, std::string_view name, uint64_t chunk_bytes,
                        uint32_t target_count, const StripeCalls& calls);

}  // namespace spk
