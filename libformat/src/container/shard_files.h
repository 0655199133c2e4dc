// The shard files of an open pack: opened when they are first needed, from the cache where it has
// them, otherwise relative to the pack's directory descriptor, and kept open while there is room. A
// pack may have more shards than a process may have open files; the ones not used lately are closed
// then.
//
// Thread safety: all members may be called by several threads at once, and after fork(). A shard
// that is open is pinned by one atomic addition.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "container/process_lock.h"
#include "container/shard_cache.h"
#include "format/index.h"
#include "io/directory.h"
#include "io/file.h"
#include "io/mapping.h"

namespace spk {

enum class ShardAccess {
  kDescriptor,
  kMapping,  // where the shard lies on a local file system that can; otherwise a descriptor
  kDirect,   // a descriptor that passes by the page cache, where the file system can
};

// What is open of a shard: its file, or a mapping of it.
struct OpenShard {
  File file;
  Mapping mapping;
  // Reads must then begin and end at multiples of the page and go to page-aligned memory.
  bool file_is_direct = false;

  bool is_mapped() const noexcept { return !file.is_open(); }

  // Reads from either. Errors have path and offset where the file is read.
  Status read(uint64_t offset, MutableByteSpan into) const;
};

class ShardFiles {
 public:
  // DIR, ROWS and CACHE must outlive it. MAX_OPEN 0: half of what the process may have open
  // (RLIMIT_NOFILE), or for mappings, which need no descriptor, half of what Linux allows.
  ShardFiles(const Directory& dir, const std::vector<ShardRow>& rows, const ShardCache& cache,
             ShardAccess access, uint32_t max_open = 0);
  ~ShardFiles();  // REQUIRES that there is no pin
  ShardFiles(const ShardFiles&) = delete;
  ShardFiles& operator=(const ShardFiles&) = delete;

  // Keeps a shard open while it lives.
  class Pin {
   public:
    Pin() noexcept = default;
    Pin(Pin&& other) noexcept : pins_(std::exchange(other.pins_, nullptr)), shard_(other.shard_) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(pins_, other.pins_);
      std::swap(shard_, other.shard_);
      return *this;
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      if (pins_ != nullptr) pins_->fetch_sub(1, std::memory_order_release);
    }
    const OpenShard& operator*() const noexcept { return *shard_; }
    const OpenShard* operator->() const noexcept { return shard_; }

   private:
    friend class ShardFiles;
    Pin(std::atomic<int32_t>* pins, const OpenShard* shard) noexcept : pins_(pins), shard_(shard) {}
    std::atomic<int32_t>* pins_ = nullptr;
    const OpenShard* shard_ = nullptr;
  };

  // REQUIRES a shard of the pack. kDamaged where the file is missing. One that was cut can be read
  // up to its end.
  Status pin(uint32_t shard, Pin& pin) const;

  uint32_t open_count() const noexcept { return open_count_.load(std::memory_order_relaxed); }
  // Of the copy that was opened last; where none was, of the one that would be.
  std::string path(uint32_t shard) const;
  // Annotates an error of reading a shard, or of its bytes, with shard, path, and what helps where
  // it was read from the cache.
  Status blame(Status status, uint32_t shard) const;

 private:
  // Far below zero while the shard is closed, so that adding a pin tells at once whether it is
  // open.
  static constexpr int32_t kClosed = -(1 << 30);
  enum class Copy : uint8_t { kNoneYet, kPack, kCache };
  struct Slot {
    std::atomic<int32_t> pins{kClosed};
    std::atomic<bool> used_lately{false};
    std::atomic<Copy> copy{Copy::kNoneYet};  // that was opened last
    ProcessLock opening;                     // held to open or close
    std::atomic<OpenShard*> open{nullptr};
  };

  Status open_and_pin(uint32_t shard, Pin& pin) const;
  Result<std::unique_ptr<OpenShard>> open_shard(uint32_t shard) const;
  Copy copy_of(uint32_t shard) const;
  bool close_one() const;

  const Directory& dir_;
  const std::vector<ShardRow>& rows_;
  const ShardCache& cache_;
  const ShardAccess access_;
  const uint32_t max_open_;
  const std::unique_ptr<Slot[]> slots_;
  mutable std::atomic<uint32_t> open_count_{0};
  mutable std::atomic<uint32_t> hand_{0};  // where the search for one to close goes on
};

}  // namespace spk
