#include "commands/extract_run.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "base/varint.h"
#include "sinks/blob_copy.h"
#include "sinks/folder_writer.h"
#include "team/team.h"
#include "ui/signals.h"

namespace spk {

namespace {

// A batch is read in one call; it ends with its chunk or at so many bytes.
constexpr uint64_t kBatchBytes = uint64_t{16} << 20;

Status stopped() {
  Status status = cancel_status();
  return status.ok() ? Status(Code::kCancelled, "stopped") : status;
}

}  // namespace

struct ExtractRun::Worker {
  FolderWriter writer;
  Progress& progress;
  std::vector<uint64_t> samples;  // the batch
  std::vector<uint64_t> sizes;
  uint64_t batch_bytes = 0;
  AlignedBuffer buffer;
};

Result<std::unique_ptr<ExtractRun>> ExtractRun::plan(const Pack& pack, const SampleFilter& filter,
                                                     const ExtractSettings& settings) {
  std::unique_ptr<ExtractRun> run(new ExtractRun(pack, settings));
  SPK_TRY(run->plan_samples(filter));
  return run;
}

Status ExtractRun::plan_samples(const SampleFilter& filter) {
  const FactReader reader(pack_);
  states_.resize(pack_.sample_count(), State::kNotChosen);
  for (uint64_t sample = filter.begin(); sample < filter.end(); ++sample) {
    if (stopping()) return stopped();
    SPK_ASSIGN(const SampleFacts facts, reader.read(sample));
    if (!filter.matches(facts)) continue;
    states_[sample] = State::kChosen;
    names_.add(sample, facts.key);
    ++chosen_;
    chosen_bytes_ += facts.bytes.value_or(0);
  }
  return names_.finish([this](uint64_t sample) { return pack_.key(sample); });
}

Status ExtractRun::write(const Directory& root, Progress& progress) {
  std::vector<std::jthread> threads;
  const uint64_t most = std::max<uint64_t>(1, pack_.chunk_count());
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(settings_.jobs, most));
  try {
    for (uint32_t i = 1; i < count; ++i) threads.emplace_back([&] { work(root, progress); });
  } catch (const std::system_error&) {
    // No more threads to be had; those that are there do the work.
  }
  work(root, progress);
  threads.clear();  // joins
  if (!fatal_.ok()) return fatal_;
  return settings_.stop->load() ? stopped() : Status();
}

void ExtractRun::work(const Directory& root, Progress& progress) {
  Worker worker{FolderWriter(root, settings_.replace, open_folders_of_each(settings_.jobs)),
                progress,
                {},
                {},
                0,
                {}};
  while (!stopping()) {
    const uint64_t number = next_chunk_.fetch_add(settings_.ranks);
    if (number >= pack_.chunk_count()) return;
    const Result<ChunkLocation> chunk = pack_.chunk(number);
    if (!chunk.ok()) return stop_with(0, chunk.status());
    const Status status = extract_chunk(*chunk, worker);
    if (!status.ok()) return stop_with(chunk->first_sample, status);
  }
}

Status ExtractRun::extract_chunk(const ChunkLocation& chunk, Worker& worker) {
  const uint64_t end = chunk.first_sample + chunk.sample_count;
  for (uint64_t sample = chunk.first_sample; sample < end; ++sample) {
    if (states_[sample] != State::kChosen) continue;
    if (stopping()) return {};
    SPK_ASSIGN(const SampleLocation place, pack_.locate(sample, settings_.field));
    if (!place.present) {
      Status absent(Code::kNotFound,
                    str_cat("has no '", pack_.schema().fields[settings_.field].name, "'"));
      SPK_TRY(settle(sample, 0, std::move(absent), true, worker));
    } else if (place.bytes > kWholeBlobBytes) {
      SPK_TRY(settle(sample, place.bytes, write_large(sample, worker), true, worker));
    } else {
      if (worker.batch_bytes + place.bytes > kBatchBytes) SPK_TRY(read_and_write(worker));
      worker.samples.push_back(sample);
      worker.sizes.push_back(place.bytes);
      worker.batch_bytes += place.bytes;
    }
  }
  return read_and_write(worker);
}

