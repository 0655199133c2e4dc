// --features: which parts of a foreign sample become which fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace spk {

struct SourceFeature {
  std::string field;  // "image", "label", "key", or the name of another field
  std::string from;   // what the source calls it
};

class SourceFeatures {
 public:
  // "FIELD=NAME,FIELD=NAME"; NAME alone is NAME=NAME. kInvalidArgument names --features.
  static Result<SourceFeatures> parse(const std::string& text);

  bool empty() const noexcept { return all_.empty(); }
  const std::vector<SourceFeature>& all() const noexcept { return all_; }
  // What FIELD is made of; empty where it is not named.
  std::string_view source_of(std::string_view field) const;
  // Those beside image, label and key, in the order of their fields' names.
  std::vector<SourceFeature> others() const;

 private:
  std::vector<SourceFeature> all_;
};

// Whether a field's name is taken by what every pack of pictures has.
bool is_reserved_field(std::string_view name);

}  // namespace spk
