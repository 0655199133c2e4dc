#include "container/blob_reader.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/buffer.h"
#include "base/text.h"

namespace spk {

namespace {

// What may lie between two blobs that are read together. From a network or by a thread of a pool,
// a read costs more than 64 KiB; a read from memory is done in the time of copying a page.
constexpr uint64_t kGapBytesFar = uint64_t{64} << 10;
constexpr uint64_t kGapBytesNear = uint64_t{4} << 10;
// Bounds the scratch memory, the files pinned and the operations of one hand-over to the engine.
constexpr uint64_t kBatchScratchBytes = uint64_t{64} << 20;
constexpr size_t kBatchShards = 64;
constexpr size_t kBatchOps = 4096;
// How far ahead pages are asked for, and how often it is looked whether that is worth while.
constexpr uint64_t kAheadBytes = uint64_t{32} << 20;
constexpr uint64_t kWatchBytes = uint64_t{4} << 20;

}  // namespace

// Tells whether mapped pages come from the disk, by the faults that the kernel counts as major.
// Once they did, they are taken to go on doing so until the call ends.
class BlobReader::DiskWatch {
 public:
  bool is_cold() const noexcept { return cold_; }
  void copied(uint64_t bytes) noexcept {
    bytes_ += bytes;
    if (bytes_ < kWatchBytes || cold_) return;
    bytes_ = 0;
    rusage usage{};
    if (::getrusage(RUSAGE_THREAD, &usage) != 0) return;
    cold_ = faults_ >= 0 && usage.ru_majflt != faults_;
    faults_ = usage.ru_majflt;
  }

 private:
  uint64_t bytes_ = 0;  // copied since it last looked
  long faults_ = -1;    // -1: it has not looked yet
  bool cold_ = false;
};

BlobReader::BlobReader(const PackIndex& index, const ShardFiles& files,
                       std::unique_ptr<ReadEngine> engine, bool network, bool check_checksums)
    : index_(index),
      files_(files),
      engine_(std::move(engine)),
      most_gap_bytes_(engine_ != nullptr || network ? kGapBytesFar : kGapBytesNear),
      most_run_bytes_(index.identity().chunk_bytes()),
      check_checksums_(check_checksums) {}

Status BlobReader::annotate(Status status, uint64_t sample, uint32_t shard, uint64_t offset) const {
  if (status.ok()) return status;
  // The message of a failed read says what the system said; whose bytes they were is added in
  // front.
  Status named(status.code(), str_cat(index_.describe(sample), ": ", status.message()));
  if (!status.hint().empty()) named = std::move(named).with_hint(status.hint());
  return files_.blame(std::move(named), shard)
      .at_offset(status.offset() == Status::kNoOffset ? offset : status.offset());
}

Status BlobReader::damage(uint64_t sample, const SampleLocation& location, uint64_t actual) const {
  Status status =
      damaged(str_cat(index_.describe(sample), " (", location.bytes, " bytes) has checksum ",
                      to_hex(actual), ", expected ", to_hex(location.checksum)));
  return files_.blame(std::move(status), location.shard)
      .at_offset(location.offset)
      .with_hint("`stripepack verify` lists all damage");
}

Status BlobReader::check_blob(uint64_t sample, const SampleLocation& location,
                              ByteSpan blob) const {
  const uint64_t actual = xxh3_64(blob);
  return actual == location.checksum ? Status() : damage(sample, location, actual);
}

void BlobReader::check(const Wanted& wanted, ReadItem& item) const {
  if (!check_checksums_) return;
  const uint64_t actual = xxh3_64(item.into.first(wanted.bytes));
  if (actual == wanted.checksum) return;
  const SampleLocation location{true, wanted.shard, wanted.offset, wanted.bytes, wanted.checksum};
  item.status = damage(item.sample, location, actual);
}

Status BlobReader::plan(uint64_t sample, uint16_t field, uint64_t room_bytes,
                        SampleLocation& location) const {
  SPK_TRY(index_.locate(sample, field, location));
  if (!location.present) {
    return Status(Code::kNotFound, str_cat(index_.describe(sample), " has no value in field '",
                                           index_.schema().fields[field].name, "'"));
  }
  if (location.bytes > room_bytes) {
    return invalid_argument(str_cat("room for ", room_bytes, " bytes, but ",
                                    index_.describe(sample), " has ", location.bytes));
  }
  return {};
}

Result<uint64_t> BlobReader::read(uint64_t sample, uint16_t field, MutableByteSpan into) const {
  SPK_TRY(index_.check_blob_field(field));
  SampleLocation location;
  SPK_TRY(plan(sample, field, into.size(), location));
  Pin pin;
  SPK_TRY(files_.pin(location.shard, pin));
  const MutableByteSpan blob = into.first(location.bytes);
  Status status = pin->read(location.offset, blob);
  if (!status.ok()) {
    return annotate(std::move(status), sample, location.shard, location.offset);
  }
  if (check_checksums_) SPK_TRY(check_blob(sample, location, blob));
  return location.bytes;
}

std::vector<BlobReader::Wanted> BlobReader::plan_many(uint16_t field,
                                                      std::span<ReadItem> items) const {
  std::vector<Wanted> wanted;
  wanted.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ReadItem& item = items[i];
    SampleLocation location;
    item.bytes = 0;
    item.status = plan(item.sample, field, item.into.size(), location);
    if (location.present) item.bytes = location.bytes;
    if (!item.status.ok()) continue;
    wanted.push_back({location.shard, static_cast<uint32_t>(i), location.offset, location.bytes,
                      location.checksum});
  }
  const auto before = [](const Wanted& a, const Wanted& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.offset < b.offset;
  };
  if (!std::is_sorted(wanted.begin(), wanted.end(), before)) {
    std::sort(wanted.begin(), wanted.end(), before);
  }
  return wanted;
}

