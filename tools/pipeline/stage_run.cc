#include "pipeline/stage_run.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text.h"
#include "container/manifest.h"
#include "container/pack_check.h"
#include "container/parallel_for.h"
#include "io/atomic_file.h"
#include "io/direct_writer.h"
#include "pipeline/staged_file.h"

namespace spk {

namespace {

constexpr auto kPollTime = std::chrono::milliseconds(100);
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kMostManifestBytes = uint64_t{64} << 20;
constexpr uint64_t kMostLayoutBytes = uint64_t{64} << 20;

Status stopped() { return Status(Code::kCancelled, "stopped on request"); }

// The target of one shard. Chunks are written past the page cache where that can be: out of the
// page-aligned memory that they were judged in, without another copy of them.
class Target {
 public:
  explicit Target(const File& file)
      : file_(file), direct_(direct_writes_pay(file) && file.set_direct(true)) {}

  Status write(uint64_t offset, ByteSpan bytes) {
    Status written = file_.write_all(offset, bytes);
    // Some file systems take the flag and refuse the write.
    if (direct_ && written.os_errno() == EINVAL) {
      end_direct();
      written = file_.write_all(offset, bytes);
    }
    if (written.ok() && !direct_) file_.start_writeback(offset, bytes.size());
    return written;
  }
  void end_direct() {
    if (direct_) (void)file_.set_direct(false);
    direct_ = false;
  }

 private:
  const File& file_;
  bool direct_;
};

}  // namespace

struct StageRun::Worker {
  explicit Worker(ChunkBytes& buffer) : bytes(buffer), verifier(buffer) {}
  ChunkBytes& bytes;
  ChunkVerifier verifier;
};

Result<Directory> make_directories(const std::string& path) {
  auto made = Directory::create(path);
  if (made.ok()) return made;
  if (made.status().code() == Code::kExists) return Directory::open(path);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (made.status().code() != Code::kNotFound || parent.empty()) return made;
  SPK_TRY(make_directories(parent.string()).status());
  made = Directory::create(path);
  if (!made.ok() && made.status().code() == Code::kExists) return Directory::open(path);
  return made;
}

uint32_t StageRun::thread_count() const {
  uint64_t footer_bytes = 0;
  for (const ShardRow& row : task_.pack->shards()) {
    footer_bytes =
        std::max(footer_bytes, row.file_bytes - std::min(row.file_bytes, row.data_bytes));
  }
  // A footer and the rows that are made of it, and a chunk.
  const uint64_t each = 2 * footer_bytes + task_.pack->identity().chunk_bytes();
  const uint64_t most = std::min<uint64_t>(request_.jobs, queue_.size());
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(request_.memory_bytes / each, 1, std::max<uint64_t>(most, 1)));
}

void StageRun::report(const DamageSink& sink, const Damage& damage) {
  ++counts_.damages;
  if (sink) sink(damage);
}

Result<StageCounts> StageRun::run(const DamageSink& sink) {
  SPK_ASSIGN(dir_, make_directories(task_.directory));
  SPK_TRY(clear_place());
  queue_ = request_.verify ? task_.shards : task_.missing;
  if (!queue_.empty()) SPK_TRY(copy_shards(sink));
  const bool is_done = task_.is_pack && queue_.empty();
  if (task_.whole && counts_.damages == 0 && !is_done) SPK_TRY(finish_pack(sink));
  if (task_.whole && is_done) SPK_TRY(refresh_layout());
  return counts_;
}

// The manifest goes first: what remains is no pack.
Status StageRun::clear_place() {
  for (const StageTask::InTheWay& other : task_.in_the_way) {
    if (other.name != kManifestName) continue;
    SPK_TRY(dir_.unlink(kManifestName));
    SPK_TRY(dir_.sync());
    for (const std::string& name : stage_companions()) {
      const Status removed = dir_.unlink(name);
      if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
    }
  }
  for (const StageTask::InTheWay& other : task_.in_the_way) {
    if (other.name == kManifestName) continue;
    const Status removed = dir_.unlink(other.name);
    if (!removed.ok() && removed.code() != Code::kNotFound) return removed;
  }
  return remove_staging_leftovers(dir_);
}

Status StageRun::copy_shards(const DamageSink& sink) {
  const Directory& from = task_.pack->directory();
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, from.list());
  index_ = std::make_unique<IndexCheck>(from, request_.jobs);
  SPK_ASSIGN(facts_, gather_facts(from, entries, *index_));
  std::vector<uint32_t> busy;
  run_in_threads(thread_count(), [&] { work(busy); });
  std::sort(busy.begin(), busy.end());
  // What another process was at: it ends with the shard, or without it when it was killed.
  while (!busy.empty() && !stopping()) {
    std::this_thread::sleep_for(kPollTime);
    queue_ = std::exchange(busy, {});
    next_ = 0;
    work(busy);
  }
  if (error_.ok() && hooks_.cancel != nullptr && hooks_.cancel->load()) error_ = stopped();
  if (!error_.ok()) return error_;
  for (const auto& [shard, damages] : damages_) {
    for (const Damage& damage : damages) report(sink, damage);
  }
  for (const Damage& damage : index_->damages()) report(sink, damage);
  queue_ = request_.verify ? task_.shards : task_.missing;
  return {};
}

