#include "loader/shared_chunks.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

#include "io/process_identity.h"

namespace spk {

namespace {

using Clock = std::chrono::steady_clock;

// Of a slot, in the segment. What is zero is empty.
constexpr uint32_t kEmpty = 0;
constexpr uint32_t kReading = 1;
constexpr uint32_t kReadyNow = 2;
constexpr uint32_t kUnusable = 3;  // the system has no memory for it

constexpr uint32_t kNoSlot = UINT32_MAX;
// Waits are cut into pieces as long as this, to see whether who is waited for is alive.
constexpr long kLookAgainNs = 10'000'000;
// Looking at every member takes a while.
constexpr std::chrono::milliseconds kBetweenBurials(50);

// Across processes, which std::atomic::wait does not do.
void futex_wait(std::atomic<uint32_t>& word, uint32_t while_it_is) noexcept {
  const timespec most = {0, kLookAgainNs};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, while_it_is, &most, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace

// ---- SharedChunk

SharedChunk::~SharedChunk() {
  if (state_ != State::kReady && state_ != State::kMine) return;
  // A child of fork() has a copy of what its parent holds.
  if (!is_this_process(owner_->identity_)) return;
  SharedSegment& segment = *owner_->segment_;
  if (state_ == State::kReady) {
    segment.pins(slot_, segment.member()).fetch_sub(1, std::memory_order_release);
    return;
  }
  segment.slot(slot_).state.store(kEmpty, std::memory_order_release);
  owner_->announce();
}

MutableByteSpan SharedChunk::bytes() const noexcept { return owner_->segment_->memory(slot_); }

uint64_t SharedChunk::checked() const noexcept {
  return owner_->segment_->slot(slot_).checked.load(std::memory_order_relaxed);
}

void SharedChunk::publish(uint64_t checked) noexcept {
  SharedSegment& segment = *owner_->segment_;
  SegmentSlot& slot = segment.slot(slot_);
  slot.checked.store(checked, std::memory_order_relaxed);
  segment.pins(slot_, segment.member()).fetch_add(1, std::memory_order_relaxed);
  slot.state.store(kReadyNow, std::memory_order_release);
  state_ = State::kReady;
  owner_->announce();
}

// ---- The lock

class SharedChunks::Lock {
 public:
  explicit Lock(SharedChunks& chunks) : chunks_(chunks), held_(chunks.lock()) {}
  ~Lock() {
    if (held_) chunks_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const noexcept { return held_; }

 private:
  SharedChunks& chunks_;
  const bool held_;
};

// False where patience ends: who holds it may have been stopped.
bool SharedChunks::lock() {
  mutex_.lock();
  const Clock::time_point until = Clock::now() + lock_patience_;
  SegmentHead& head = segment_->head();
  for (;;) {
    const uint32_t unlocked = head.unlocked.load(std::memory_order_acquire);
    uint64_t holder = 0;
    if (head.lock.compare_exchange_strong(holder, identity_, std::memory_order_acquire)) {
      return true;
    }
    // One that was killed leaves nothing half done that could not be seen: see claim().
    if (!is_process_alive(holder)) {
      if (head.lock.compare_exchange_strong(holder, identity_, std::memory_order_acquire)) {
        return true;
      }
      continue;
    }
    if (Clock::now() > until) break;
    futex_wait(head.unlocked, unlocked);
  }
  mutex_.unlock();
  return false;
}

void SharedChunks::unlock() noexcept {
  SegmentHead& head = segment_->head();
  head.lock.store(0, std::memory_order_release);
  head.unlocked.fetch_add(1, std::memory_order_release);
  futex_wake(head.unlocked, 1);
  mutex_.unlock();
}

void SharedChunks::announce() const noexcept {
  SegmentHead& head = segment_->head();
  head.changes.fetch_add(1, std::memory_order_release);
  futex_wake(head.changes, INT_MAX);
}

// ---- Chunks

Result<std::shared_ptr<SharedChunks>> SharedChunks::join(const SharedChunksOptions& options) {
  std::shared_ptr<SharedChunks> chunks(new SharedChunks());
  chunks->identity_ = process_identity();
  chunks->read_patience_ = options.read_patience;
  chunks->lock_patience_ = options.lock_patience;
  SPK_ASSIGN(chunks->segment_, SharedSegment::join(options.segment));
  const Lock lock(*chunks);
  if (lock.held()) (void)chunks->bury_dead();
  return chunks;
}

SharedChunk SharedChunks::ask(uint64_t chunk) {
  SharedChunk found;
  {
    const Lock lock(*this);
    if (!lock.held()) return {};
    found = look(chunk);
  }
  if (found.state() != SharedChunk::State::kMine) return found;
  // Not under the lock: the system clears the memory first.
  if (!segment_->get_memory(found.slot_)) {
    segment_->slot(found.slot_).state.store(kUnusable, std::memory_order_release);
    announce();
    found.state_ = SharedChunk::State::kNone;
  }
  return found;
}

SharedChunk SharedChunks::wait(uint64_t chunk) {
  const Clock::time_point until = Clock::now() + read_patience_;
  for (;;) {
    const uint32_t changes = segment_->head().changes.load(std::memory_order_acquire);
    SharedChunk found = ask(chunk);
    if (found.state() != SharedChunk::State::kBusy) return found;
    if (Clock::now() > until) return {};
    futex_wait(segment_->head().changes, changes);
  }
}

// The rest: under the lock.

SharedChunk SharedChunks::look(uint64_t chunk) {
  const uint32_t number = segment_->slot_of(chunk).load(std::memory_order_relaxed);
  if (number == 0 || number > slot_count()) return claim(chunk);
  SegmentSlot& slot = segment_->slot(number - 1);
  if (slot.chunk.load(std::memory_order_relaxed) != chunk) return claim(chunk);
  const uint32_t state = slot.state.load(std::memory_order_acquire);
  if (state == kReadyNow) {
    slot.used.store(++segment_->head().tick, std::memory_order_relaxed);
    segment_->pins(number - 1, segment_->member()).fetch_add(1, std::memory_order_relaxed);
    return {shared_from_this(), SharedChunk::State::kReady, number - 1};
  }
  if (state == kReading) {
    const uint32_t reader = slot.reader.load(std::memory_order_relaxed);
    if (is_process_alive(segment_->identity(reader).load(std::memory_order_acquire))) {
      return {nullptr, SharedChunk::State::kBusy, 0};
    }
    bury(reader);
  }
  return claim(chunk);
}

// Each store leaves what a killed member may leave: a slot that is empty, or one that is being read
// by somebody dead.
SharedChunk SharedChunks::claim(uint64_t chunk) {
  uint32_t number = find_room();
  const Clock::time_point now = Clock::now();
  if (number == kNoSlot && now >= next_burial_) {
    next_burial_ = now + kBetweenBurials;
    if (bury_dead()) number = find_room();
  }
  if (number == kNoSlot) return {};
  SegmentSlot& slot = segment_->slot(number);
  slot.state.store(kEmpty, std::memory_order_relaxed);
  slot.chunk.store(chunk, std::memory_order_relaxed);
  slot.checked.store(0, std::memory_order_relaxed);
  slot.reader.store(segment_->member(), std::memory_order_relaxed);
  slot.used.store(++segment_->head().tick, std::memory_order_relaxed);
  slot.state.store(kReading, std::memory_order_release);
  segment_->slot_of(chunk).store(number + 1, std::memory_order_relaxed);
  return {shared_from_this(), SharedChunk::State::kMine, number};
}

bool SharedChunks::is_held(uint32_t slot) const noexcept {
  for (uint32_t i = 0; i < segment_->head().member_count; ++i) {
    if (segment_->pins(slot, i).load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

uint32_t SharedChunks::find_room() const noexcept {
  uint32_t best = kNoSlot;
  uint64_t best_used = UINT64_MAX;
  for (uint32_t i = 0; i < slot_count(); ++i) {
    const SegmentSlot& slot = segment_->slot(i);
    const uint32_t state = slot.state.load(std::memory_order_acquire);
    if (state == kEmpty) return i;
    const uint64_t used = slot.used.load(std::memory_order_relaxed);
    if (state != kReadyNow || used >= best_used || is_held(i)) continue;
    best = i;
    best_used = used;
  }
  return best;
}

// True where there was anybody.
bool SharedChunks::bury_dead() noexcept {
  bool any = false;
  for (uint32_t i = 0; i < segment_->head().member_count; ++i) {
    const uint64_t identity = segment_->identity(i).load(std::memory_order_acquire);
    if (identity == 0 || is_process_alive(identity)) continue;
    bury(i);
    any = true;
  }
  return any;
}

void SharedChunks::bury(uint32_t member) noexcept {
  for (uint32_t i = 0; i < slot_count(); ++i) {
    SegmentSlot& slot = segment_->slot(i);
    if (slot.state.load(std::memory_order_relaxed) == kReading &&
        slot.reader.load(std::memory_order_relaxed) == member) {
      slot.state.store(kEmpty, std::memory_order_release);
    }
    segment_->pins(i, member).store(0, std::memory_order_relaxed);
  }
  // Last: until then nobody can take its place.
  segment_->identity(member).store(0, std::memory_order_release);
  announce();
}

}  // namespace spk
