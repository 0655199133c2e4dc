// What --version prints.
#pragma once

#include <string>

namespace spk {

// "0.1.0"
const char* program_version() noexcept;

// Program, format version, and each library that the build could have used, on or off.
std::string version_text();

}  // namespace spk
