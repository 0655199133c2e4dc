// A key as a cell of a .lst file, whose lines and cells have no way to hold what ends them.
#pragma once

#include <string>
#include <string_view>

namespace spk {

// TAB, LF and CR become "\x09", "\x0a" and "\x0d"; a backslash before what looks like one of
// these becomes "\x5c". All other keys, and names with backslashes in the lists of other programs,
// stay as they are. key_of_list_cell(list_cell_of(key)) == key for every key.
std::string list_cell_of(std::string_view key);
std::string key_of_list_cell(std::string_view cell);

}  // namespace spk
