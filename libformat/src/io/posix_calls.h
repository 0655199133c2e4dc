// What File and the read engines share: transfers that loop over short counts and EINTR. Internal
// to io/.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "io/directory.h"

namespace spk {

// pread until INTO is full. The error has no path: the caller knows it.
Status pread_exact(int fd, uint64_t offset, MutableByteSpan into);
// pread until INTO is full or the file ends; the number of bytes read.
Result<uint64_t> pread_some(int fd, uint64_t offset, MutableByteSpan into);

// The kDamaged status of a read of EXPECTED bytes at OFFSET that met the end of the file after GOT.
Status end_of_file(int fd, uint64_t offset, uint64_t got, uint64_t expected);

// kInvalidArgument where offset + size does not fit into the kernel's signed 64-bit offsets.
Status check_range(uint64_t offset, uint64_t size_bytes);

EntryType entry_type(mode_t mode) noexcept;
EntryInfo entry_info(const struct stat& from) noexcept;

}  // namespace spk
