// What run.json tells (who packed, when, where): shown to people and nothing more. No decision
// rests on it, so this reader is lenient, and what it does not understand it leaves out.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/directory.h"

namespace spk {

// The members of the outermost object whose values are strings, numbers, true, false or null, in
// order, strings unescaped. What follows the first mistake is left out.
std::vector<std::pair<std::string, std::string>> flat_members(std::string_view json);

// Those of the pack's run.json; empty where there is none or it cannot be read.
std::vector<std::pair<std::string, std::string>> read_run_record(const Directory& directory);

}  // namespace spk
