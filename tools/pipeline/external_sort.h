// Sorts records of (key, payload) in bounded memory. What does not fit is written to a file in
// sorted runs, which are merged while they are read back; what fits never touches the disk.
//
// Order: bytes of the key, then bytes of the payload. It is total, so the result does not depend
// on memory, on the order of adding, or on where the runs were cut.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

class ExternalSorter {
 public:
  // `memory_bytes` bounds what is held while adding, and again what one stream holds while reading.
  // A spill file is made in `directory` as sort.<token> and unlinked at once, so that nothing is
  // left behind however the process ends. An empty `directory` forbids spilling: add() then fails
  // with kNoMemory where the records do not fit.
  ExternalSorter(std::string directory, uint64_t memory_bytes);
  ~ExternalSorter();
  ExternalSorter(ExternalSorter&&) noexcept;
  ExternalSorter& operator=(ExternalSorter&&) noexcept;

  // Copies both. kNoSpace where the disk is full; kNoMemory where one record alone exceeds the
  // memory. Not thread-safe.
  Status add(ByteSpan key, ByteSpan payload);
  // No add() after it.
  Status finish();

  uint64_t count() const noexcept { return count_; }
  uint64_t spilled_bytes() const noexcept { return spilled_bytes_; }

  // Reads all records in order. Independent of other streams; must not outlive the sorter.
  class Stream {
   public:
    virtual ~Stream() = default;
    // False after the last record. The spans are valid until the next call.
    virtual Result<bool> next(ByteSpan* key, ByteSpan* payload) = 0;
  };
  // REQUIRES finish(). May be called more than once.
  Result<std::unique_ptr<Stream>> read() const;

 private:
  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  struct Ref;
  class MemoryStream;
  class MergeStream;

  Status spill();
  Status open_spill_file(File* file) const;
  Status merge_runs_until_few();
  uint64_t largest_fan_in() const noexcept;
  uint64_t io_buffer_bytes() const noexcept;
  Ref* refs() const noexcept;
  void sort_refs() noexcept;

  std::string directory_;
  uint64_t memory_bytes_;
  // Records grow from the front of the region, references to them from its back; where they meet,
  // the region is full.
  std::unique_ptr<uint8_t[]> region_;
  uint64_t region_bytes_ = 0;
  uint64_t used_bytes_ = 0;
  uint64_t held_ = 0;  // records in the region
  uint64_t count_ = 0;
  uint64_t spilled_bytes_ = 0;
  uint64_t file_end_ = 0;
  File file_;
  std::vector<Run> runs_;
  bool finished_ = false;
};

}  // namespace spk
