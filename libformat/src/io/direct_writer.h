// Bulk writes past the page cache (O_DIRECT), for files that are written once, front to back, and
// not read again at once. The bytes are copied into one aligned buffer instead of into fresh pages
// of the cache: on a local disk that takes a third less of the CPU, and throws out nothing that
// others have cached. Network file systems gather better than one buffer can, and tmpfs is memory:
// there, and wherever O_DIRECT is refused, the writes go through the page cache.
#pragma once

#include <cstdint>
#include <span>

#include "base/buffer.h"
#include "base/result.h"
#include "io/file.h"

namespace spk {

// Whether bulk writes to FILE should pass by the page cache: on local disks that can. The one place
// of that rule.
bool direct_writes_pay(const File& file);

class DirectWriter {
 public:
  // Enough for a disk to be busy, little enough to stay in the CPU's cache.
  static constexpr uint64_t kBufferBytes = uint64_t{2} << 20;

  // For FILE, which every call must be given. Takes kBufferBytes of memory where it is of use.
  explicit DirectWriter(const File& file);

  // As FILE.write_all_v(). Past the page cache if OFFSET is on a page; what is left behind the last
  // whole page goes through it. Not for two threads at once: FILE's flag changes meanwhile.
  Status write_all_v(const File& file, uint64_t offset, std::span<const ByteSpan> pieces);

  bool is_direct() const noexcept { return buffer_.size() != 0; }

 private:
  Status put(const File& file, uint64_t offset, uint64_t size_bytes);

  AlignedBuffer buffer_;  // empty: through the page cache
};

}  // namespace spk
