// Samples that lie in container files (archives, record files): each a list of pieces, which an
// entry carries in `path`. Shared by the sources of such formats; none of them needs to be asked
// again where a sample lies.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "sources/source.h"

namespace spk {

// `bytes` bytes at `offset` of file number `file`; or `literal`, where that is not empty: bytes
// that belong to the sample but lie nowhere as such.
struct Piece {
  uint32_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::string literal;
  bool operator==(const Piece&) const = default;

  static Piece of_file(uint32_t file, uint64_t offset, uint64_t bytes) {
    return {file, offset, bytes, {}};
  }
  static Piece of_bytes(std::string literal) {
    const uint64_t bytes = literal.size();
    return {0, 0, bytes, std::move(literal)};
  }
};

std::string encode_pieces(const std::vector<Piece>& pieces);
// kDamaged where TEXT is not what encode_pieces() makes.
Result<std::vector<Piece>> decode_pieces(std::string_view text);

// Files that are opened when they are needed; so many at a time stay open. Thread-safe.
class ContainerFiles {
 public:
  explicit ContainerFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}
  const std::vector<std::string>& paths() const noexcept { return paths_; }
  // kMismatch where MTIME_NS is known and is not the file's: it changed since it was listed.
  Result<std::shared_ptr<const File>> open(uint32_t file, int64_t mtime_ns) const;

 private:
  static constexpr size_t kOpenAtMost = 256;
  using Opened = std::pair<uint32_t, std::shared_ptr<const File>>;
  std::vector<std::string> paths_;
  mutable std::mutex mutex_;          // guards what follows
  mutable std::list<Opened> opened_;  // used last first
  mutable std::unordered_map<uint32_t, std::list<Opened>::iterator> places_;
};

// Source::open for entries whose path is encode_pieces(); entry.mtime_ns is that of the files.
Result<std::unique_ptr<SampleHandle>> open_pieces(const ContainerFiles& files,
                                                  const SampleEntry& entry);

// For sources that give other bytes than the file holds, such as pixels in another order.
class BytesHandle : public SampleHandle {
 public:
  explicit BytesHandle(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  Status read_at(uint64_t offset, MutableByteSpan into) override;

 private:
  std::vector<uint8_t> bytes_;
};

// All bytes of a handle.
Result<std::vector<uint8_t>> read_all(SampleHandle& handle);

}  // namespace spk
