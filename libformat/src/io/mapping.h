// A whole file mapped read-only. Only for local file systems and files that nobody cuts: touching a
// page beyond the end of a file that was truncated meanwhile is SIGBUS, and no size check can
// prevent it.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "io/file.h"

namespace spk {

class Mapping {
 public:
  Mapping() noexcept = default;  // maps nothing
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Maps all of FILE, MAP_SHARED, so that all processes of a node share its pages. kDamaged where
  // the file is not EXPECTED_BYTES long; kUnsupported where the file system cannot map (ENODEV) or
  // the address space is too small. The file may be closed afterwards. An empty file maps to no
  // bytes.
  static Result<Mapping> open(const File& file, uint64_t expected_bytes);

  ByteSpan bytes() const noexcept { return {data_, size_}; }
  // Hints; what cannot be done is not an error.
  void advise_random() const noexcept;
  void advise_sequential() const noexcept;
  void advise_will_need(uint64_t offset, uint64_t size_bytes) const noexcept;
  // Brings the pages into memory and into this process's page tables before it returns, where the
  // kernel can (Linux 5.14); otherwise as advise_will_need().
  void populate(uint64_t offset, uint64_t size_bytes) const noexcept;
  // Whether all of these pages are in memory. Quick; false where the kernel does not tell the truth
  // (it does so only to the owner of the file).
  bool is_resident(uint64_t offset, uint64_t size_bytes) const noexcept;

 private:
  Mapping(const uint8_t* data, size_t size, bool residency_known) noexcept
      : data_(data), size_(size), residency_known_(residency_known) {}
  int advise(uint64_t offset, uint64_t size_bytes, int advice) const noexcept;

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  bool residency_known_ = false;
};

}  // namespace spk
