// Why a path is not a pack, in words that help: an unfinished pack, a folder of splits, a folder of
// pictures, a file.
#pragma once

#include <string>

#include "base/status.h"
#include "io/directory.h"

namespace spk {

// For a path that could not be opened as a directory; STATUS says why.
Status not_a_directory(const std::string& path, Status status);

// For a directory without a manifest, or without an index. kNotThisFormat; kDamaged where it is a
// pack, or was about to become one, and lost its index.
Status not_a_pack(const Directory& dir);

}  // namespace spk
