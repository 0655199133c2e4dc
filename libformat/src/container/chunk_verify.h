// Checks one chunk to its last byte and goes on behind whatever is wrong, so that one bad byte
// costs one finding and one sample.
#pragma once

#include <string>
#include <vector>

#include "container/chunk_bytes.h"
#include "container/chunk_check.h"
#include "container/damage.h"
#include "container/sample_rows.h"
#include "format/footer.h"

namespace spk {

// What is known about a shard when its chunks are checked. Everything outlives the checks.
struct ShardExtent {
  const File* file = nullptr;  // null: the shard is missing, or cannot be opened
  Code open_error = Code::kNotFound;
  std::string name;
  uint32_t shard = 0;
  uint64_t data_bytes = 0;       // where the footer starts, or should
  uint64_t available_bytes = 0;  // of them, how many the file has
  PackIdentity identity;
  const Schema* schema = nullptr;
  // Rows of the whole shard from footer or index; null where both are lost: then each chunk's own
  // table has to be believed.
  const SampleRows* rows = nullptr;
};

// Not thread-safe; each thread has its own.
class ChunkVerifier {
 public:
  // `buffer` must outlive the verifier.
  explicit ChunkVerifier(ChunkBytes& buffer) : bytes_(buffer) {}

  // Chunk `number` of the shard, which lies as `row` says and ends at `end`. Appends what is wrong.
  // A cut is one finding of the file as a whole, made by the caller: here only its samples are
  // named.
  void verify(const ShardExtent& shard, uint32_t number, const ChunkRow& row, uint64_t end,
              std::vector<Damage>& damages);

 private:
  void check_head();
  // The same for a header that is whole.
  void compare_head(const ChunkHeader& header);
  void check_payload();
  // Row `row` of `rows`, whose offsets count from `base`, is sample `number` of the shard.
  void check_sample(const SampleRows& rows, uint64_t row, uint64_t base, uint64_t number);
  void check_padding(uint64_t end);
  Damage& report(DamageKind kind, Code code, uint64_t chunk_offset, std::string what);
  void report(DamageKind kind, const Status& status, uint64_t chunk_offset, std::string_view where);

  ChunkBytes& bytes_;
  const ShardExtent* shard_ = nullptr;
  uint32_t number_ = 0;
  ChunkRow row_;
  uint64_t start_ = 0;
  uint64_t extent_bytes_ = 0;
  std::vector<Damage>* damages_ = nullptr;
  bool cut_ = false;

  std::vector<uint8_t> table_;  // copy of the table: bytes_ may be overwritten by a streamed blob
  SampleRows chunk_rows_;       // refers to table_ or the buffer
  bool has_chunk_rows_ = false;
  uint64_t checked_to_ = 0;  // everything before is checked, from the chunk's start
};

}  // namespace spk