Status BlobReader::read_many(uint16_t field, std::span<ReadItem> items) const {
  SPK_TRY(index_.check_blob_field(field));
  if (items.size() > UINT32_MAX) return invalid_argument("more than 2^32 - 1 items in one call");
  const std::vector<Wanted> wanted = plan_many(field, items);
  if (engine_ != nullptr) {
    read_by_engine(wanted, items);
  } else {
    DiskWatch watch;
    for (size_t begin = 0; begin < wanted.size();) {
      size_t end = begin + 1;
      while (end < wanted.size() && wanted[end].shard == wanted[begin].shard) ++end;
      const Group group(wanted.data() + begin, end - begin);
      begin = end;
      Pin pin;
      const Status status = files_.pin(group.front().shard, pin);
      if (!status.ok()) {
        for (const Wanted& one : group) items[one.item].status = status;
      } else if (pin->is_mapped()) {
        copy_mapped(group, *pin, items, watch);
      } else {
        read_group(group, *pin, items);
      }
    }
  }
  uint64_t failed = 0;
  const ReadItem* first = nullptr;
  for (const ReadItem& item : items) {
    if (item.status.ok()) continue;
    if (failed++ == 0) first = &item;
  }
  if (failed == 0) return {};
  return Status(Code::kPartial,
                str_cat(failed, " of ", count_of(items.size(), "sample"),
                        " could not be read; the first: ", first->status.to_string()))
      .at_shard(first->status.shard())
      .at_offset(first->status.offset());
}

void BlobReader::copy_mapped(Group group, const OpenShard& shard, std::span<ReadItem> items,
                             DiskWatch& watch) const {
  const uint8_t* data = shard.mapping.bytes().data();
  size_t asked = 0;          // the first of the group that is neither copied nor asked for
  uint64_t ahead_bytes = 0;  // asked for and not copied yet
  for (size_t i = 0; i < group.size(); ++i) {
    const Wanted& wanted = group[i];
    if (watch.is_cold()) {
      for (asked = std::max(asked, i); asked < group.size() && ahead_bytes < kAheadBytes; ++asked) {
        shard.mapping.advise_will_need(group[asked].offset, group[asked].bytes);
        ahead_bytes += group[asked].bytes;
      }
    }
    if (i < asked) ahead_bytes -= wanted.bytes;
    ReadItem& item = items[wanted.item];
    if (wanted.bytes != 0) std::memcpy(item.into.data(), data + wanted.offset, wanted.bytes);
    watch.copied(wanted.bytes);
    check(wanted, item);
  }
}

BlobReader::Run BlobReader::next_run(Group group) const {
  Run run{1, group[0].offset, group[0].offset + group[0].bytes};
  while (run.count < group.size()) {
    const Wanted& next = group[run.count];
    // The same blob twice, or a hostile index in which blobs overlap, makes a read of its own.
    if (next.shard != group[0].shard || next.offset < run.end) break;
    if (next.offset - run.end > most_gap_bytes_) break;
    if (next.offset + next.bytes - run.offset > most_run_bytes_) break;
    run.end = next.offset + next.bytes;
    ++run.count;
  }
  return run;
}