Status ExtractRun::read_and_write(Worker& worker) {
  if (worker.buffer.size() < worker.batch_bytes) {
    SPK_ASSIGN(worker.buffer, AlignedBuffer::allocate(worker.batch_bytes));
  }
  std::vector<ReadItem> items(worker.samples.size());
  uint64_t at = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].sample = worker.samples[i];
    items[i].into = worker.buffer.span().subspan(at, worker.sizes[i]);
    at += worker.sizes[i];
  }
  worker.samples.clear();
  worker.sizes.clear();
  worker.batch_bytes = 0;
  if (items.empty()) return {};
  Status overall = pack_.read_many(settings_.field, items);
  if (!overall.ok() && overall.code() != Code::kPartial) return overall;
  for (ReadItem& item : items) {
    if (stopping()) return {};
    Status status = std::move(item.status);
    const bool reading = !status.ok();
    if (!reading) {
      SPK_ASSIGN(const std::string key, pack_.key(item.sample));
      const ByteSpan bytes = item.into.first(item.bytes);
      status = worker.writer.write(names_.path_of(item.sample, key),
                                   [&](const File& file) { return file.write_all(0, bytes); });
    }
    SPK_TRY(settle(item.sample, item.bytes, std::move(status), reading, worker));
  }
  return {};
}

Status ExtractRun::write_large(uint64_t sample, Worker& worker) {
  SPK_ASSIGN(const std::string key, pack_.key(sample));
  return worker.writer.write(names_.path_of(sample, key), [&](const File& file) {
    uint64_t at = 0;
    return copy_blob(pack_, sample, settings_.field, [&](ByteSpan piece) {
      if (settings_.stop->load()) return stopped();
      Status status = file.write_all(at, piece);
      at += piece.size();
      return status;
    });
  });
}

Status ExtractRun::settle(uint64_t sample, uint64_t bytes, Status status, bool reading,
                          Worker& worker) {
  const Code code = status.code();
  const bool unreadable = reading && (code == Code::kDamaged || code == Code::kNotFound);
  if (!status.ok() && !unreadable && code != Code::kExists) return status;
  if (status.ok()) {
    states_[sample] = State::kWritten;
    worker.progress.add(1, bytes);
    const std::lock_guard lock(mutex_);
    ++counts_.written;
    counts_.bytes += bytes;
    return {};
  }
  worker.progress.add_rejects(1);
  SPK_ASSIGN(std::string key, pack_.key(sample));
  const std::lock_guard lock(mutex_);
  ++(unreadable ? counts_.damaged : counts_.existing);
  failures_.emplace(sample, ExtractFailure{std::move(key), std::move(status)});
  if (failures_.size() > kFailuresKept) failures_.erase(std::prev(failures_.end()));
  return {};
}

std::string ExtractRun::outcome() const {
  std::string bytes;
  for (const uint64_t number : {counts_.written, counts_.bytes, counts_.damaged, counts_.existing,
                                static_cast<uint64_t>(failures_.size())}) {
    append_varint(bytes, number);
  }
  for (const auto& [sample, failure] : failures_) {
    append_varint(bytes, sample);
    append_string(bytes, failure.key);
    append_string(bytes, encode_status(failure.status));
  }
  uint64_t last = 0;
  for (uint64_t sample = 0; sample < states_.size(); ++sample) {
    if (states_[sample] != State::kWritten) continue;
    append_varint(bytes, sample - last);  // chunks are neighbours: mostly one byte
    last = sample;
  }
  return bytes;
}

bool ExtractRun::merge(std::string_view bytes) {
  ByteSpan rest = as_bytes(bytes);
  ExtractCounts more;
  uint64_t failures = 0;
  if (!take_varint(&rest, &more.written) || !take_varint(&rest, &more.bytes) ||
      !take_varint(&rest, &more.damaged) || !take_varint(&rest, &more.existing) ||
      !take_varint(&rest, &failures)) {
    return false;
  }
  counts_.written += more.written;
  counts_.bytes += more.bytes;
  counts_.damaged += more.damaged;
  counts_.existing += more.existing;
  for (uint64_t i = 0; i < failures; ++i) {
    uint64_t sample = 0;
    std::string_view key, text;
    Status status;
    if (!take_varint(&rest, &sample) || !take_string(&rest, &key) || !take_string(&rest, &text) ||
        !decode_status(text, &status)) {
      return false;
    }
    failures_.emplace(sample, ExtractFailure{std::string(key), std::move(status)});
    if (failures_.size() > kFailuresKept) failures_.erase(std::prev(failures_.end()));
  }
  uint64_t sample = 0;
  for (uint64_t step = 0; !rest.empty(); sample += step) {
    if (!take_varint(&rest, &step) || sample + step >= states_.size()) return false;
    states_[sample + step] = State::kWritten;
  }
  return true;
}

// Of several the one of the first sample is told, whatever the threads' order.
void ExtractRun::stop_with(uint64_t sample, Status status) {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  if (!fatal_.ok() && fatal_sample_ <= sample) return;
  fatal_ = std::move(status);
  fatal_sample_ = sample;
}

}  // namespace spk