void StageRun::work(std::vector<uint32_t>& busy) {
  auto buffer = ChunkBytes::make(task_.pack->identity().chunk_bytes());
  std::optional<Worker> worker;
  if (buffer.ok()) worker.emplace(*buffer);
  while (!stopping()) {
    const size_t at = next_.fetch_add(1);
    if (at >= queue_.size()) return;
    const uint32_t shard = queue_[at];
    const Result<Outcome> outcome =
        worker ? stage_shard(shard, *worker) : Result<Outcome>(buffer.status());
    const std::lock_guard lock(mutex_);
    if (outcome.ok() && *outcome == Outcome::kBusy) busy.push_back(shard);
    // Of several errors the one of the first shard is told, whatever the threads' order.
    if (outcome.ok() || (!error_.ok() && error_shard_ <= shard)) continue;
    failed_ = true;
    error_ = outcome.status();
    error_shard_ = shard;
  }
}

Result<StageRun::Outcome> StageRun::stage_shard(uint32_t shard, Worker& worker) {
  const std::string name = shard_file_name(shard);
  const ShardRow& row = task_.pack->shards()[shard];
  bool mends = false;
  if (request_.verify) {
    const auto there = File::open_read(dir_, name);
    if (there.ok()) {
      SPK_ASSIGN(const bool whole, is_whole(shard, worker));
      if (whole || stopping()) return Outcome::kDone;
      mends = true;
    } else if (there.status().code() != Code::kNotFound) {
      return there.status();
    }
  }
  SPK_ASSIGN(std::optional<StagedFile> target, StagedFile::claim(dir_, name));
  if (!target) return Outcome::kBusy;
  if (!mends) {
    // Since the directory was looked at, another process may have made it.
    const auto there = File::open_read(dir_, name);
    if (there.ok() && check_shard_file(*there, shard, row).ok()) {
      if (hooks_.advance) hooks_.advance(row.sample_count, row.file_bytes);
      const std::lock_guard lock(mutex_);
      ++counts_.shards_by_others;
      return Outcome::kDone;
    }
  }
  std::vector<Damage> bad;
  SPK_TRY(copy_shard(shard, *target, worker, bad));
  if (stopping()) return Outcome::kDone;
  if (bad.empty()) {
    SPK_TRY(check_shard_file(target->file(), shard, row));
    SPK_TRY(target->publish());
  }
  const std::lock_guard lock(mutex_);
  if (bad.empty()) {
    ++counts_.shards_copied;
    counts_.bytes_copied += row.file_bytes;
    if (mends) ++counts_.shards_mended;
  } else {
    damages_.emplace(shard, std::move(bad));
  }
  return Outcome::kDone;
}

// Of the copy that is there. A damaged one is copied again.
Result<bool> StageRun::is_whole(uint32_t shard, Worker& worker) {
  const auto file = File::open_read(dir_, shard_file_name(shard));
  if (!file.ok() || !check_shard_file(*file, shard, task_.pack->shards()[shard]).ok()) return false;
  std::vector<Damage> bad;
  LoadedShard loaded;
  IndexCheck none;  // the pack's would take what is wrong here for its own damage
  load_shard(dir_, facts_, none, shard, max_footer_bytes(request_.memory_bytes), bad, loaded);
  if (!bad.empty()) return false;
  const ShardExtent extent = loaded.extent(facts_);
  for (size_t i = 0; i < loaded.chunks.size() && bad.empty(); ++i) {
    if (stopping()) return stopped();
    const uint64_t start = uint64_t{loaded.chunks[i].slot} << facts_.identity.chunk_bytes_log2;
    const uint64_t end = loaded.chunk_end(i, facts_.identity);
    worker.verifier.verify(extent, loaded.chunk_number(i), loaded.chunks[i], end, bad);
    if (hooks_.advance) hooks_.advance(loaded.chunks[i].sample_count, end - start);
  }
  return bad.empty();
}

