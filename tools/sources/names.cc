#include "sources/names.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace spk {

namespace {

constexpr std::array<std::string_view, 28> kPictureSuffixes = {
    "apng", "avif", "bmp", "dib",  "gif", "heic", "heif", "ico", "j2k", "jfif",
    "jif",  "jp2",  "jpe", "jpeg", "jpg", "jpx",  "jxl",  "pbm", "pfm", "pgm",
    "png",  "pnm",  "ppm", "tga",  "tif", "tiff", "webp", "exr"};

constexpr std::array<std::string_view, 6> kSplitNames = {"train", "training",   "val",
                                                         "valid", "validation", "test"};

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_number(std::string_view name) noexcept {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_picture_name(std::string_view name) noexcept {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot - 1 > 4) return false;
  return contains(kPictureSuffixes, to_lower(name.substr(dot + 1)));
}

bool is_split_name(std::string_view name) noexcept { return contains(kSplitNames, name); }

void warn_of_numeric_classes(Listing* listing) {
  const auto& classes = listing->classes;
  const auto numeric = std::find_if(classes.begin(), classes.end(),
                                    [](const std::string& name) { return is_number(name); });
  if (numeric == classes.end()) return;
  // Best shown by a name that differs from its label.
  auto shown = numeric;
  for (auto name = numeric; name != classes.end(); ++name) {
    if (is_number(*name) && *name != std::to_string(name - classes.begin())) {
      shown = name;
      break;
    }
  }
  listing->warnings.add("class names are numbers",
                        str_cat("labels follow the byte order of the names: class '",
                                escape_bytes(*shown), "' has label ", shown - classes.begin()));
}

void warn_of_empty_classes(const std::vector<std::vector<uint64_t>>& counts, Listing* listing) {
  for (size_t label = 0; label < listing->classes.size(); ++label) {
    const std::string name = escape_bytes(listing->classes[label]);
    const bool anywhere = std::any_of(counts.begin(), counts.end(), [label](const auto& split) {
      return label < split.size() && split[label] != 0;
    });
    if (!anywhere) {
      listing->warnings.add("class without a picture", name);
      continue;
    }
    for (size_t split = 0; split < counts.size(); ++split) {
      // A split without any labels is told of elsewhere.
      if (counts[split].empty() || counts[split][label] != 0) continue;
      listing->warnings.add("class without a picture in one split",
                            str_cat(escape_bytes(listing->splits[split]), "/", name));
    }
  }
}

}  // namespace spk
