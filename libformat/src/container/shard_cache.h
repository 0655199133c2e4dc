// A directory with copies of a pack's shards, nearer than the pack itself: what `stripepack stage`
// makes. Any of them may be missing. A file counts as a copy where its size and the digest in its
// footer are the ones that the pack's index has, so that shards of another pack, or of this one
// before it was repaired, are never taken for it; its bytes are compared when they are read.
//
// Thread safety: const members may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/index.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

class ShardCache {
 public:
  ShardCache() = default;  // none
  // PATH need not be there yet: it is looked at anew for each shard. Empty: none. kInvalidArgument
  // where it is there and no directory.
  static Result<ShardCache> open(const std::string& path);

  bool is_none() const noexcept { return path_.empty(); }
  // Absolute, so that it means the same when the process goes to another directory.
  const std::string& path() const noexcept { return path_; }
  std::string path_of(uint32_t shard) const;

  // The copy of a shard, opened for reading; not open where there is none.
  Result<File> find(uint32_t shard, const ShardRow& row) const;
  // Whether it holds a file of the right size for each shard: what decides how files are read.
  bool has_all(const std::vector<ShardRow>& rows) const;

 private:
  std::string path_;
};

// That FILE is the shard that ROW of an index describes, by its size and its footer's digest.
// kMismatch tells what it is instead. Errors of reading are the file's own.
Status check_shard_file(const File& file, uint32_t shard, const ShardRow& row);

}  // namespace spk
