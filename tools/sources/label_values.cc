#include "sources/label_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "sources/label_text.h"

namespace spk {

namespace {

constexpr std::string_view kBetween = " \t\r\n,;";
constexpr size_t kMostShown = 40;
constexpr double kTwoTo63 = 9223372036854775808.0;

std::string bad_label(std::string_view text, const char* why) {
  return str_cat("label '", escape_bytes(text.substr(0, kMostShown)), "' ", why);
}

const char* why_not(LabelText found) {
  switch (found) {
    case LabelText::kOk: break;
    case LabelText::kNotNumber: return "is no number";
    case LabelText::kNotInteger: return "is not an integer; --labels float takes it";
    case LabelText::kTooLarge: return "does not fit into 64 bits";
  }
  return "";
}

}  // namespace

std::string LabelValues::set_text(std::string_view text, SampleEntry* entry) {
  for (size_t begin = text.find_first_not_of(kBetween); begin != text.npos;
       begin = text.find_first_not_of(kBetween, begin)) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    begin = end;
    LabelText found;
    if (mode_ == LabelMode::kFloat) {
      double value = 0;
      found = parse_float_label(one, &value);
      entry->float_labels.push_back(value);
    } else {
      int64_t value = 0;
      found = parse_int_label(one, &value);
      entry->int_labels.push_back(value);
    }
    if (found == LabelText::kOk) continue;
    entry->int_labels.clear();
    entry->float_labels.clear();
    return bad_label(one, why_not(found));
  }
  if (entry->int_labels.empty() && entry->float_labels.empty()) return "the label is empty";
  saw(*entry);
  return {};
}

std::string LabelValues::set_floats(const std::vector<double>& labels, SampleEntry* entry) {
  if (labels.empty()) return "the label is empty";
  if (mode_ == LabelMode::kFloat) {
    entry->float_labels = labels;
    saw(*entry);
    return {};
  }
  std::vector<int64_t> whole;
  for (const double label : labels) {
    // Not so for NaN and the infinities, either.
    const bool fits = label >= -kTwoTo63 && label < kTwoTo63 && std::trunc(label) == label;
    if (!fits) return bad_label(format_fixed(label, 6), why_not(LabelText::kNotInteger));
    whole.push_back(static_cast<int64_t>(label));
  }
  return set_ints(std::move(whole), entry);
}

std::string LabelValues::set_ints(std::vector<int64_t> labels, SampleEntry* entry) {
  if (labels.empty()) return "the label is empty";
  if (mode_ == LabelMode::kFloat) {
    entry->float_labels.clear();
    for (const int64_t label : labels) {
      const auto value = static_cast<double>(label);
      const bool exact = std::fabs(value) < kTwoTo63 && static_cast<int64_t>(value) == label;
      if (!exact) {
        entry->float_labels.clear();
        return bad_label(str_cat(label), "is no double: its last digits would be lost");
      }
      entry->float_labels.push_back(value);
    }
  } else {
    entry->int_labels = std::move(labels);
  }
  saw(*entry);
  return {};
}

void LabelValues::saw(const SampleEntry& entry) {
  const auto count = static_cast<uint32_t>(entry.int_labels.size() + entry.float_labels.size());
  if (!count_) count_ = count;
  if (*count_ != count) counts_differ_ = true;
  for (const int64_t label : entry.int_labels) {
    if (!any_ || label < least_) least_ = label;
    any_ = true;
  }
}

void LabelValues::finish(Listing* listing) const {
  if (!count_) return;
  listing->label_kind = mode_ == LabelMode::kFloat ? LabelKind::kFloat : LabelKind::kInt;
  listing->label_count = counts_differ_ ? 0 : *count_;
  if (any_ && least_ == 1 && listing->label_count == 1) {
    listing->warnings.add("labels count from 1",
                          "the least label is 1; labels are kept as they are, 0 is not used");
  }
}

}  // namespace spk
