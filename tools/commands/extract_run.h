// Writes the chosen samples of one pack to a folder, with several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "commands/pack_set.h"
#include "commands/sample_filter.h"
#include "sinks/folder_names.h"
#include "ui/progress.h"

namespace spk {

struct ExtractSettings {
  uint16_t field = 0;
  uint32_t jobs = 1;
  bool replace = false;
  // Every `ranks`th chunk from `rank` on, for several processes that share the work.
  uint32_t rank = 0;
  uint32_t ranks = 1;
  const std::atomic<bool>* stop = nullptr;  // ends it soon, with kCancelled
};

// A sample that was not written, and why.
struct ExtractFailure {
  std::string key;
  Status status;
};

struct ExtractCounts {
  uint64_t written = 0;
  uint64_t bytes = 0;
  uint64_t damaged = 0;  // contradicts its checksum, or has no such field
  uint64_t existing = 0;
};

class ExtractRun {
 public:
  static constexpr size_t kFailuresKept = 100;

  // Decides on the path of every sample that `filter` takes. The pack outlives the run.
  static Result<std::unique_ptr<ExtractRun>> plan(const Pack& pack, const SampleFilter& filter,
                                                  const ExtractSettings& settings);

  uint64_t chosen_samples() const noexcept { return chosen_; }
  uint64_t chosen_bytes() const noexcept { return chosen_bytes_; }
  const FolderNames& names() const noexcept { return names_; }

  // Damage and files in the way are counted and passed over; anything else stops it and is
  // returned, as is a signal. Once only.
  Status write(const Directory& root, Progress& progress);

  // What write() did, for another rank, which adds it to its own. False where BYTES are none.
  std::string outcome() const;
  bool merge(std::string_view bytes);

  // After write(): whether this sample's file was written.
  bool written(uint64_t sample) const noexcept {
    return sample < states_.size() && states_[sample] == State::kWritten;
  }
  const ExtractCounts& counts() const noexcept { return counts_; }
  // The first kFailuresKept of those passed over, by sample number.
  const std::map<uint64_t, ExtractFailure>& failures() const noexcept { return failures_; }

 private:
  enum class State : uint8_t { kNotChosen, kChosen, kWritten };
  struct Worker;

  ExtractRun(const Pack& pack, const ExtractSettings& settings)
      : pack_(pack), settings_(settings), next_chunk_(settings.rank) {}
  bool stopping() const { return stop_ || settings_.stop->load(); }
  Status plan_samples(const SampleFilter& filter);
  void work(const Directory& root, Progress& progress);
  Status extract_chunk(const ChunkLocation& chunk, Worker& worker);
  Status read_and_write(Worker& worker);
  Status write_large(uint64_t sample, Worker& worker);
  // Counts what is passed over; gives back what is not. `reading`: the status is that of reading.
  Status settle(uint64_t sample, uint64_t bytes, Status status, bool reading, Worker& worker);
  void stop_with(uint64_t sample, Status status);

  const Pack& pack_;
  const ExtractSettings settings_;
  FolderNames names_;
  std::vector<State> states_;  // one a sample; each is written by one thread only
  uint64_t chosen_ = 0;
  uint64_t chosen_bytes_ = 0;
  std::atomic<uint64_t> next_chunk_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;  // guards what follows
  ExtractCounts counts_;
  std::map<uint64_t, ExtractFailure> failures_;
  Status fatal_;
  uint64_t fatal_sample_ = 0;
};

}  // namespace spk
