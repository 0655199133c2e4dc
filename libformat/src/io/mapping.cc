#include "io/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/buffer.h"
#include "base/text.h"

namespace spk {

Mapping::~Mapping() {
  if (size_ != 0) ::munmap(const_cast<uint8_t*>(data_), size_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      residency_known_(other.residency_known_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(residency_known_, other.residency_known_);
  return *this;
}

Result<Mapping> Mapping::open(const File& file, uint64_t expected_bytes) {
  SPK_ASSIGN(const uint64_t size_bytes, file.size());
  if (size_bytes != expected_bytes) {
    return damaged(str_cat("file ends at ", size_bytes, ", ", expected_bytes, " bytes expected"))
        .at_path(file.path())
        .at_offset(std::min(size_bytes, expected_bytes));
  }
  if (size_bytes == 0) return Mapping();
  if (size_bytes > SIZE_MAX) {
    return unsupported("file is larger than the address space").at_path(file.path());
  }
  void* data =
      ::mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) {
    if (errno == ENODEV) {
      return unsupported("this file system cannot map files").at_path(file.path());
    }
    // ENOMEM is the limit of address space (ulimit -v) or of mappings, not of memory.
    if (errno == ENOMEM) {
      return unsupported("no address space left to map the file (ulimit -v)").at_path(file.path());
    }
    return io_error(errno, "cannot map", file.path());
  }
  struct stat facts = {};
  const bool is_owner = ::fstat(file.fd(), &facts) == 0 && facts.st_uid == ::geteuid();
  return Mapping(static_cast<const uint8_t*>(data), static_cast<size_t>(size_bytes), is_owner);
}

void Mapping::advise_random() const noexcept {
  if (size_ != 0) ::madvise(const_cast<uint8_t*>(data_), size_, MADV_RANDOM);
}

void Mapping::advise_sequential() const noexcept {
  if (size_ != 0) ::madvise(const_cast<uint8_t*>(data_), size_, MADV_SEQUENTIAL);
}
int Mapping::advise(uint64_t offset, uint64_t size_bytes, int advice) const noexcept {
  if (offset >= size_ || size_bytes == 0) return 0;
  // madvise wants the start of a page.
  const uint64_t start = offset / page_bytes() * page_bytes();
  const uint64_t length = std::min<uint64_t>(size_bytes, size_ - offset) + (offset - start);
  return ::madvise(const_cast<uint8_t*>(data_) + start, static_cast<size_t>(length), advice);
}

void Mapping::advise_will_need(uint64_t offset, uint64_t size_bytes) const noexcept {
  (void)advise(offset, size_bytes, MADV_WILLNEED);
}

void Mapping::populate(uint64_t offset, uint64_t size_bytes) const noexcept {
  constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, which older headers do not know
  // Page faults read what is around each page, in pieces of the device's read-ahead: more than was
  // asked for, and many reads. What is asked for at once is read as it is, in large ones. Where its
  // first page is there it is taken for cached, as asking costs as much as the faults do.
  if (!is_resident(offset, 1)) advise_will_need(offset, size_bytes);
  if (advise(offset, size_bytes, kPopulateRead) != 0) advise_will_need(offset, size_bytes);
}

bool Mapping::is_resident(uint64_t offset, uint64_t size_bytes) const noexcept {
  if (!residency_known_ || offset >= size_) return false;
  constexpr uint64_t kPagesAtOnce = 1024;
  unsigned char pages[kPagesAtOnce];
  const uint64_t page = page_bytes();
  const uint64_t end = offset + std::min<uint64_t>(size_bytes, size_ - offset);
  for (uint64_t at = offset / page * page; at < end; at += kPagesAtOnce * page) {
    const uint64_t bytes = std::min(end - at, kPagesAtOnce * page);
    void* const start = const_cast<uint8_t*>(data_) + at;
    if (::mincore(start, static_cast<size_t>(bytes), pages) != 0) return false;
    for (uint64_t i = 0; i * page < bytes; ++i) {
      if ((pages[i] & 1) == 0) return false;
    }
  }
  return true;
}

}  // namespace spk
