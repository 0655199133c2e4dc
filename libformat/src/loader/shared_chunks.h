// Chunks that several loaders of one node want, each read by one of them into shared memory.
//
// Sharing is an optimisation: whatever goes wrong with it, the loader that asks is told to read by
// itself. Every slot of the segment is empty, being read by one member, or ready; those that are
// ready and held by nobody make room, the one used longest ago first. Members may be killed at any
// moment: what they were reading becomes empty again, and what they held is let go of, when another
// member comes upon it (by number and starting time of their process).
//
// The one lock guards the way from ready or empty to reading. It is held for microseconds, and
// taken from a holder that is dead. To publish, to give up and to let go needs no lock: these are
// single stores of the member that reads, or holds.
//
// Thread safety: all members may be called by several threads at once. Belongs to the process that
// joined; a child of fork() must not use it, or the batches that lie in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/bytes.h"
#include "base/result.h"
#include "loader/shared_segment.h"

namespace spk {

class SharedChunks;

// A chunk in shared memory. Lets go of it, or gives up reading it, at the end of its life.
class SharedChunk {
 public:
  enum class State : uint8_t {
    kNone,   // not to be had: to be read elsewhere
    kReady,  // bytes() are there
    kMine,   // bytes() are to be filled by who asked, and then published
    kBusy,   // another thread or process is reading it
  };

  SharedChunk() noexcept = default;
  SharedChunk(SharedChunk&& other) noexcept { swap(other); }
  SharedChunk& operator=(SharedChunk&& other) noexcept {
    SharedChunk taken(std::move(other));
    swap(taken);
    return *this;
  }
  SharedChunk(const SharedChunk&) = delete;
  SharedChunk& operator=(const SharedChunk&) = delete;
  ~SharedChunk();

  State state() const noexcept { return state_; }
  // Of the slot: may be more than the chunk has. Written only where kMine.
  MutableByteSpan bytes() const noexcept;
  // What its reader compared with checksums and found good; 0: nothing.
  uint64_t checked() const noexcept;
  // kMine becomes kReady, for everybody.
  void publish(uint64_t checked) noexcept;

 private:
  friend class SharedChunks;
  SharedChunk(std::shared_ptr<SharedChunks> owner, State state, uint32_t slot) noexcept
      : owner_(std::move(owner)), state_(state), slot_(slot) {}
  void swap(SharedChunk& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(state_, other.state_);
    std::swap(slot_, other.slot_);
  }
  std::shared_ptr<SharedChunks> owner_;
  State state_ = State::kNone;
  uint32_t slot_ = 0;
};

struct SharedChunksOptions {
  SegmentOptions segment;
  // How long one that is being read is waited for, and the lock.
  std::chrono::milliseconds read_patience{10'000};
  std::chrono::milliseconds lock_patience{1'000};
};

class SharedChunks : public std::enable_shared_from_this<SharedChunks> {
 public:
  static Result<std::shared_ptr<SharedChunks>> join(const SharedChunksOptions& options);

  // Does not wait for a reader.
  SharedChunk ask(uint64_t chunk);
  // As ask(), but never kBusy: waits until it is read, its reader gives up or dies, or patience
  // ends. REQUIRES that the calling thread has no chunk that is kMine: two would wait for each
  // other.
  SharedChunk wait(uint64_t chunk);

  uint64_t slot_bytes() const noexcept { return segment_->head().slot_bytes; }
  uint32_t slot_count() const noexcept { return segment_->head().slot_count; }

 private:
  friend class SharedChunk;
  friend struct SharedChunksPeer;  // of the tests
  class Lock;

  SharedChunks() = default;
  bool lock();
  void unlock() noexcept;
  SharedChunk look(uint64_t chunk);
  SharedChunk claim(uint64_t chunk);
  uint32_t find_room() const noexcept;
  bool is_held(uint32_t slot) const noexcept;
  bool bury_dead() noexcept;
  void bury(uint32_t member) noexcept;
  void announce() const noexcept;

  std::unique_ptr<SharedSegment> segment_;
  std::chrono::milliseconds read_patience_{0};
  std::chrono::milliseconds lock_patience_{0};
  uint64_t identity_ = 0;
  std::mutex mutex_;  // among the threads of this member; held around the segment's lock
  std::chrono::steady_clock::time_point next_burial_;
};

}  // namespace spk
