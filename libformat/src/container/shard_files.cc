#include "container/shard_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "base/text.h"
#include "container/pack.h"
#include "io/filesystem.h"

namespace spk {

namespace {

constexpr uint32_t kFewestOpen = 8;
constexpr uint32_t kMostOpen = 1 << 16;
constexpr uint32_t kMostMappings = 1 << 15;  // vm.max_map_count is 65530 unless somebody changed it

uint32_t default_max_open(ShardAccess access) {
  if (access == ShardAccess::kMapping) return kMostMappings;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kFewestOpen;
  return static_cast<uint32_t>(std::clamp<rlim_t>(limit.rlim_cur / 2, kFewestOpen, kMostOpen));
}

}  // namespace

Status OpenShard::read(uint64_t offset, MutableByteSpan into) const {
  if (file.is_open()) return file.read_exact(offset, into);
  const ByteSpan bytes = mapping.bytes();
  if (!into.empty()) std::memcpy(into.data(), bytes.data() + offset, into.size());
  return {};
}

ShardFiles::ShardFiles(const Directory& dir, const std::vector<ShardRow>& rows,
                       const ShardCache& cache, ShardAccess access, uint32_t max_open)
    : dir_(dir),
      rows_(rows),
      cache_(cache),
      access_(access),
      max_open_(max_open != 0 ? max_open : default_max_open(access)),
      slots_(std::make_unique<Slot[]>(rows.size())) {}

ShardFiles::~ShardFiles() {
  for (size_t i = 0; i < rows_.size(); ++i) delete slots_[i].open.load(std::memory_order_acquire);
}

ShardFiles::Copy ShardFiles::copy_of(uint32_t shard) const {
  const Copy copy = slots_[shard].copy.load(std::memory_order_relaxed);
  if (copy != Copy::kNoneYet || cache_.is_none()) return copy;
  const auto found = cache_.find(shard, rows_[shard]);
  return found.ok() && found->is_open() ? Copy::kCache : Copy::kPack;
}

std::string ShardFiles::path(uint32_t shard) const {
  return copy_of(shard) == Copy::kCache ? cache_.path_of(shard)
                                        : dir_.path_of(shard_file_name(shard));
}

Status ShardFiles::blame(Status status, uint32_t shard) const {
  if (status.ok()) return status;
  if (copy_of(shard) == Copy::kCache) {
    status = std::move(status).with_hint(
        "this is the cache's copy: stage the pack again with --verify, or open it without the "
        "cache");
  }
  return std::move(status).at_path(path(shard)).at_shard(shard);
}

Status ShardFiles::pin(uint32_t shard, Pin& pin) const {
  Slot& slot = slots_[shard];
  if (slot.pins.fetch_add(1, std::memory_order_acquire) >= 0) {
    if (!slot.used_lately.load(std::memory_order_relaxed)) {
      slot.used_lately.store(true, std::memory_order_relaxed);
    }
    pin = Pin(&slot.pins, slot.open.load(std::memory_order_relaxed));
    return {};
  }
  slot.pins.fetch_sub(1, std::memory_order_relaxed);
  return open_and_pin(shard, pin);
}

Status ShardFiles::open_and_pin(uint32_t shard, Pin& pin) const {
  Slot& slot = slots_[shard];
  const std::lock_guard lock(slot.opening);
  // Nobody can close it now, and nobody else open it.
  if (slot.pins.fetch_add(1, std::memory_order_acquire) < 0) {
    slot.pins.fetch_sub(1, std::memory_order_relaxed);
    while (open_count() >= max_open_ && close_one()) {
    }
    auto opened = open_shard(shard);
    while (!opened.ok() &&
           (opened.status().os_errno() == EMFILE || opened.status().os_errno() == ENFILE) &&
           close_one()) {
      opened = open_shard(shard);
    }
    if (!opened.ok()) return blame(std::move(opened).status(), shard);
    open_count_.fetch_add(1, std::memory_order_relaxed);
    slot.open.store(opened.value().release(), std::memory_order_relaxed);
    slot.pins.fetch_add(1 - kClosed, std::memory_order_release);
  }
  slot.used_lately.store(true, std::memory_order_relaxed);
  pin = Pin(&slot.pins, slot.open.load(std::memory_order_relaxed));
  return {};
}

Result<std::unique_ptr<OpenShard>> ShardFiles::open_shard(uint32_t shard) const {
  auto opened = std::make_unique<OpenShard>();
  auto file = cache_.find(shard, rows_[shard]);
  const bool cached = file.ok() && file->is_open();
  slots_[shard].copy.store(cached ? Copy::kCache : Copy::kPack, std::memory_order_relaxed);
  if (file.ok() && !cached) file = File::open_read(dir_, shard_file_name(shard));
  if (!file.ok()) {
    if (file.status().code() != Code::kNotFound) return std::move(file).status();
    return damaged(str_cat("this shard is missing; the index has ", rows_.size(), " of them"))
        .with_hint("copy it back, or `stripepack repair --from COPY`");
  }
  SPK_ASSIGN(const uint64_t file_bytes, file->size());
  const uint64_t expected = rows_[shard].file_bytes;
  // A cut shard costs the samples that lie behind the cut and no others: it is read, but never
  // mapped. Each shard is asked for its file system: it may be a link to another than the index's.
  if (access_ == ShardAccess::kMapping && file_bytes == expected &&
      !detect_filesystem(file->fd()).network) {
    auto mapping = Mapping::open(*file, expected);
    if (mapping.ok()) {
      opened->mapping = std::move(mapping).value();
      return opened;  // it needs its file no longer
    }
    // What cannot be mapped can still be read.
    if (mapping.status().code() != Code::kUnsupported) return std::move(mapping).status();
  }
  if (access_ == ShardAccess::kDirect) opened->file_is_direct = file->set_direct(true);
  opened->file = std::move(file).value();
  return opened;
}

// The clock: a shard that was used since the hand last passed is spared once.
bool ShardFiles::close_one() const {
  const auto count = static_cast<uint32_t>(rows_.size());
  for (uint64_t step = 0; step < 2 * uint64_t{count}; ++step) {
    Slot& slot = slots_[hand_.fetch_add(1, std::memory_order_relaxed) % count];
    if (slot.pins.load(std::memory_order_relaxed) != 0) continue;
    if (slot.used_lately.exchange(false, std::memory_order_relaxed)) continue;
    if (!slot.opening.try_lock()) continue;
    const std::lock_guard lock(slot.opening, std::adopt_lock);
    int32_t pins = 0;
    if (!slot.pins.compare_exchange_strong(pins, kClosed, std::memory_order_acq_rel)) continue;
    delete slot.open.exchange(nullptr, std::memory_order_relaxed);
    open_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace spk
