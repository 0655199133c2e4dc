// The index file under examination: what of it can be believed, and where it differs from what the
// shards say.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "container/damage.h"
#include "format/index.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

// Thread safety: const members and compare() may be called from several threads at once.
class IndexCheck {
 public:
  // No index: knows nothing, and finds nothing wrong.
  IndexCheck() = default;
  // Reads the head and compares the checksum of every block. What is wrong is kept for damages().
  IndexCheck(const Directory& dir, uint32_t threads);

  // The head is whole; sections and shard rows may still lie in bad blocks.
  bool head_ok() const noexcept { return head_.has_value(); }
  const IndexHead& head() const noexcept { return *head_; }  // REQUIRES head_ok()
  // The shard's row; null where it cannot be believed.
  const ShardRow* row(uint32_t shard) const noexcept;
  // Bytes that lie in good blocks; nothing elsewhere.
  std::optional<std::vector<uint8_t>> read(uint64_t offset, uint64_t bytes) const;
  std::optional<std::vector<uint8_t>> section(PartKind kind) const;
  uint64_t file_bytes() const noexcept { return file_bytes_; }

  // Where the file's bytes from `offset` on first differ from `expected`; nothing where they are
  // equal or cannot be read.
  std::optional<uint64_t> first_difference(uint64_t offset, ByteSpan expected) const;
  // As that, and keeps what it finds: it sharpens the place of a bad block, or is damage of its
  // own.
  void compare(uint64_t offset, ByteSpan expected, std::string_view what);
  // Against the head as it would be made from the footers, its block checksums apart, which are
  // taken from the file. Places a damaged head to the byte. Gives the right header, as long as no
  // block is bad.
  std::optional<IndexHeader> compare_head(IndexHeader header, const PackIdentity& identity,
                                          const IndexPlan& plan);
  // The index belongs to another pack: nothing in it is believed.
  void disown(std::string what);

  // All that is wrong, by offset.
  std::vector<Damage> damages() const;

 private:
  void load_head();
  void check_blocks(uint32_t threads);
  void add(Code code, uint64_t offset, std::string what);
  bool range_ok(uint64_t offset, uint64_t bytes) const noexcept;

  File file_;
  uint64_t file_bytes_ = 0;
  std::optional<IndexHead> head_;
  std::optional<std::vector<ShardRow>> rows_;
  struct Block {
    bool bad = false;
    bool beyond_end = false;  // the cut is one finding for all of them
    uint64_t actual = 0;
    std::optional<uint64_t> first_difference;
    std::string unreadable;
  };
  std::vector<Block> blocks_;
  std::optional<Damage> head_damage_;
  std::vector<Damage> others_;
  std::mutex mutex_;  // guards blocks_' first differences and others_ during compare()
};

}  // namespace spk
