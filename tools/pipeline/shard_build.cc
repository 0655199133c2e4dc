#include "pipeline/shard_build.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "container/pack.h"
#include "container/seal.h"

namespace spk {

namespace {

// The run gives up when so many samples came first and none was good: the source is surely not what
// the user thinks it is.
constexpr uint64_t kHopelessSamples = 1000;

// What a sample takes besides its payload while it waits: names, labels, fields. With tiny samples
// that is most of it.
constexpr uint64_t kWaitingSampleBytes = 1024;

// What a sample that an earlier run stored takes until its chunk is found again.
constexpr uint64_t kKeptSampleBytes = 320;
constexpr uint64_t kLeastMemoryBytes = uint64_t{4} << 20;

// What is left of a shard's memory for payloads beside the samples that were kept.
uint64_t memory_beside_kept(uint64_t memory_bytes, uint64_t kept_samples) {
  const uint64_t kept_bytes = kept_samples * kKeptSampleBytes;
  return std::max(memory_bytes - std::min(memory_bytes, kept_bytes), kLeastMemoryBytes);
}

// What reading a large sample piece by piece takes: the piece, and the window it is looked at
// through.
constexpr uint64_t kStreamBytes = uint64_t{2} << 20;

// Of all blobs.
uint64_t payload_bytes(const StoredSample& sample) {
  uint64_t bytes = 0;
  for (const StoredField& field : sample.fields) {
    if (field.present) bytes += field.bytes;
  }
  return bytes;
}

uint64_t waiting_bytes(const SampleGroup& group) {
  return group.bytes + group.made_bytes + group.samples.size() * kWaitingSampleBytes +
         (group.streamed ? kStreamBytes : 0);
}

std::string temporary_name(uint32_t shard, const std::string& attempt) {
  return str_cat(shard_file_name(shard), ".", attempt, ".tmp");
}

// Temporary files of this shard that earlier attempts left, the longest first.
Result<std::vector<std::string>> leftovers(const Directory& dir, uint32_t shard) {
  const std::string prefix = shard_file_name(shard) + ".";
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  std::vector<std::pair<uint64_t, std::string>> found;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.starts_with(prefix) || !entry.name.ends_with(".tmp")) continue;
    auto info = dir.stat(entry.name);
    if (info.ok()) found.emplace_back(info->size_bytes, entry.name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto& [size, name] : found) names.push_back(std::move(name));
  return names;
}

// A finished shard under its final name: its result, or nothing where it must be built.
Result<std::optional<ShardResult>> finished_shard(const ShardJob& job, uint32_t shard) {
  const PlanInfo& info = job.plan->info();
  const std::string name = shard_file_name(shard);
  SPK_ASSIGN(const bool exists, job.dir->exists(name));
  if (!exists) return std::optional<ShardResult>();
  auto footer = load_footer(*job.dir, shard);
  if (!footer.ok()) {
    const Code code = footer.status().code();
    if (code != Code::kDamaged && code != Code::kNotThisFormat) return std::move(footer).status();
    // It was renamed only after it was on disk, so somebody has damaged it since. Build it again.
    SPK_TRY(job.dir->unlink(name));
    return std::optional<ShardResult>();
  }
  const FooterHeader& header = footer->view.header();
  if (Hash128{header.plan_id_low, header.plan_id_high} != info.plan_id || header.shard != shard ||
      header.shard_count != info.geometry.shard_count) {
    return Status(Code::kMismatch, "the shard belongs to another plan")
        .at_path(job.dir->path_of(name))
        .with_hint("start again with --restart");
  }
  ShardResult result;
  result.samples = header.sample_count;
  result.rejects = header.reject_count;
  result.payload_bytes = header.payload_bytes;
  result.file_bytes = footer->file_bytes;
  result.was_complete = true;
  if (header.reject_count != 0) {
    SPK_ASSIGN(const ByteSpan part, footer->view.part(PartKind::kRejects));
    SPK_ASSIGN(const std::vector<RejectRow> rows, decode_reject_rows(part));
    const std::lock_guard lock(job.shared->mutex);
    for (const RejectRow& row : rows) job.shared->reject_reasons[reject_kind(row.reason)] += 1;
  }
  return std::optional<ShardResult>(result);
}

class ShardBuilder {
 public:
  ShardBuilder(const ShardJob& job, uint32_t shard, ShardWriter writer,
               std::unique_ptr<PlanCursor> cursor)
      : job_(job),
        shard_(shard),
        memory_bytes_(memory_beside_kept(job.memory_bytes, writer.kept().size())),
        writer_(std::move(writer)),
        cursor_(std::move(cursor)),
        filler_(job.preparer->schema().schema, job.plan->info().geometry,
                job.plan->info().shuffled) {}
  ~ShardBuilder() { wait_for_all(); }

