// Writes a plan file; Plan::load (pipeline/plan.h) reads it.
//
//   magic "SPKPLAN\n" | u32 version | u32 reserved 0 | u64 header bytes | u64 file bytes
//   header: PlanInfo, then for each shard: offset, bytes, samples, XXH3-64 of its records
//   u64 XXH3-64 of everything before it
//   the records of shard 0, of shard 1, ...
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/directory.h"
#include "io/file.h"
#include "pipeline/plan.h"

namespace spk {

constexpr uint32_t kPlanFileVersion = 2;

class PlanFileWriter {
 public:
  // A new file under a temporary name. Everything of `info` but plan_id is settled.
  static Result<PlanFileWriter> create(const Directory& directory, const PlanInfo& info);
  PlanFileWriter(PlanFileWriter&&) noexcept = default;
  PlanFileWriter& operator=(PlanFileWriter&&) = delete;
  // Removes the temporary file unless finish() succeeded.
  ~PlanFileWriter();

  // The next record (append_entry) in storage order.
  Status add(ByteSpan record);
  // REQUIRES info.sample_count records added. Writes the header, fsyncs, renames to `name` and
  // fsyncs the directory.
  Status finish(const Hash128& plan_id, const std::string& name);

 private:
  struct Slice {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t samples = 0;
    uint64_t checksum = 0;
  };

  PlanFileWriter(const Directory& directory, const PlanInfo& info);
  Status flush();
  void close_slice();
  std::string encode_head() const;

  const Directory* directory_;
  PlanInfo info_;
  std::string temporary_name_;
  File file_;
  std::vector<Slice> slices_;
  uint32_t shard_ = 0;
  Xxh3Stream slice_hash_;
  std::vector<uint8_t> buffer_;
  uint64_t written_to_ = 0;
};

}  // namespace spk
