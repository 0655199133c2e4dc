#include "pipeline/export_run.h"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/text.h"
#include "base/varint.h"
#include "io/atomic_file.h"
#include "layout/geometry.h"

namespace spk {

namespace {

constexpr uint64_t kMostBatchBytes = uint64_t{16} << 20;
constexpr uint64_t kMostRecordBytes = uint64_t{1} << 30;

std::string record_name(uint64_t file) { return str_cat("file-", file); }

// The samples of one output file, read in batches and handed to its sink.
class FileExport {
 public:
  FileExport(const ExportJob& job, uint64_t batch_bytes, FileSink& sink)
      : job_(job), batch_bytes_(batch_bytes), sink_(sink), fields_(job.pack->schema().fields) {}

  Status run(PositionRange range) {
    for (uint64_t at = range.begin; at < range.end;) {
      if (job_.cancel != nullptr && job_.cancel->load()) {
        return Status(Code::kCancelled, "stopped");
      }
      SPK_TRY(gather(&at, range.end));
      SPK_TRY(read());
      SPK_TRY(hand_over());
    }
    return {};
  }

 private:
  struct Member {
    uint64_t place;
    uint64_t sample;
    StoredSample stored;
    std::vector<ExportBlob> blobs;
    uint64_t bytes = 0;
  };

  // Members from *at on, until the batch is full.
  Status gather(uint64_t* at, uint64_t end) {
    batch_.clear();
    uint64_t bytes = 0;
    while (*at < end && batch_.size() < 1024) {
      Member member{*at, job_.samples[*at], {}, {}, 0};
      SPK_ASSIGN(member.stored, job_.pack->sample(member.sample));
      uint64_t small_bytes = 0;
      for (size_t field = 0; field < fields_.size(); ++field) {
        ExportBlob& blob = member.blobs.emplace_back();
        const StoredField& stored = member.stored.fields[field];
        if (fields_[field].kind != FieldKind::kBlob || !stored.present) continue;
        blob.present = true;
        blob.bytes = stored.bytes;
        if (!job_.sink->reads_blobs()) continue;
        member.bytes += stored.bytes;
        if (stored.bytes <= batch_bytes_) {
          small_bytes += stored.bytes;
          continue;
        }
        blob.stream = [this, sample = member.sample, field](const ByteSink& take) {
          return copy_blob(*job_.pack, sample, static_cast<uint16_t>(field), take);
        };
      }
      if (!batch_.empty() && bytes + small_bytes > batch_bytes_) break;
      bytes += small_bytes;
      batch_.push_back(std::move(member));
      ++*at;
    }
    if (buffer_.size() < bytes) {
      SPK_ASSIGN(buffer_, AlignedBuffer::allocate(bytes));
    }
    return {};
  }

  Status read() {
    if (!job_.sink->reads_blobs()) return {};
    uint64_t at = 0;
    for (size_t field = 0; field < fields_.size(); ++field) {
      if (fields_[field].kind != FieldKind::kBlob) continue;
      std::vector<ReadItem> items;
      std::vector<size_t> owners;
      for (size_t i = 0; i < batch_.size(); ++i) {
        const ExportBlob& blob = batch_[i].blobs[field];
        if (!blob.present || blob.stream) continue;
        ReadItem& item = items.emplace_back();
        item.sample = batch_[i].sample;
        item.into = buffer_.span().subspan(at, blob.bytes);
        at += blob.bytes;
        owners.push_back(i);
      }
      if (items.empty()) continue;
      const Status overall = job_.pack->read_many(static_cast<uint16_t>(field), items);
      if (!overall.ok() && overall.code() != Code::kPartial) return overall;
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].status.ok()) {
          return std::move(items[i].status)
              .with_hint("`stripepack verify` lists all damage; `repair` mends what can be");
        }
        batch_[owners[i]].blobs[field].data = items[i].into;
      }
    }
    return {};
  }

  Status hand_over() {
    for (const Member& member : batch_) {
      const Status status = sink_.add({member.place, member.sample, &member.stored, member.blobs});
      if (!status.ok()) {
        return Status(status.code(),
                      str_cat("sample '", escape_bytes(member.stored.key), "': ", status.message()))
            .with_hint(status.hint())
            .at_path(status.path());
      }
      if (job_.advance) job_.advance(1, member.bytes);
    }
    return {};
  }

  const ExportJob& job_;
  const uint64_t batch_bytes_;
  FileSink& sink_;
  const std::vector<Field>& fields_;
  std::vector<Member> batch_;
  AlignedBuffer buffer_;
};

