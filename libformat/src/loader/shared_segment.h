// The shared memory of the loaders of one node: a file in /dev/shm that each of them maps, with a
// table of slots for chunks. This class makes, finds and removes it; loader/shared_chunks.h says
// what its parts mean.
//
// Any of the processes may be killed at any moment. Who joins or leaves holds a lock on the file
// (flock), which ends with its process. One that nobody alive has joined is removed by who leaves
// last, or by the next that would join.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"

namespace spk {

struct SegmentOptions {
  std::string directory = "/dev/shm";
  std::string name;  // of the file
  Hash128 content_id;
  uint64_t chunk_count = 0;
  uint64_t slot_bytes = 0;   // the largest chunk; a multiple of the page
  uint64_t limit_bytes = 0;  // of all slots. Who comes first decides.
  // At most half of what the file system has left: others put things there as well, and what they
  // map ends them where there is no memory behind it.
  bool leaves_half = false;
  uint32_t members = 0;  // that are expected; some more can join. Likewise.
};

// "stripepack-1-1000-0123456789abcdef": of the user, the pack, and GROUP, which is any text. The 1
// is the version of what lies in the segment.
std::string shared_segment_name(const Hash128& content_id, std::string_view group);

struct SegmentHead {
  uint64_t magic;
  uint64_t content_low;
  uint64_t content_high;
  uint64_t process_namespace;
  uint64_t chunk_count;
  uint64_t slot_bytes;
  uint32_t slot_count;
  uint32_t member_count;
  std::atomic<uint64_t> tick;      // counts uses
  std::atomic<uint64_t> lock;      // process_identity() of who holds it; 0: free
  std::atomic<uint32_t> unlocked;  // a futex: counts how often the lock was let go of
  std::atomic<uint32_t> changes;   // likewise: slots that came to be ready or empty
};

struct SegmentSlot {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> reader;  // member
  std::atomic<uint64_t> chunk;
  std::atomic<uint64_t> used;     // tick
  std::atomic<uint64_t> checked;  // what its reader compared with checksums; 0: nothing
  std::atomic<uint32_t> has_memory;
};

// Thread safety: const members may be called by several threads at once. Belongs to the process
// that joined; in a child of fork() the destructor does nothing to the segment.
class SharedSegment {
 public:
  // Joins; makes the segment where there is none that somebody alive uses. kMismatch where the one
  // of that name is of another pack, kBusy where it is full or its lock cannot be had in time,
  // kNoSpace and other errors of the system where there is no memory.
  static Result<std::unique_ptr<SharedSegment>> join(const SegmentOptions& options);
  ~SharedSegment();  // leaves
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  uint32_t member() const noexcept { return member_; }
  SegmentHead& head() const noexcept { return *head_; }
  SegmentSlot& slot(uint32_t slot) const noexcept { return slots_[slot]; }
  // Who is what: process_identity(), or 0.
  std::atomic<uint64_t>& identity(uint32_t member) const noexcept { return members_[member]; }
  // How often a member's batches and reads hold a slot.
  std::atomic<uint16_t>& pins(uint32_t slot, uint32_t member) const noexcept {
    return pins_[uint64_t{slot} * head_->member_count + member];
  }
  // The slot, plus 1, that had a chunk last; 0: none.
  std::atomic<uint32_t>& slot_of(uint64_t chunk) const noexcept { return slot_of_[chunk]; }
  MutableByteSpan memory(uint32_t slot) const noexcept {
    return {data_ + uint64_t{slot} * head_->slot_bytes, head_->slot_bytes};
  }
  // False where the system has none left. What is mapped and has no memory would end the process
  // when it is touched.
  bool get_memory(uint32_t slot) const noexcept;

 private:
  SharedSegment() = default;
  Status open(const SegmentOptions& options);
  Status make(const SegmentOptions& options);
  Status map(uint64_t bytes);
  Status check(const SegmentOptions& options) const;
  Status take_place();
  bool anybody_alive() const noexcept;
  void unmap() noexcept;

  std::string path_;
  int fd_ = -1;
  uint64_t identity_ = 0;  // of the process that joined
  uint32_t member_ = 0;
  bool joined_ = false;
  uint8_t* base_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  SegmentHead* head_ = nullptr;
  std::atomic<uint64_t>* members_ = nullptr;
  SegmentSlot* slots_ = nullptr;
  std::atomic<uint16_t>* pins_ = nullptr;
  std::atomic<uint32_t>* slot_of_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t data_offset_ = 0;
};

}  // namespace spk
