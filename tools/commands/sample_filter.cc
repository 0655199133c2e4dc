#include "commands/sample_filter.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "commands/pack_set.h"

namespace spk {

namespace {

// Empty text leaves `number` as it is.
bool read_number(std::string_view text, uint64_t* number) {
  if (text.empty()) return true;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && at == end;
}

bool any_in(const std::vector<int64_t>& labels, const std::vector<int64_t>& sorted) {
  return std::any_of(labels.begin(), labels.end(), [&](int64_t label) {
    return std::binary_search(sorted.begin(), sorted.end(), label);
  });
}

}  // namespace

Status parse_range(std::string_view text, uint64_t* begin, uint64_t* end) {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !read_number(text.substr(0, colon), &from) ||
      !read_number(text.substr(colon + 1), &to)) {
    return invalid_argument(str_cat("'", escape_bytes(text), "' is not a range of sample numbers"))
        .with_hint("write A:B, A: or :B; B itself is not in it");
  }
  if (from > to) return invalid_argument(str_cat("the range ", text, " ends before it begins"));
  *begin = from;
  *end = to;
  return {};
}

bool glob_matches(const std::string& pattern, std::string key) {
  // fnmatch takes C strings; a NUL within a key counts as any other byte that no pattern names.
  std::replace(key.begin(), key.end(), '\0', '\x01');
  return fnmatch(pattern.c_str(), key.c_str(), 0) == 0;
}

void add_filter_options(CLI::App& sub, SampleFilterOptions* options) {
  sub.add_option("--class", options->classes, "Only this class; may be given several times")
      ->type_name("NAME")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  const auto read_labels = [options](const std::vector<std::string>& texts) {
    options->labels.clear();
    for (const std::string& text : texts) {
      int64_t label = 0;
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, label);
      if (error != std::errc() || stop != end) {
        throw CLI::ValidationError("--label", "'" + text + "' is not a whole number of 64 bits");
      }
      options->labels.push_back(label);
    }
  };
  sub.add_option_function<std::vector<std::string>>(
         "--label", read_labels, "Only samples with this label; may be given several times")
      ->type_name("N")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  sub.add_option("--glob", options->globs,
                 "Only keys that match this shell pattern (* also matches /); may be given several "
                 "times")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  const auto read_range = [options](const std::string& text) {
    const Status status = parse_range(text, &options->range_begin, &options->range_end);
    if (!status.ok()) throw CLI::ValidationError("--range", status.to_string());
  };
  sub.add_option_function<std::string>("--range", read_range,
                                       "Only samples A, A+1 ... B-1 in storage order")
      ->type_name("A:B");
}

Result<SampleFilter> SampleFilter::make(const SampleFilterOptions& options, const Pack& pack,
                                        const std::string& split) {
  SampleFilter filter;
  filter.split_ = split;
  filter.end_ = std::min(options.range_end, pack.sample_count());
  filter.begin_ = std::min(options.range_begin, filter.end_);
  filter.globs_ = options.globs;
  filter.labels_ = options.labels;
  std::sort(filter.labels_.begin(), filter.labels_.end());
  const FactReader facts(pack);
  if (!filter.labels_.empty() && !facts.has_int_labels()) {
    return invalid_argument("--label: this pack has no integer labels").at_path(pack.path());
  }
  const auto& classes = pack.schema().classes;
  filter.by_class_ = !options.classes.empty();
  for (const std::string& name : options.classes) {
    const size_t before = filter.class_labels_.size();
    for (size_t i = 0; i < classes.size(); ++i) {
      if (classes[i] == name) filter.class_labels_.push_back(static_cast<int64_t>(i));
    }
    if (filter.class_labels_.size() > before) continue;
    return invalid_argument(str_cat("--class: there is no class '", escape_bytes(name), "' among ",
                                    format_count(classes.size())))
        .at_path(pack.path())
        .with_hint("`stripepack info --classes` lists them");
  }
  std::sort(filter.class_labels_.begin(), filter.class_labels_.end());
  return filter;
}

bool SampleFilter::matches(const SampleFacts& facts) const {
  if (facts.sample < begin_ || facts.sample >= end_) return false;
  if (by_class_ && !any_in(facts.int_labels, class_labels_)) return false;
  if (!labels_.empty() && !any_in(facts.int_labels, labels_)) return false;
  return globs_.empty() || std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
           return glob_matches(glob, facts.key) ||
                  (!split_.empty() && glob_matches(glob, with_split(split_, facts.key)));
         });
}

}  // namespace spk
