#include "loader/shared_segment.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "io/file.h"
#include "io/process_identity.h"

namespace spk {

namespace {

constexpr uint64_t kMagic = 0x6b6e'7568'632d'6b70;  // "pk-chunk"
constexpr uint32_t kMostMembers = 4096;
constexpr uint32_t kMostSlots = 1 << 20;
constexpr std::chrono::milliseconds kPatience(2000);
constexpr int kAttempts = 16;

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint16_t>::is_always_lock_free);

// Where the parts begin.
struct Layout {
  uint64_t members = 0;
  uint64_t slots = 0;
  uint64_t pins = 0;
  uint64_t slot_of = 0;
  uint64_t data = 0;
  uint64_t end = 0;
};

Result<Layout> lay_out(const SegmentHead& head) {
  const Status wrong(Code::kMismatch, "the shared memory is laid out in a way that cannot be");
  Layout at;
  if (head.member_count == 0 || head.member_count > kMostMembers) return wrong;
  if (head.slot_count == 0 || head.slot_count > kMostSlots) return wrong;
  if (head.chunk_count > UINT32_MAX || head.slot_bytes > (uint64_t{1} << 40)) return wrong;
  constexpr uint64_t kLine = 64;
  at.members = round_up(sizeof(SegmentHead), kLine);
  at.slots = at.members + round_up(head.member_count * sizeof(uint64_t), kLine);
  at.pins = at.slots + round_up(head.slot_count * sizeof(SegmentSlot), kLine);
  at.slot_of = at.pins + round_up(uint64_t{head.slot_count} * head.member_count * 2, kLine);
  at.data = round_up(at.slot_of + head.chunk_count * sizeof(uint32_t), page_bytes());
  at.end = at.data + head.slot_count * head.slot_bytes;
  return at;
}

// Held until the descriptor is closed or unlocked. Never waits for long: who holds it may have been
// stopped.
bool lock_file(int fd) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Where it has no limit, there is none.
uint64_t half_of_free(int fd) {
  struct statvfs facts = {};
  if (::fstatvfs(fd, &facts) != 0 || facts.f_blocks == 0) return UINT64_MAX;
  return uint64_t{facts.f_bavail} * facts.f_frsize / 2;
}

}  // namespace

std::string shared_segment_name(const Hash128& content_id, std::string_view group) {
  Xxh3Stream digest;
  digest.update_u64(content_id.low);
  digest.update_u64(content_id.high);
  digest.update(as_bytes(group));
  return str_cat("stripepack-1-", ::geteuid(), "-", to_hex(digest.digest_64()));
}

Result<std::unique_ptr<SharedSegment>> SharedSegment::join(const SegmentOptions& options) {
  std::unique_ptr<SharedSegment> segment(new SharedSegment());
  segment->path_ = str_cat(options.directory, "/", options.name);
  segment->identity_ = process_identity();
  // One that is removed between being opened and being locked is not the one of that name.
  for (int attempt = 0; attempt < kAttempts && !segment->joined_; ++attempt) {
    SPK_TRY(segment->open(options));
  }
  if (!segment->joined_) {
    return Status(Code::kBusy, "the shared memory is removed again and again")
        .at_path(segment->path_);
  }
  return segment;
}

SharedSegment::~SharedSegment() {
  if (joined_ && is_this_process(identity_)) {
    const bool locked = lock_file(fd_);
    members_[member_].store(0, std::memory_order_release);
    struct stat facts = {};
    const bool is_there = ::fstat(fd_, &facts) == 0 && facts.st_nlink > 0;
    if (locked && is_there && !anybody_alive()) ::unlink(path_.c_str());
    if (locked) ::flock(fd_, LOCK_UN);  // a child of fork() may hold the descriptor still
  }
  unmap();
}

void SharedSegment::unmap() noexcept {
  if (base_ != nullptr) ::munmap(base_, mapped_bytes_);
  if (fd_ >= 0) ::close(fd_);
  base_ = nullptr;
  fd_ = -1;
}

// One attempt to join.
Status SharedSegment::open(const SegmentOptions& options) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) return io_error(errno, "cannot open shared memory", path_);
  if (!lock_file(fd_)) {
    return Status(Code::kBusy, "somebody else has held the lock for long").at_path(path_);
  }
  struct stat facts = {};
  if (::fstat(fd_, &facts) != 0) return io_error(errno, "cannot look at shared memory", path_);
  if (facts.st_uid != ::geteuid()) {
    return Status(Code::kDenied, "the shared memory is another user's").at_path(path_);
  }
  if (facts.st_nlink == 0) {
    unmap();
    return {};
  }
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  Status status;
  if (bytes == 0) {
    status = make(options);
  } else {
    if (bytes >= sizeof(SegmentHead)) SPK_TRY(map(bytes));
    if (base_ == nullptr || !anybody_alive()) {
      // Of a run that was killed, or whose maker was.
      ::unlink(path_.c_str());
      unmap();
      return {};
    }
    status = check(options);
  }
  if (status.ok()) status = take_place();
  joined_ = status.ok();
  ::flock(fd_, LOCK_UN);
  return std::move(status).at_path(path_);
}

