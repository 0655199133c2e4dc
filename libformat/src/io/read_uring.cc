#include "io/read_uring.h"

#if SPK_HAVE_URING

#include <liburing.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/file.h"
#include "io/posix_calls.h"

namespace spk {

namespace {

constexpr unsigned kDepth = 64;
// Below the kernel's limit of one read (2 GiB - 4 KiB), whatever the page size.
constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

}  // namespace

class UringQueue {
 public:
  // Null where the kernel refuses.
  static std::unique_ptr<UringQueue> make() {
    auto queue = std::unique_ptr<UringQueue>(new UringQueue);
    if (io_uring_queue_init(kDepth, &queue->ring_, 0) != 0) return nullptr;
    queue->is_set_up_ = true;
    return queue;
  }
  ~UringQueue() {
    if (is_set_up_) io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  // Fills every op. False where the ring broke and must not be used again; the ops are filled all
  // the same. On return the kernel holds no pointer to any buffer.
  bool run(std::span<ReadOp> ops) {
    ops_ = ops;
    done_.assign(ops.size(), 0);
    to_submit_.clear();
    for (size_t i = ops.size(); i-- > 0;) {  // the last is taken first
      // Offset -1 would mean "at the file position" to the ring.
      ops[i].status = check_range(ops[i].offset, ops[i].into.size()).at_offset(ops[i].offset);
      if (ops[i].status.ok() && !ops[i].into.empty()) to_submit_.push_back(i);
    }
    bool healthy = true;
    while (healthy) {
      prepare();
      if (in_flight_ + prepared_ == 0) return true;
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted >= 0) {
        prepared_ -= static_cast<unsigned>(submitted);
        in_flight_ += static_cast<unsigned>(submitted);
      } else if (submitted != -EINTR) {
        healthy = false;
      }
      reap();
    }
    drain();
    // What was prepared and never submitted is still to be read, and so is what came back short.
    for (const size_t i : pending_) finish_by_pread(i);
    for (const size_t i : to_submit_) finish_by_pread(i);
    return false;
  }

 private:
  UringQueue() = default;

  void prepare() {
    while (!to_submit_.empty() && in_flight_ + prepared_ < kDepth) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      if (entry == nullptr) return;
      const size_t i = to_submit_.back();
      to_submit_.pop_back();
      pending_.push_back(i);
      const ReadOp& op = ops_[i];
      const uint64_t left = std::min<uint64_t>(op.into.size() - done_[i], kMaxReadBytes);
      io_uring_prep_read(entry, op.fd, op.into.data() + done_[i], static_cast<unsigned>(left),
                         op.offset + done_[i]);
      io_uring_sqe_set_data(entry, reinterpret_cast<void*>(static_cast<uintptr_t>(i)));
      ++prepared_;
    }
  }

  void reap() {
    io_uring_cqe* entry = nullptr;
    while (io_uring_peek_cqe(&ring_, &entry) == 0 && entry != nullptr) {
      const auto i = static_cast<size_t>(reinterpret_cast<uintptr_t>(io_uring_cqe_get_data(entry)));
      const int result = entry->res;
      io_uring_cqe_seen(&ring_, entry);
      --in_flight_;
      pending_.erase(std::find(pending_.begin(), pending_.end(), i));
      complete(i, result);
    }
  }

  void complete(size_t i, int result) {
    ReadOp& op = ops_[i];
    if (result < 0) {
      // Whether the file or the ring is to blame, pread tells, with the errno that people know.
      finish_by_pread(i);
    } else if (result == 0) {
      op.status = end_of_file(op.fd, op.offset, done_[i], op.into.size());
    } else {
      done_[i] += static_cast<uint64_t>(result);
      if (done_[i] < op.into.size()) to_submit_.push_back(i);
    }
  }

  void finish_by_pread(size_t i) {
    ops_[i].status = pread_exact(ops_[i].fd, ops_[i].offset, ops_[i].into);
  }

  // Waits for all that the kernel has, for it writes into the caller's buffers.
  void drain() {
    while (in_flight_ != 0) {
      io_uring_cqe* entry = nullptr;
      const int result = io_uring_wait_cqe(&ring_, &entry);
      // Completions appear in shared memory even where waiting for them fails.
      if (result != 0 && result != -EINTR) ::usleep(1000);
      reap();
    }
  }

  io_uring ring_ = {};
  bool is_set_up_ = false;
  unsigned prepared_ = 0;   // entries filled but not yet given to the kernel
  unsigned in_flight_ = 0;  // given to the kernel
  std::span<ReadOp> ops_;
  std::vector<uint64_t> done_;     // bytes read, per op
  std::vector<size_t> to_submit_;  // a stack of ops
  std::vector<size_t> pending_;    // prepared or in flight; at most kDepth
};

UringPool::UringPool() = default;
UringPool::~UringPool() = default;

bool UringPool::run(std::span<ReadOp> ops) {
  std::unique_ptr<UringQueue> queue;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      queue = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (queue == nullptr) queue = UringQueue::make();
  if (queue == nullptr) return false;
  const bool healthy = queue->run(ops);
  if (healthy) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(queue));
  }
  return true;
}

bool uring_works() {
  io_uring ring = {};
  if (io_uring_queue_init(2, &ring, 0) != 0) return false;
  bool works = false;
  io_uring_probe* probe = io_uring_get_probe_ring(&ring);
  // A no-op, for a real read may start a thread of the kernel's in this process.
  if (probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0) {
    io_uring_cqe* done = nullptr;
    io_uring_prep_nop(io_uring_get_sqe(&ring));
    works = io_uring_submit(&ring) == 1 && io_uring_wait_cqe(&ring, &done) == 0 && done->res == 0;
  }
  io_uring_free_probe(probe);
  io_uring_queue_exit(&ring);
  return works;
}

}  // namespace spk

#endif
