#include "base/buffer.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace spk {

size_t page_bytes() noexcept {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Result<AlignedBuffer> AlignedBuffer::allocate(uint64_t size) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  void* memory = nullptr;
  if (size > SIZE_MAX / 2 || posix_memalign(&memory, page_bytes(), size) != 0) {
    return Status(Code::kNoMemory, str_cat("cannot allocate a buffer of ", size, " bytes"));
  }
  buffer.data_ = static_cast<uint8_t*>(memory);
  buffer.size_ = size;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace spk