  Result<ShardResult> run();
  bool must_delete() const { return writer_.must_delete(); }

 private:
  // A sample between its preparation and its chunk.
  struct Held {
    SampleEntry entry;
    // Both empty: its bytes are read, or made, again when it is placed.
    std::shared_ptr<GroupBuffer> buffer;
    std::shared_ptr<const MadeBytes> made;
    bool transformed = false;
    ByteSpan payload;
    uint64_t bytes = 0;
  };

  void index_kept();
  Result<bool> next_group();
  Status submit_ahead();
  std::shared_ptr<SampleGroup> wait_front();
  void wait_for_all();
  Status consume(SampleGroup& group);
  Status drain();
  Status write(FilledChunk chunk);
  Status read_again(const SampleEntry& entry, std::unique_ptr<SampleHandle>& handle,
                    uint64_t offset, MutableByteSpan into) const;
  Status copy_made(const SampleEntry& entry, uint64_t bytes, std::vector<uint8_t>& made,
                   uint64_t offset, MutableByteSpan into) const;

  const ShardJob& job_;
  const uint32_t shard_;
  const uint64_t memory_bytes_;
  ShardWriter writer_;
  std::unique_ptr<PlanCursor> cursor_;
  ChunkFiller filler_;
  std::vector<std::pair<uint64_t, uint64_t>> kept_by_ordinal_;  // ordinal, place in writer_.kept()
  bool end_of_plan_ = false;
  std::optional<SampleEntry> pushed_back_;  // read from the plan, too large for the last group

  std::mutex mutex_;  // guards SampleGroup::done
  std::condition_variable done_;
  std::deque<std::shared_ptr<SampleGroup>> groups_;  // in plan order
  uint64_t ahead_bytes_ = 0;

