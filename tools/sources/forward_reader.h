// Container files read from front to back, as they lie or unpacked on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "sources/spool.h"

namespace spk {

// How a whole file is packed, by its first bytes.
enum class Packing { kNone, kGzip, kZlib, kZstd };

// kZlib only where ZLIB_TOO: two bytes say little.
Packing packing_of(ByteSpan head, bool zlib_too) noexcept;
const char* packing_name(Packing packing) noexcept;  // "gzip"
// kUnsupported, naming the package, where this build cannot unpack it.
Status check_can_unpack(Packing packing);

// Not thread-safe.
class ForwardReader {
 public:
  virtual ~ForwardReader() = default;
  // BYTES bytes at OFFSET, fewer only where the data end before. Valid until the next call. OFFSET
  // is never less than that of the call before.
  Result<ByteSpan> at(uint64_t offset, size_t bytes);
  // Where the data end. REQUIRES that at() gave fewer bytes than asked.
  virtual Result<uint64_t> end() const = 0;
  // To be called once all is read that matters; finishes what is spooled. Nothing is read after it.
  virtual Status finish() { return {}; }
  const std::string& path() const noexcept { return path_; }

 protected:
  ForwardReader(std::string path, size_t window_bytes)
      : path_(std::move(path)), window_(window_bytes) {}
  // As File::read_some; OFFSET is never less than the end of the call before.
  virtual Result<uint64_t> fetch(uint64_t offset, MutableByteSpan into) = 0;

 private:
  std::string path_;
  std::vector<uint8_t> window_;
  uint64_t start_ = 0;
  size_t filled_ = 0;
};

// So many bytes at once suit headers with something large between them, and data that are all read.
constexpr size_t kHeaderWindowBytes = 4096;
constexpr size_t kDataWindowBytes = size_t{256} << 10;

std::unique_ptr<ForwardReader> read_plain(File file, size_t window_bytes);

// Unpacks; what was unpacked also goes to `keep`, where that is given, which is finished with the
// reader. Data that are damaged or end early are kDamaged, with the offset in the packed file;
// where LENIENT, they end there.
Result<std::unique_ptr<ForwardReader>> read_unpacked(File file, Packing packing,
                                                     size_t window_bytes, bool lenient,
                                                     std::unique_ptr<Spool::Writer> keep);

// The first bytes of a packed file, unpacked; fewer where it ends or breaks off before.
std::vector<uint8_t> unpack_head(ByteSpan packed_head, Packing packing, size_t bytes);

}  // namespace spk
