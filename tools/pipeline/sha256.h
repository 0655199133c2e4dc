// SHA-256 of files, as sha256sum prints it. From libcrypto where the build has it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/directory.h"

namespace spk {

// True where the build has libcrypto.
bool sha256_available() noexcept;
// 64 hex digits. kUnsupported where !sha256_available().
Result<std::string> sha256_of_file(const Directory& dir, std::string_view name);

}  // namespace spk