class Exporter {
 public:
  Exporter(const ExportJob& job, const Directory& directory, const Directory& records)
      : job_(job),
        directory_(directory),
        records_(records),
        file_count_(export_file_count(job)),
        threads_(static_cast<uint32_t>(
            std::clamp<uint64_t>(job.jobs, 1, std::max<uint64_t>(file_count_, 1)))),
        batch_bytes_(
            std::clamp<uint64_t>(job.options.memory_bytes / threads_ / 4, 1, kMostBatchBytes)),
        files_(file_count_),
        next_file_(job.rank) {}

  Result<ExportResult> run() {
    std::vector<std::jthread> threads;
    try {
      for (uint32_t i = 1; i < threads_; ++i) threads.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // No more threads to be had; those that are there do the work.
    }
    work();
    threads.clear();  // joins
    if (!first_error_.ok()) return first_error_;
    if (job_.ranks > 1) return result_;
    SPK_TRY(job_.sink->finish(directory_, files_));
    for (const ExportedFile& file : files_) {
      result_.samples += file.samples;
      result_.bytes += file.bytes;
    }
    result_.files = file_count_;
    return result_;
  }

 private:
  void work() {
    for (;;) {
      const uint64_t file = next_file_.fetch_add(job_.ranks);
      if (file >= file_count_ || stop_) return;
      const Status status = export_file(file);
      if (status.ok()) continue;
      stop_ = true;
      const std::lock_guard lock(mutex_);
      // Of several errors that of the first file is told, whatever the threads' order.
      if (first_error_.ok() || file < first_error_file_) {
        first_error_ = status;
        first_error_file_ = file;
      }
      return;
    }
  }

  Status export_file(uint64_t file) {
    SPK_ASSIGN(const bool kept, load_record(file));
    if (kept) {
      const std::lock_guard lock(mutex_);
      ++result_.files_kept;
      return {};
    }
    const PositionRange range = range_of(file);
    SPK_ASSIGN(
        const std::unique_ptr<FileSink> sink,
        job_.sink->begin(directory_, {file, file_count_, range.begin,
                                      std::span(job_.samples).subspan(range.begin, range.size())}));
    FileExport one(job_, batch_bytes_, *sink);
    SPK_TRY(one.run(range));
    SPK_ASSIGN(files_[file], sink->finish());
    SPK_TRY(directory_.sync());
    std::string record;
    append_varint(record, files_[file].samples);
    append_varint(record, files_[file].bytes);
    append_string(record, files_[file].note);
    return write_file_atomically(records_, record_name(file), as_bytes(record));
  }

  PositionRange range_of(uint64_t file) const {
    const uint64_t samples = job_.samples.size();
    if (job_.options.shard_samples != 0) {
      const uint64_t begin = file * job_.options.shard_samples;
      return {begin, std::min(begin + job_.options.shard_samples, samples)};
    }
    return shard_positions(samples, static_cast<uint32_t>(file_count_),
                           static_cast<uint32_t>(file));
  }

  Result<bool> load_record(uint64_t file) {
    SPK_ASSIGN(const bool there, records_.exists(record_name(file)));
    if (!there) return false;
    SPK_ASSIGN(const std::vector<uint8_t> record,
               read_whole_file(records_, record_name(file), kMostRecordBytes));
    ByteSpan bytes = record;
    std::string_view note;
    ExportedFile& into = files_[file];
    if (!take_varint(&bytes, &into.samples) || !take_varint(&bytes, &into.bytes) ||
        !take_string(&bytes, &note) || !bytes.empty() || into.samples != range_of(file).size()) {
      return damaged("the record of a finished file is not whole")
          .at_path(records_.path_of(record_name(file)))
          .with_hint("--restart begins anew");
    }
    into.note = note;
    if (job_.advance) job_.advance(into.samples, 0);
    return true;
  }

  const ExportJob& job_;
  const Directory& directory_;
  const Directory& records_;
  const uint64_t file_count_;
  const uint32_t threads_;
  const uint64_t batch_bytes_;
  std::vector<ExportedFile> files_;  // each is written by one thread
  std::atomic<uint64_t> next_file_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards what follows
  ExportResult result_;
  Status first_error_;
  uint64_t first_error_file_ = 0;
};

}  // namespace

uint64_t export_file_count(const ExportJob& job) {
  const uint64_t samples = job.samples.size();
  const ExportOptions& options = job.options;
  if (job.sink->single_file()) return 1;
  uint64_t files = job.sink->default_file_count(samples, job.payload_bytes);
  if (options.shard_samples != 0) files = divide_up(samples, options.shard_samples);
  if (options.shard_bytes != 0) files = divide_up(job.payload_bytes, options.shard_bytes);
  if (options.shard_count != 0) return options.shard_count;
  return std::clamp<uint64_t>(files, 1, std::max<uint64_t>(samples, 1));
}

Result<ExportResult> export_pack(const ExportJob& job, const Directory& directory,
                                 const Directory& records) {
  return Exporter(job, directory, records).run();
}

}  // namespace spk
