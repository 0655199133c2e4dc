// A source of files with more around it: files beside them as further fields (--field), and any
// files at all instead of pictures (--accept any), where arrays of NumPy tell their shape.
//
// A pattern such as masks/{key}.png names a file for each sample: {key} is its key, {path} the path
// below SRC, each without its suffix. Patterns are relative to the working directory. Files with a
// picture's name are checked as pictures. A sample whose file is not there lacks the field, with a
// warning; with --require-fields it is rejected.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/directory.h"
#include "sources/source.h"

namespace spk {

struct SideField {
  std::string name;
  std::string pattern;
};
// "mask=masks/{key}.png". kInvalidArgument where it is none, or names a field twice.
Result<std::vector<SideField>> parse_side_fields(const std::vector<std::string>& texts);
// The file that PATTERN names for a sample.
std::string side_path(const std::string& pattern, std::string_view key, std::string_view path);

class SideFieldSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> around(std::unique_ptr<Source> inner,
                                                const PackOptions& options);

  bool lists_in_order() const override { return inner_->lists_in_order(); }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  class Collector;
  SideFieldSource(std::unique_ptr<Source> inner, std::vector<SideField> fields, Directory here)
      : inner_(std::move(inner)), fields_(std::move(fields)), here_(std::move(here)) {}

  std::unique_ptr<Source> inner_;
  std::vector<SideField> fields_;
  Directory here_;
};

}  // namespace spk
