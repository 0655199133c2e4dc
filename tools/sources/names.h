// What names tell: pictures by their suffix, and splits.
#pragma once

#include <string_view>
#include <vector>

#include "sources/source.h"

namespace spk {

// Whether the suffix is one that pictures have, in any case of letters. What the bytes are is for
// the check of the picture to find out.
bool is_picture_name(std::string_view name) noexcept;
// train, training, val, valid, validation, test.
bool is_split_name(std::string_view name) noexcept;
// ASCII letters only, whatever the locale.
std::string to_lower(std::string_view text);

// Warns where class names are numbers: labels follow the byte order of the names, not their value.
void warn_of_numeric_classes(Listing* listing);
// Warns of each class without a picture. counts[split][class].
void warn_of_empty_classes(const std::vector<std::vector<uint64_t>>& counts, Listing* listing);

}  // namespace spk
