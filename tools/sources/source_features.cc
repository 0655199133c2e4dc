#include "sources/source_features.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

bool is_reserved_field(std::string_view name) {
  return name == "image" || name == "label" || name == "key" || name == "height" ||
         name == "width" || name == "channels";
}

Result<SourceFeatures> SourceFeatures::parse(const std::string& text) {
  SourceFeatures features;
  if (text.empty()) return features;
  const auto bad = [](std::string_view part, const char* why) {
    return invalid_argument(str_cat("--features: '", escape_bytes(part), "' ", why))
        .with_hint(
            "it reads FIELD=NAME,FIELD=NAME, as in image=image/encoded,label=image/class/label");
  };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = part.find('=');
    SourceFeature one;
    one.field = part.substr(0, equals);
    one.from = equals == part.npos ? one.field : std::string(part.substr(equals + 1));
    if (one.field.empty() || one.from.empty()) return bad(part, "names nothing");
    if (!is_valid_utf8(one.field)) return bad(part, "is not UTF-8");
    if (one.field == "height" || one.field == "width" || one.field == "channels") {
      return bad(part, "gives a field that is made of the picture");
    }
    if (!features.source_of(one.field).empty())
      return bad(part, "gives a field that is given before");
    features.all_.push_back(std::move(one));
  }
  return features;
}

std::string_view SourceFeatures::source_of(std::string_view field) const {
  for (const SourceFeature& one : all_) {
    if (one.field == field) return one.from;
  }
  return {};
}

std::vector<SourceFeature> SourceFeatures::others() const {
  std::vector<SourceFeature> others;
  for (const SourceFeature& one : all_) {
    if (one.field != "image" && one.field != "label" && one.field != "key") others.push_back(one);
  }
  std::sort(others.begin(), others.end(),
            [](const SourceFeature& a, const SourceFeature& b) { return a.field < b.field; });
  return others;
}

}  // namespace spk