  std::unordered_map<uint64_t, Held> held_;
  uint64_t held_bytes_ = 0;
  uint64_t next_item_ = 0;
  std::vector<RejectRow> rejects_;
};

void ShardBuilder::index_kept() {
  const std::vector<StoredSample>& kept = writer_.kept();
  kept_by_ordinal_.reserve(kept.size());
  for (size_t i = 0; i < kept.size(); ++i) kept_by_ordinal_.emplace_back(kept[i].ordinal, i);
  std::sort(kept_by_ordinal_.begin(), kept_by_ordinal_.end());
}

// Gathers the next entries of the plan and hands them to the pool; false at the plan's end.
Result<bool> ShardBuilder::next_group() {
  auto group = std::make_shared<SampleGroup>();
  bool reads = false;
  while (group->samples.size() < 256) {
    PreparedSample sample;
    if (pushed_back_) {
      sample.entry = std::move(*pushed_back_);
      pushed_back_.reset();
    } else {
      SPK_ASSIGN(const bool more, cursor_->next(&sample.entry));
      if (!more) {
        end_of_plan_ = true;
        break;
      }
    }
    const auto kept = std::lower_bound(kept_by_ordinal_.begin(), kept_by_ordinal_.end(),
                                       std::pair<uint64_t, uint64_t>(sample.entry.ordinal, 0));
    if (kept != kept_by_ordinal_.end() && kept->first == sample.entry.ordinal) {
      sample.kept = true;
      sample.stored = writer_.kept()[kept->second];
      group->samples.push_back(std::move(sample));
      continue;
    }
    const bool in_memory = sample.entry.reject.empty() && job_.preparer->fits_memory(sample.entry);
    const uint64_t bytes = in_memory ? Preparer::buffer_bytes(sample.entry) : 0;
    if (reads && std::max(group->bytes + bytes, group->made_bytes) > job_.group_bytes) {
      pushed_back_ = std::move(sample.entry);
      break;
    }
    reads = true;
    group->bytes += bytes;
    if (in_memory) group->made_bytes += job_.preparer->made_bytes(sample.entry.size_bytes);
    group->samples.push_back(std::move(sample));
    if (!in_memory && group->samples.back().entry.reject.empty()) {
      group->streamed = true;
      break;  // long work: alone
    }
  }
  if (group->samples.empty()) return false;
  ahead_bytes_ += waiting_bytes(*group);
  groups_.push_back(group);
  if (!reads) {
    group->done = true;
    return true;
  }
  job_.io->submit([this, group] {
    try {
      if (job_.shared->stopping()) {
        group->status = Status(Code::kCancelled, "stopped");
      } else {
        job_.preparer->prepare(*group);
      }
    } catch (const std::exception& error) {  // bad_alloc; nothing else is expected
      group->status = Status(Code::kNoMemory, str_cat("cannot prepare samples: ", error.what()));
    }
    const std::lock_guard lock(mutex_);
    group->done = true;
    done_.notify_one();
  });
  return true;
}

Status ShardBuilder::submit_ahead() {
  while (!end_of_plan_ &&
         (groups_.empty() || ahead_bytes_ + job_.group_bytes <= memory_bytes_ / 2)) {
    SPK_ASSIGN(const bool more, next_group());
    if (!more) break;
  }
  return {};
}

std::shared_ptr<SampleGroup> ShardBuilder::wait_front() {
  const std::shared_ptr<SampleGroup> group = groups_.front();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return group->done; });
  lock.unlock();
  groups_.pop_front();
  ahead_bytes_ -= waiting_bytes(*group);
  return group;
}

void ShardBuilder::wait_for_all() {
  while (!groups_.empty()) wait_front();
}