// Into TARGET, unless something is BAD.
Status StageRun::copy_shard(uint32_t shard, StagedFile& target, Worker& worker,
                            std::vector<Damage>& bad) {
  LoadedShard loaded;
  load_shard(task_.pack->directory(), facts_, *index_, shard,
             max_footer_bytes(request_.memory_bytes), bad, loaded);
  Target out(target.file());
  const ShardExtent extent = loaded.extent(facts_);
  for (size_t i = 0; i < loaded.chunks.size() && bad.empty(); ++i) {
    if (stopping()) return {};
    const ChunkRow& chunk = loaded.chunks[i];
    const uint64_t start = uint64_t{chunk.slot} << facts_.identity.chunk_bytes_log2;
    const uint64_t bytes = loaded.chunk_end(i, facts_.identity) - start;
    if (bytes <= facts_.identity.chunk_bytes()) {
      worker.verifier.verify(extent, loaded.chunk_number(i), chunk, start + bytes, bad);
      if (!bad.empty()) break;
      SPK_ASSIGN(const ByteSpan whole, worker.bytes.span(0, bytes));
      SPK_TRY(out.write(start, whole));
    } else {
      // A sample larger than a chunk never is in memory as a whole: it is copied first, and then
      // the copy is judged.
      worker.bytes.open(loaded.file, start, bytes);
      for (uint64_t at = 0; at < bytes && !stopping();) {
        const uint64_t piece_bytes =
            std::min(std::min(kPieceBytes, facts_.identity.chunk_bytes()), bytes - at);
        SPK_ASSIGN(const ByteSpan piece, worker.bytes.span(at, piece_bytes));
        SPK_TRY(out.write(start + at, piece));
        at += piece_bytes;
      }
      if (stopping()) return {};
      out.end_direct();
      ShardExtent copy = extent;
      copy.file = &target.file();
      worker.verifier.verify(copy, loaded.chunk_number(i), chunk, start + bytes, bad);
    }
    if (hooks_.advance) hooks_.advance(chunk.sample_count, bytes);
  }
  if (!bad.empty()) return {};
  out.end_direct();
  if (hooks_.advance) hooks_.advance(0, loaded.footer.bytes.size());
  return out.write(loaded.data_bytes, loaded.footer.bytes);
}

Status StageRun::write_whole(const std::string& name,
                             const std::function<Status(const File&)>& write) {
  for (;;) {
    SPK_ASSIGN(std::optional<StagedFile> target, StagedFile::claim(dir_, name));
    if (target) {
      SPK_TRY(write(target->file()));
      return target->publish();
    }
    if (stopping()) return stopped();
    std::this_thread::sleep_for(kPollTime);
  }
}

Status StageRun::copy_file(const std::string& name) {
  const auto from = File::open_read(task_.pack->directory(), name);
  // The check of the whole tells where one is missing that belongs there.
  if (!from.ok() && from.status().code() == Code::kNotFound) return {};
  if (!from.ok()) return from.status();
  return write_whole(name, [&](const File& to) -> Status {
    SPK_ASSIGN(AlignedBuffer buffer, AlignedBuffer::allocate(kPieceBytes));
    for (uint64_t at = 0;;) {
      if (stopping()) return stopped();
      SPK_ASSIGN(const uint64_t bytes, from->read_some(at, buffer.span()));
      if (bytes == 0) return {};
      SPK_TRY(to.write_all(at, ByteSpan(buffer.span()).first(bytes)));
      at += bytes;
    }
  });
}

// The pack's record grows when it is looked at anew.
Status StageRun::refresh_layout() {
  const auto now = read_whole_file(task_.pack->directory(), kLayoutName, kMostLayoutBytes);
  if (!now.ok() && now.status().code() == Code::kNotFound) return {};
  if (!now.ok()) return now.status();
  const auto copy = read_whole_file(dir_, kLayoutName, kMostLayoutBytes);
  return copy.ok() && *copy == *now ? Status() : copy_file(std::string(kLayoutName));
}

// What makes a pack of the shards. The manifest comes last, once all else is proven as
// `verify --quick` proves it.
Status StageRun::finish_pack(const DamageSink& sink) {
  for (const std::string& name : stage_companions()) SPK_TRY(copy_file(name));
  VerifyOptions options;
  options.level = VerifyLevel::kQuick;
  options.threads = request_.jobs;
  options.memory_bytes = request_.memory_bytes;
  VerifyHooks hooks;
  hooks.cancel = hooks_.cancel;
  SPK_TRY(check_pack(
              dir_, false, options, [&](const Damage& damage) { report(sink, damage); }, hooks)
              .status());
  return counts_.damages == 0 ? write_manifest(sink) : Status();
}

Status StageRun::write_manifest(const DamageSink& sink) {
  const Pack& pack = *task_.pack;
  SPK_ASSIGN(const std::vector<uint8_t> bytes,
             read_whole_file(pack.directory(), kManifestName, kMostManifestBytes));
  const std::string expected =
      render_manifest(pack.index().header, pack.shards(), pack.schema(), pack.settings());
  if (as_text(bytes) == expected) {
    return write_whole(std::string(kManifestName),
                       [&](const File& to) { return to.write_all(0, bytes); });
  }
  Damage damage;
  damage.kind = DamageKind::kManifest;
  damage.file = kManifestName;
  damage.offset = 0;
  damage.what = str_cat(kManifestName, " differs from what the index says");
  report(sink, damage);
  return {};
}

}  // namespace spk
