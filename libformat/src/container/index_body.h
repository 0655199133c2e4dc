// The body of an index file, loaded block by block as it is needed. Memory for all of it is
// reserved when it is made, but takes no pages before a block is loaded, so that a column of a
// section has one address whether it is there or not. The file itself is never mapped: on a network
// file system that would mean one page fault at a time.
//
// Thread safety: all members may be called by several threads at once, and after fork().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "container/process_lock.h"
#include "format/constants.h"
#include "format/index.h"
#include "io/file.h"

namespace spk {

class IndexBody {
 public:
  // Takes the file over. HEAD must come from decode_index_head, and FILE be as long as it says.
  // kNoMemory where the address space is too small.
  static Result<std::unique_ptr<IndexBody>> make(File file, const IndexHead& head);
  ~IndexBody();
  IndexBody(const IndexBody&) = delete;
  IndexBody& operator=(const IndexBody&) = delete;

  // The blocks that lie within FIRST, the first bytes of the file, need not be read again.
  void adopt(ByteSpan first);

  // True if all these bytes are loaded. REQUIRES that they lie within the body. Offsets are from
  // the file's start.
  bool ready(uint64_t offset, uint64_t bytes) const noexcept {
    if (bytes == 0) return true;
    const uint64_t last = (offset - head_bytes_ + bytes - 1) / kIndexBlockBytes;
    for (uint64_t block = (offset - head_bytes_) / kIndexBlockBytes; block <= last; ++block) {
      if (ready_[block].load(std::memory_order_acquire) == 0) return false;
    }
    return true;
  }
  // Reads what is missing and compares the checksums of its blocks, each once. kDamaged names the
  // block.
  Status load(uint64_t offset, uint64_t bytes) const {
    if (ready(offset, bytes)) return {};
    return load_missing(offset, bytes);
  }
  // REQUIRES that the range lies within the body. May be looked at once it is loaded.
  ByteSpan view(uint64_t offset, uint64_t bytes) const noexcept {
    return {memory_ + (offset - head_bytes_), bytes};
  }
  // True if the range lies within the body.
  bool contains(uint64_t offset, uint64_t bytes) const noexcept;
  const std::string& path() const noexcept { return file_.path(); }

 private:
  IndexBody(File file, const IndexHead& head, uint8_t* memory);
  Status load_missing(uint64_t offset, uint64_t bytes) const;
  Status load_block(uint64_t block) const;
  uint64_t block_bytes(uint64_t block) const noexcept;

  const File file_;
  const uint64_t head_bytes_;
  const uint64_t body_bytes_;
  const std::vector<uint64_t> checksums_;
  uint8_t* const memory_;  // body_bytes_ of them, null where there are none
  // By block: 1 once it may be looked at. A block is filled under its lock.
  const std::unique_ptr<std::atomic<uint8_t>[]> ready_;
  mutable std::array<ProcessLock, 64> locks_;
};

}  // namespace spk
