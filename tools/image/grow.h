// Output that C libraries write piece by piece, through frames that no exception may leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace spk::image {

// False where there is no memory for it.
inline bool append(std::vector<uint8_t>& out, const uint8_t* bytes, size_t size) noexcept {
  try {
    out.insert(out.end(), bytes, bytes + size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace spk::image
