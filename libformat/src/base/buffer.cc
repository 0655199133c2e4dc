#include "base/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"

namespace spk {

size_t page_bytes() noexcept {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;  // of most machines; elsewhere it does no harm

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(uint64_t size) {
  return allocate_aligned(size, page_bytes());
}

Result<AlignedBuffer> AlignedBuffer::allocate_huge(uint64_t size) {
  if (size < kHugePageBytes) return allocate(size);
  SPK_ASSIGN(AlignedBuffer buffer, allocate_aligned(size, kHugePageBytes));
  (void)::madvise(buffer.data_, size, MADV_HUGEPAGE);
  return buffer;
}

Result<AlignedBuffer> AlignedBuffer::allocate_aligned(uint64_t size, size_t alignment) {
  AlignedBuffer buffer;
  if (size == 0) return buffer;
  void* memory = nullptr;
  if (size > SIZE_MAX / 2 || posix_memalign(&memory, alignment, size) != 0) {
    return Status(Code::kNoMemory, str_cat("cannot allocate a buffer of ", size, " bytes"));
  }
  buffer.data_ = static_cast<uint8_t*>(memory);
  buffer.size_ = size;
  return buffer;
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace spk