void BlobReader::read_alone(const Wanted& wanted, const OpenShard& shard, ReadItem& item) const {
  item.status = annotate(shard.read(wanted.offset, item.into.first(wanted.bytes)), item.sample,
                         wanted.shard, wanted.offset);
  if (item.status.ok()) check(wanted, item);
}

void BlobReader::read_group(Group group, const OpenShard& shard, std::span<ReadItem> items) const {
  std::vector<MutableByteSpan> pieces;
  std::vector<uint8_t> waste;  // where the bytes between blobs go
  while (!group.empty()) {
    const Run run = next_run(group);
    const Group blobs = group.first(run.count);
    group = group.subspan(run.count);
    if (run.count == 1) {
      read_alone(blobs[0], shard, items[blobs[0].item]);
      continue;
    }
    pieces.clear();
    uint64_t at = run.offset;
    for (const Wanted& wanted : blobs) {
      if (wanted.offset != at) {
        if (waste.empty()) waste.resize(most_gap_bytes_);
        pieces.push_back(MutableByteSpan(waste).first(wanted.offset - at));
      }
      if (wanted.bytes != 0) pieces.push_back(items[wanted.item].into.first(wanted.bytes));
      at = wanted.offset + wanted.bytes;
    }
    const bool whole = shard.file.read_exact_v(run.offset, pieces).ok();
    for (const Wanted& wanted : blobs) {
      if (whole) {
        check(wanted, items[wanted.item]);
      } else {
        read_alone(wanted, shard, items[wanted.item]);
      }
    }
  }
}

void BlobReader::read_by_engine(std::span<const Wanted> wanted, std::span<ReadItem> items) const {
  struct Job {
    size_t first;  // in `wanted`
    Run run;
    size_t pin;
    AlignedBuffer scratch;  // for more than one blob
  };
  std::vector<Pin> pins;
  std::vector<Job> jobs;
  std::vector<ReadOp> ops;
  size_t next = 0;
  while (next < wanted.size()) {
    pins.clear();
    jobs.clear();
    ops.clear();
    uint64_t scratch_bytes = 0;
    uint32_t pinned = 0;
    while (next < wanted.size() && scratch_bytes < kBatchScratchBytes && jobs.size() < kBatchOps) {
      Job job{next, next_run(wanted.subspan(next)), 0, {}};
      const uint32_t shard = wanted[next].shard;
      if (pins.empty() || shard != pinned) {
        if (pins.size() == kBatchShards) break;
        Pin pin;
        const Status status = files_.pin(shard, pin);
        if (!status.ok()) {
          for (; next < wanted.size() && wanted[next].shard == shard; ++next) {
            items[wanted[next].item].status = status;
          }
          continue;
        }
        pins.push_back(std::move(pin));
        pinned = shard;
      }
      job.pin = pins.size() - 1;
      MutableByteSpan into = items[wanted[next].item].into.first(wanted[next].bytes);
      if (job.run.count > 1) {
        auto scratch = AlignedBuffer::allocate(job.run.end - job.run.offset);
        if (scratch.ok()) {
          job.scratch = std::move(scratch).value();
          into = job.scratch.span().first(job.run.end - job.run.offset);
          scratch_bytes += into.size();
        } else {
          job.run.count = 1;  // slower, but without more memory
        }
      }
      next += job.run.count;
      ops.push_back({pins.back()->file.fd(), job.run.offset, into, {}});
      jobs.push_back(std::move(job));
    }
    // Each op's own status is what counts here.
    (void)engine_->read(ops);
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Job& job = jobs[i];
      for (const Wanted& one : wanted.subspan(job.first, job.run.count)) {
        ReadItem& item = items[one.item];
        if (job.run.count == 1 && !ops[i].status.ok()) {
          item.status = annotate(std::move(ops[i].status), item.sample, one.shard, one.offset);
        } else if (!ops[i].status.ok()) {
          read_alone(one, *pins[job.pin], item);
        } else {
          if (job.run.count > 1 && one.bytes != 0) {
            std::memcpy(item.into.data(), job.scratch.data() + (one.offset - job.run.offset),
                        one.bytes);
          }
          check(one, item);
        }
      }
    }
  }
}

}  // namespace spk