Status ShardBuilder::consume(SampleGroup& group) {
  BuildShared& shared = *job_.shared;
  const bool hold = held_bytes_ + std::max(group.bytes, group.made_bytes) <= memory_bytes_ / 2;
  uint64_t bytes = 0;
  uint64_t rejected = 0;
  for (PreparedSample& sample : group.samples) {
    if (!sample.warnings.empty()) {
      const std::lock_guard lock(shared.mutex);
      for (const std::string& kind : sample.warnings) {
        shared.warnings.add(kind, escape_bytes(sample.entry.key));
      }
    }
    if (!sample.reject.empty()) {
      rejected += 1;
      rejects_.push_back({sample.entry.key, sample.entry.ordinal, sample.reject});
      const std::lock_guard lock(shared.mutex);
      shared.reject_reasons[reject_kind(sample.reject)] += 1;
      continue;
    }
    bytes += sample.entry.size_bytes;
    const uint64_t item = next_item_++;
    Held held;
    held.entry = std::move(sample.entry);
    held.transformed = sample.transformed;
    if (sample.in_memory && hold) {
      if (sample.transformed) {
        held.made = std::move(sample.made);
      } else {
        held.buffer = group.buffer;
      }
      held.payload = sample.payload;
      held.bytes = sample.payload.size();
      held_bytes_ += held.bytes;
    }
    held_.emplace(item, std::move(held));
    filler_.push(item, std::move(sample.stored));
    if (!filler_.wants_more()) SPK_TRY(drain());
  }
  shared.rejects += rejected;
  const uint64_t accepted = shared.accepted += group.samples.size() - rejected;
  const uint64_t done = shared.samples_done += group.samples.size();
  if (shared.on_progress) shared.on_progress(group.samples.size(), bytes, rejected);
  if (accepted == 0 && done >= kHopelessSamples) {
    const std::lock_guard lock(shared.mutex);
    const auto most =
        std::max_element(shared.reject_reasons.begin(), shared.reject_reasons.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return Status(Code::kDamaged,
                  str_cat("the first ", done, " samples were all rejected, most as '", most->first,
                          "'"))
        .with_hint("look at the source; --check none takes the bytes as they are");
  }
  return {};
}

Status ShardBuilder::drain() {
  while (std::optional<FilledChunk> chunk = filler_.next()) {
    SPK_TRY(write(std::move(*chunk)));
  }
  return {};
}

// For a sample whose bytes were not kept in memory. HANDLE is made at the first call.
Status ShardBuilder::read_again(const SampleEntry& entry, std::unique_ptr<SampleHandle>& handle,
                                uint64_t offset, MutableByteSpan into) const {
  if (job_.shared->stopping()) return Status(Code::kCancelled, "stopped");
  if (!handle) {
    SPK_ASSIGN(handle, job_.preparer->source().open(entry));
  }
  SPK_TRY(handle->read_at(offset, into));
  if (offset + into.size() == handle->size_bytes()) handle.reset();
  return {};
}

// The same for one that is made anew. MADE is filled at the first call and emptied at the last.
Status ShardBuilder::copy_made(const SampleEntry& entry, uint64_t bytes, std::vector<uint8_t>& made,
                               uint64_t offset, MutableByteSpan into) const {
  if (job_.shared->stopping()) return Status(Code::kCancelled, "stopped");
  if (made.empty()) {
    SPK_ASSIGN(made, job_.preparer->make_again(entry, bytes));
  }
  std::copy_n(made.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
  if (offset + into.size() == made.size()) made = {};
  return {};
}

Status ShardBuilder::write(FilledChunk chunk) {
  std::vector<BlobSource> blobs;
  std::vector<std::unique_ptr<SampleHandle>> handles(chunk.items.size());
  std::vector<std::vector<uint8_t>> made(chunk.items.size());  // again, while it is copied
  const std::vector<uint64_t> items = chunk.items;
  if (!writer_.next_is_kept()) {
    for (size_t i = 0; i < items.size(); ++i) {
      const Held& held = held_.at(items[i]);
      uint64_t start = 0;
      for (size_t blob = 0; blob < job_.preparer->schema().blobs.size(); ++blob) {
        const StoredField& field = chunk.samples[i].fields[blob];
        if (!field.present) continue;
        BlobSource& source = blobs.emplace_back();
        if (held.buffer || held.made || (held.entry.size_bytes == 0 && !held.transformed)) {
          source.bytes = held.payload.subspan(start, field.bytes);
        } else if (held.transformed) {
          const uint64_t bytes = payload_bytes(chunk.samples[i]);
          source.read = [this, &items, &made, i, start, bytes](uint64_t offset,
                                                               MutableByteSpan into) {
            return copy_made(held_.at(items[i]).entry, bytes, made[i], start + offset, into);
          };
        } else {
          source.read = [this, &items, &handles, i, start](uint64_t offset, MutableByteSpan into) {
            return read_again(held_.at(items[i]).entry, handles[i], start + offset, into);
          };
        }
        start += field.bytes;
      }
    }
  }
  SPK_TRY(writer_.add_chunk(std::move(chunk), blobs));
  for (const uint64_t item : items) {
    const auto held = held_.find(item);
    held_bytes_ -= held->second.bytes;
    held_.erase(held);
  }
  return {};
}

Result<ShardResult> ShardBuilder::run() {
  index_kept();
  ShardResult result;
  result.kept_samples = writer_.kept().size();
  for (;;) {
    SPK_TRY(submit_ahead());
    if (groups_.empty()) break;
    if (job_.shared->stopping()) return Status(Code::kCancelled, "stopped");
    const std::shared_ptr<SampleGroup> group = wait_front();
    if (!group->status.ok()) return std::move(group->status);
    SPK_TRY(consume(*group));
  }
  writer_.forget_kept();
  filler_.finish();
  SPK_TRY(drain());
  SPK_TRY(writer_.finish(rejects_));
  result.samples = writer_.sample_count();
  result.rejects = rejects_.size();
  result.payload_bytes = writer_.payload_bytes();
  result.file_bytes = writer_.file_bytes();
  return result;
}

Status taken_first(const ShardJob& job) {
  return Status(Code::kBusy, "other runs take over what this one would").at_path(job.dir->path());
}

Result<ShardWriter> open_writer(const ShardJob& job, uint32_t shard, const std::string& name,
                                const ShardContext& context) {
  SPK_ASSIGN(const std::vector<std::string> old_names, leftovers(*job.dir, shard));
  if (old_names.empty()) {
    SPK_ASSIGN(File file, job.files->create(*job.dir, name, shard));
    return ShardWriter::create(std::move(file), context);
  }
  // Taking over is a rename: whoever still writes the file under its old name writes the same
  // bytes to the same places, and its own rename will find nothing.
  Status taken = job.dir->rename(old_names[0], name);
  if (taken.code() == Code::kNotFound) return taken_first(job);
  SPK_TRY(std::move(taken));
  for (size_t i = 1; i < old_names.size(); ++i) SPK_TRY(job.dir->remove_tree(old_names[i]));
  auto writer = ShardWriter::resume(*job.dir, name, context);
  // What a failed sync has left in memory looks clean: it must not be there for the next run.
  if (!writer.ok() && job.dir->unlink(name).code() == Code::kNotFound) return taken_first(job);
  return writer;
}

// What is known of a shard whose own file is gone, or came second: another run, which had taken it
// for dead work, has finished it or is about to.
Result<ShardResult> after_takeover(const ShardJob& job, uint32_t shard) {
  SPK_ASSIGN(const std::optional<ShardResult> finished, finished_shard(job, shard));
  if (finished) return *finished;
  ShardResult result;
  result.taken_over = true;
  return result;
}

Result<ShardResult> build_unfinished(const ShardJob& job, uint32_t shard, const std::string& name) {
  const PlanInfo& info = job.plan->info();
  ShardContext context;
  context.identity = make_pack_identity(info);
  context.schema = job.preparer->schema().schema;
  context.settings = info.settings;
  context.shard = shard;
  context.shard_count = info.geometry.shard_count;
  context.positions = shard_positions(info.sample_count, info.geometry.shard_count, shard);

  SPK_ASSIGN(ShardWriter writer, open_writer(job, shard, name, context));
  SPK_ASSIGN(std::unique_ptr<PlanCursor> cursor, job.plan->shard(shard));
  ShardBuilder builder(job, shard, std::move(writer), std::move(cursor));
  Result<ShardResult> result = builder.run();
  if (!result.ok()) {
    if (builder.must_delete()) (void)job.dir->unlink(name);
    return std::move(result).status().at_shard(shard);
  }
  // Never over a file that is there: it may have been published already.
  Status renamed = job.dir->rename_no_replace(name, shard_file_name(shard));
  if (renamed.ok()) return result;
  if (renamed.code() == Code::kExists) {
    SPK_TRY(job.dir->remove_tree(name));
  } else if (renamed.code() != Code::kNotFound) {
    return renamed;
  }
  return after_takeover(job, shard);
}

}  // namespace

std::string reject_kind(const std::string& reason) { return reason.substr(0, reason.find(':')); }

Result<ShardResult> build_shard(const ShardJob& job, uint32_t shard) {
  const std::string name = temporary_name(shard, job.attempt);
  // Another run may take what lies there just before this one would: look again then.
  constexpr int kTries = 100;
  for (int tries = 1;; ++tries) {
    SPK_ASSIGN(const std::optional<ShardResult> finished, finished_shard(job, shard));
    if (finished) {
      job.shared->samples_done += finished->samples + finished->rejects;
      job.shared->accepted += finished->samples;
      job.shared->rejects += finished->rejects;
      if (job.shared->on_progress) {
        job.shared->on_progress(finished->samples + finished->rejects, finished->payload_bytes,
                                finished->rejects);
      }
      return *finished;
    }
    Result<ShardResult> built = build_unfinished(job, shard, name);
    const bool lost = !built.ok() && built.status().code() == Code::kBusy;
    if (!lost || tries == kTries) return built;
  }
}

}  // namespace spk
