#include "io/read_engine.h"

#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/per_process.h"
#include "io/posix_calls.h"
#include "io/read_pool.h"
#if SPK_HAVE_URING
#include "io/read_uring.h"
#endif

namespace spk {

namespace {

constexpr uint32_t kDefaultThreads = 16;
constexpr uint32_t kMaxThreads = 1024;

Status first_failure(std::span<const ReadOp> ops) {
  for (const ReadOp& op : ops) {
    if (!op.status.ok()) return op.status;
  }
  return {};
}

class SyncEngine final : public ReadEngine {
 public:
  Status read(std::span<ReadOp> ops) override {
    for (ReadOp& op : ops) op.status = pread_exact(op.fd, op.offset, op.into);
    return first_failure(ops);
  }
  const char* name() const noexcept override { return "sync"; }
};

class PoolEngine final : public ReadEngine {
 public:
  explicit PoolEngine(uint32_t threads) : threads_(threads) {}
  Status read(std::span<ReadOp> ops) override {
    pool_.get([this] { return std::make_unique<ReadPool>(threads_); }).run(ops);
    return first_failure(ops);
  }
  const char* name() const noexcept override { return "pool"; }

 private:
  const uint32_t threads_;
  PerProcess<ReadPool> pool_;
};

// Copies what the page cache has in the calling thread, which is as fast as memory, and hands only
// what must come from a disk to the pool, where waiting in parallel is worth a hand-over.
class CacheFirstEngine final : public ReadEngine {
 public:
  explicit CacheFirstEngine(uint32_t threads) : pool_(threads) {}

  Status read(std::span<ReadOp> ops) override {
    if (ops.size() <= 1) return sync_.read(ops);
    std::vector<size_t> cold;
    for (size_t i = 0; i < ops.size(); ++i) {
      ops[i].status = {};
      if (!copy_from_cache(ops[i])) cold.push_back(i);
    }
    if (cold.empty()) return {};
    std::vector<ReadOp> rest;
    rest.reserve(cold.size());
    for (const size_t i : cold) rest.push_back({ops[i].fd, ops[i].offset, ops[i].into, {}});
    // Each op's own status is what counts here.
    (void)pool_.read(rest);
    for (size_t k = 0; k < cold.size(); ++k) ops[cold[k]].status = std::move(rest[k].status);
    return first_failure(ops);
  }
  const char* name() const noexcept override { return "auto"; }

 private:
  // True if the op is filled whole. Every trouble is left to the pool, which reports it.
  bool copy_from_cache(const ReadOp& op) {
    if (op.into.empty()) return true;
    if (!nowait_works_.load(std::memory_order_relaxed)) return false;
    if (!check_range(op.offset, op.into.size()).ok()) return false;
    const iovec into = {op.into.data(), op.into.size()};
    const ssize_t got = ::preadv2(op.fd, &into, 1, static_cast<off_t>(op.offset), RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
      nowait_works_.store(false, std::memory_order_relaxed);
    }
    return got >= 0 && static_cast<size_t>(got) == op.into.size();
  }

  SyncEngine sync_;
  PoolEngine pool_;
  std::atomic<bool> nowait_works_{true};
};

#if SPK_HAVE_URING
class UringEngine final : public ReadEngine {
 public:
  explicit UringEngine(uint32_t threads) : pool_(threads) {}
  Status read(std::span<ReadOp> ops) override {
    UringPool& rings = rings_.get([] { return std::make_unique<UringPool>(); });
    if (!rings.run(ops)) return pool_.read(ops);
    return first_failure(ops);
  }
  const char* name() const noexcept override { return "uring"; }

 private:
  PerProcess<UringPool> rings_;
  PoolEngine pool_;  // for calls for which no ring can be had; makes no thread before
};
#endif

}  // namespace

Result<std::unique_ptr<ReadEngine>> make_read_engine(EngineKind kind, uint32_t threads,
                                                     bool network) {
  if (threads > kMaxThreads) {
    return invalid_argument(str_cat(threads, " reading threads; at most ", kMaxThreads));
  }
  if (threads == 0) threads = kDefaultThreads;
  std::unique_ptr<ReadEngine> engine;
  switch (kind) {
    case EngineKind::kSync: engine = std::make_unique<SyncEngine>(); break;
    case EngineKind::kAuto:
      if (!network) engine = std::make_unique<CacheFirstEngine>(threads);
      break;
    case EngineKind::kUring:
#if SPK_HAVE_URING
      if (uring_works()) engine = std::make_unique<UringEngine>(threads);
#endif
      break;
    case EngineKind::kPool: break;
  }
  if (engine == nullptr) engine = std::make_unique<PoolEngine>(threads);
  return engine;
}

Result<EngineKind> parse_engine_kind(std::string_view text) {
  if (text == "auto") return EngineKind::kAuto;
  if (text == "sync") return EngineKind::kSync;
  if (text == "pool") return EngineKind::kPool;
  if (text == "uring") return EngineKind::kUring;
  return invalid_argument(
      str_cat("'", escape_bytes(text), "' is not an engine; choose auto, sync, pool or uring"));
}

}  // namespace spk
