// Members of a zip archive, as its central directory lists them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "io/file.h"
#include "sources/forward_reader.h"

namespace spk {

struct ZipMember {
  enum class Method { kStored, kDeflated, kOther };
  std::string name;  // as stored
  Method method = Method::kStored;
  uint16_t method_number = 0;
  bool is_folder = false;
  bool is_symlink = false;
  bool is_encrypted = false;
  uint32_t crc = 0;
  uint64_t packed_bytes = 0;
  uint64_t bytes = 0;
  uint64_t header_offset = 0;  // of its local header
};

class ZipReader {
 public:
  // FILE outlives this. kDamaged where the directory is not found or does not fit into the file,
  // kUnsupported for archives of several volumes.
  static Result<ZipReader> open(const File& file);

  // False at the end.
  Result<bool> next(ZipMember* member);
  // Where a member's data begin, as its local header tells. kMismatch where that has another name:
  // programs that go by the one or by the other would see different archives.
  Result<uint64_t> data_offset(const ZipMember& member) const;
  // Hands out the unpacked data piece by piece. kDamaged where they, their size or their CRC are
  // not what the directory says.
  using Sink = std::function<Status(ByteSpan piece)>;
  Status unpack(const ZipMember& member, const Sink& sink) const;

  static bool is_zip(ByteSpan head);

 private:
  explicit ZipReader(const File& file) : file_(&file) {}
  Status bad(std::string what, uint64_t offset) const;
  Status find_directory();
  Status read_zip64(uint64_t end_offset);
  Status take_zip64_sizes(ByteSpan extra, ZipMember* member) const;

  const File* file_;
  std::unique_ptr<ForwardReader> directory_;
  uint64_t file_bytes_ = 0;
  uint64_t base_ = 0;  // bytes before the archive, which offsets do not count
  uint64_t at_ = 0;    // of the next entry of the directory
  uint64_t end_ = 0;
  uint64_t left_ = 0;  // entries
};

}  // namespace spk