// A file that is new: nobody else looks at it before the lock is let go of.
Status SharedSegment::make(const SegmentOptions& options) {
  uint64_t limit = options.limit_bytes;
  if (options.leaves_half) limit = std::min(limit, half_of_free(fd_));
  SegmentHead head = {};
  head.chunk_count = options.chunk_count;
  head.slot_bytes = options.slot_bytes;
  head.slot_count =
      static_cast<uint32_t>(std::min({limit / std::max<uint64_t>(options.slot_bytes, 1),
                                      options.chunk_count, uint64_t{kMostSlots}}));
  head.member_count = std::min(2 * options.members + 16, kMostMembers);
  auto laid_out = lay_out(head);
  Status status = laid_out.ok()
                      ? Status()
                      : invalid_argument(str_cat("there is no room for a chunk of ",
                                                 format_size(options.slot_bytes), "; at most ",
                                                 format_size(limit), " may be used"));
  if (status.ok() && ::ftruncate(fd_, static_cast<off_t>(laid_out->end)) != 0) {
    status = io_error(errno, "cannot make shared memory", path_);
  }
  if (status.ok() && ::fallocate(fd_, 0, 0, static_cast<off_t>(laid_out->data)) != 0) {
    status = io_error(errno, "cannot make shared memory", path_);
  }
  if (status.ok()) {
    const uint64_t bytes = laid_out->end;
    base_ =
        static_cast<uint8_t*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    if (base_ == MAP_FAILED) {
      base_ = nullptr;
      status = io_error(errno, "cannot map shared memory", path_);
    }
    mapped_bytes_ = bytes;
  }
  if (!status.ok()) {
    ::unlink(path_.c_str());
    return status;
  }
  // All else is zero, as files are born.
  head_ = reinterpret_cast<SegmentHead*>(base_);
  head_->content_low = options.content_id.low;
  head_->content_high = options.content_id.high;
  head_->process_namespace = process_namespace();
  head_->chunk_count = head.chunk_count;
  head_->slot_bytes = head.slot_bytes;
  head_->slot_count = head.slot_count;
  head_->member_count = head.member_count;
  head_->magic = kMagic;
  return map(mapped_bytes_);
}

// Finds the parts; maps the file where it is not mapped yet. One whose head is not whole stays as
// if it were not there.
Status SharedSegment::map(uint64_t bytes) {
  if (base_ == nullptr) {
    void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (base == MAP_FAILED) return io_error(errno, "cannot map shared memory", path_);
    base_ = static_cast<uint8_t*>(base);
    mapped_bytes_ = bytes;
  }
  head_ = reinterpret_cast<SegmentHead*>(base_);
  const auto laid_out = lay_out(*head_);
  if (head_->magic != kMagic || !laid_out.ok() || laid_out->end != bytes) {
    ::munmap(base_, mapped_bytes_);
    base_ = nullptr;
    return {};
  }
  members_ = reinterpret_cast<std::atomic<uint64_t>*>(base_ + laid_out->members);
  slots_ = reinterpret_cast<SegmentSlot*>(base_ + laid_out->slots);
  pins_ = reinterpret_cast<std::atomic<uint16_t>*>(base_ + laid_out->pins);
  slot_of_ = reinterpret_cast<std::atomic<uint32_t>*>(base_ + laid_out->slot_of);
  data_ = base_ + laid_out->data;
  data_offset_ = laid_out->data;
  return {};
}

Status SharedSegment::check(const SegmentOptions& options) const {
  const Hash128 found = {head_->content_low, head_->content_high};
  if (!(found == options.content_id)) {
    return Status(Code::kMismatch,
                  str_cat("the shared memory is of the pack with content id ", found.to_hex(),
                          ", this one has ", options.content_id.to_hex()))
        .with_hint("give the groups of different runs different names");
  }
  if (head_->chunk_count != options.chunk_count || head_->slot_bytes != options.slot_bytes) {
    return Status(Code::kMismatch, "the shared memory is for chunks of another number or size");
  }
  if (head_->process_namespace != process_namespace()) {
    return Status(Code::kMismatch,
                  "the shared memory is of processes that this one cannot tell the life of")
        .with_hint("let the ranks of a node see each other's processes (one PID namespace)");
  }
  return {};
}

bool SharedSegment::anybody_alive() const noexcept {
  for (uint32_t i = 0; i < head_->member_count; ++i) {
    if (is_process_alive(identity(i).load(std::memory_order_acquire))) return true;
  }
  return false;
}

// Places of the dead are not taken before those who live have cleared their slots.
Status SharedSegment::take_place() {
  for (uint32_t i = 0; i < head_->member_count; ++i) {
    uint64_t nobody = 0;
    if (!identity(i).compare_exchange_strong(nobody, identity_, std::memory_order_acq_rel)) {
      continue;
    }
    member_ = i;
    return {};
  }
  return Status(Code::kBusy, str_cat("all ", head_->member_count, " places are taken"));
}

bool SharedSegment::get_memory(uint32_t slot) const noexcept {
  if (slots_[slot].has_memory.load(std::memory_order_relaxed) != 0) return true;
  const uint64_t offset = data_offset_ + uint64_t{slot} * head_->slot_bytes;
  if (::fallocate(fd_, 0, static_cast<off_t>(offset), static_cast<off_t>(head_->slot_bytes)) != 0) {
    return false;
  }
  slots_[slot].has_memory.store(1, std::memory_order_relaxed);
  return true;
}

}  // namespace spk
