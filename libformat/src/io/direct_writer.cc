#include "io/direct_writer.h"

#include <algorithm>
#include <cerrno>

#include "io/filesystem.h"

namespace spk {

bool direct_writes_pay(const File& file) {
  const FileSystemInfo fs = detect_filesystem(file.fd());
  return !fs.network && fs.kind != FileSystemKind::kTmpfs && file.can_be_direct();
}

DirectWriter::DirectWriter(const File& file) {
  if (!direct_writes_pay(file)) return;
  // Without the memory, through the page cache.
  Result<AlignedBuffer> buffer = AlignedBuffer::allocate_huge(kBufferBytes);
  if (buffer.ok()) buffer_ = std::move(buffer).value();
}

Status DirectWriter::write_all_v(const File& file, uint64_t offset,
                                 std::span<const ByteSpan> pieces) {
  if (!is_direct() || offset % page_bytes() != 0) return file.write_all_v(offset, pieces);
  uint64_t filled = 0;
  for (ByteSpan piece : pieces) {
    while (!piece.empty()) {
      const uint64_t bytes = std::min<uint64_t>(piece.size(), kBufferBytes - filled);
      std::copy_n(piece.begin(), bytes, buffer_.data() + filled);
      piece = piece.subspan(bytes);
      filled += bytes;
      if (filled < kBufferBytes) continue;
      SPK_TRY(put(file, offset, filled));
      offset += filled;
      filled = 0;
    }
  }
  return put(file, offset, filled);
}

// The first SIZE_BYTES of the buffer.
Status DirectWriter::put(const File& file, uint64_t offset, uint64_t size_bytes) {
  const ByteSpan bytes = ByteSpan(buffer_.span()).first(size_bytes);
  uint64_t whole = size_bytes - size_bytes % page_bytes();
  if (whole != 0 && file.set_direct(true)) {
    const Status written = file.write_all(offset, bytes.first(whole));
    (void)file.set_direct(false);
    // EINVAL: a file system that takes the flag and refuses the write, or a write that was done in
    // part and ended within a page. Nothing is lost by writing it again.
    if (!written.ok() && written.os_errno() != EINVAL) return written;
    if (!written.ok()) whole = 0;
  } else {
    whole = 0;
  }
  return file.write_all(offset + whole, bytes.subspan(whole));
}

}  // namespace spk
