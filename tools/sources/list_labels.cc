#include "sources/list_labels.h"

#include <stdlib.h>

#include <utility>

#include "base/text.h"
#include "sources/file_sample.h"
#include "sources/label_text.h"
#include "sources/list_reader.h"
#include "sources/names.h"

namespace spk {

namespace {

class NoLabels : public ListLabels {
 public:
  Status apply(const ListRecord&, SampleEntry*) override { return {}; }
  void finish(Listing* listing) override { listing->label_kind = LabelKind::kNone; }
};

class NumberLabels : public ListLabels {
 public:
  NumberLabels(std::string list_path, bool floats, bool lines)
      : list_path_(std::move(list_path)), floats_(floats), lines_(lines) {}

  Status apply(const ListRecord& record, SampleEntry* entry) override {
    for (const std::string& text : record.labels) {
      if (text.empty())
        return bad(record, str_cat("'", escape_bytes(record.path), "' lacks a label"));
      int64_t integer = 0;
      double number = 0;
      const LabelText outcome =
          floats_ ? parse_float_label(text, &number) : parse_int_label(text, &integer);
      const std::string shown = str_cat("label '", escape_bytes(text), "' ");
      switch (outcome) {
        case LabelText::kOk: break;
        case LabelText::kNotNumber:
          return bad(record, shown + (floats_ ? "is not a number" : "is not an integer"));
        case LabelText::kNotInteger: return bad(record, shown + "is not an integer");
        case LabelText::kTooLarge: return bad(record, shown + "does not fit into 64 bits");
      }
      if (floats_) {
        entry->float_labels.push_back(number);
      } else {
        entry->int_labels.push_back(integer);
        if (integer >= 0) least_ = std::min(least_, integer);
      }
    }
    const size_t count = record.labels.size();
    label_count_ = records_ == 0 || label_count_ == count ? count : 0;
    ++records_;
    if (lines_ && several_numbers(record.path)) {
      warnings_.add("several numbers after a path",
                    str_cat("line ", record.line, ": only the last is taken for the label"));
    }
    return {};
  }

  void finish(Listing* listing) override {
    listing->label_kind = floats_ ? LabelKind::kFloat : LabelKind::kInt;
    listing->label_count = static_cast<uint32_t>(label_count_);
    listing->warnings.merge(warnings_);
    if (!floats_ && label_count_ == 1 && least_ > 0 && least_ != INT64_MAX) {
      listing->warnings.add("label 0 is not used",
                            str_cat("labels begin at ", least_, " and are kept as written"));
    }
  }

 private:
  Status bad(const ListRecord& record, const std::string& what) const {
    return list_error(list_path_, record.line, what)
        .with_hint(str_cat(floats_ ? "--labels float takes finite numbers such as 1, -0.5 or 2e-3"
                                   : "--labels float takes fractions",
                           ", --labels none leaves labels out; class names need a table with a "
                           "header such as `path,label`"));
  }
  // "a.jpg 1 0": the path that is left still ends in a picture's name and a number.
  static bool several_numbers(std::string_view path) {
    const size_t last = path.find_last_of(" \t");
    return last != std::string_view::npos && looks_like_number(path.substr(last + 1)) &&
           is_picture_name(trim_blanks(path.substr(0, last)));
  }

  std::string list_path_;
  bool floats_;
  bool lines_;
  int64_t least_ = INT64_MAX;
  uint64_t records_ = 0;
  size_t label_count_ = 0;
  Warnings warnings_;
};

Status changed_meanwhile(const std::string& list_path) {
  return Status(Code::kMismatch, "the list changed while it was being read").at_path(list_path);
}

class NameLabels : public ListLabels {
 public:
  explicit NameLabels(std::string list_path) : list_path_(std::move(list_path)) {}
  bool needs_first_reading() const override { return true; }
  Status learn(const ListRecord& record) override {
    if (record.labels[0].empty()) {
      return list_error(list_path_, record.line,
                        str_cat("'", escape_bytes(record.path), "' lacks a label"))
          .with_hint("--labels none leaves all labels out");
    }
    return names_.add(record.labels[0]);
  }
  Status learned(Listing* listing) override {
    names_.finish();
    listing->classes = names_.sorted();
    return {};
  }
  Status apply(const ListRecord& record, SampleEntry* entry) override {
    const int64_t label = names_.index(record.labels[0]);
    if (label < 0) return changed_meanwhile(list_path_);
    entry->int_labels.push_back(label);
    return {};
  }
  void finish(Listing* listing) override {
    listing->label_kind = LabelKind::kInt;
    warn_of_numeric_classes(listing);
  }

 private:
  std::string list_path_;
  NameTable names_;
};

// Labels from the first folder below the root; where all first folders are splits, from the second.
class FolderLabels : public ListLabels {
 public:
  FolderLabels(std::string list_path, const std::string& root, bool find_splits)
      : list_path_(std::move(list_path)), find_splits_(find_splits) {
    roots_.push_back(root);
    if (char* real = realpath(root.c_str(), nullptr)) {
      roots_.emplace_back(real);
      free(real);
    }
    for (std::string& known : roots_) {
      while (known.size() > 1 && known.ends_with('/')) known.pop_back();
    }
  }
  bool needs_first_reading() const override { return true; }

  Status learn(const ListRecord& record) override {
    std::vector<std::string_view> folders;
    SPK_TRY(first_folders(record, &folders));
    if (folders.empty()) return {};
    SPK_TRY(first_.add(folders[0]));
    if (!find_splits_ || !is_split_name(folders[0])) return {};
    if (folders.size() == 1) return {};
    splits_with_classes_.emplace(folders[0]);
    return second_.add(folders[1]);
  }

  Status learned(Listing* listing) override {
    first_.finish();
    second_.finish();
    const auto& names = first_.sorted();
    has_splits_ =
        find_splits_ && !names.empty() && std::all_of(names.begin(), names.end(), is_split_name);
    listing->classes = has_splits_ ? second_.sorted() : names;
    if (has_splits_) listing->splits = names;
    classes_ = listing->classes.size();
    for (const std::string& split : listing->splits) {
      const bool labelled = has_splits_
                                ? splits_with_classes_.find(split) != splits_with_classes_.end()
                                : classes_ != 0;
      labelled_.push_back(labelled);
      if (!labelled) {
        listing->warnings.add("no class folders, so no labels",
                              escape_bytes(split.empty() ? list_path_ : split));
      }
    }
    counts_.resize(listing->splits.size());
    for (size_t split = 0; split < counts_.size(); ++split) {
      if (labelled_[split]) counts_[split].resize(classes_);
    }
    return {};
  }

  Status apply(const ListRecord& record, SampleEntry* entry) override {
    std::vector<std::string_view> folders;
    SPK_TRY(first_folders(record, &folders));
    size_t level = 0;
    if (has_splits_) {
      if (folders.empty()) {
        entry->reject = kRejectNoClass;
        return {};
      }
      const int64_t split = first_.index(folders[0]);
      if (split < 0) return changed_meanwhile(list_path_);
      entry->split = static_cast<uint32_t>(split);
      level = 1;
    }
    if (!labelled_[entry->split]) return {};
    if (folders.size() <= level) {
      entry->reject = kRejectNoClass;
      return {};
    }
    const int64_t label = (has_splits_ ? second_ : first_).index(folders[level]);
    if (label < 0) return changed_meanwhile(list_path_);
    entry->int_labels.push_back(label);
    ++counts_[entry->split][static_cast<size_t>(label)];
    return {};
  }

  void finish(Listing* listing) override {
    listing->label_kind = classes_ == 0 ? LabelKind::kNone : LabelKind::kInt;
    warn_of_numeric_classes(listing);
    warn_of_empty_classes(counts_, listing);
  }

 private:
  // At most the first two folders of a path below the root.
  Status first_folders(const ListRecord& record, std::vector<std::string_view>* folders) const {
    std::string_view path = record.path;
    if (path.starts_with('/')) {
      const auto root = std::find_if(roots_.begin(), roots_.end(), [&](std::string_view known) {
        return path.starts_with(known) &&
               (known.ends_with('/') || path.substr(known.size()).starts_with('/'));
      });
      if (root == roots_.end()) {
        return list_error(list_path_, record.line,
                          str_cat("'", escape_bytes(path), "' does not lie below '",
                                  escape_bytes(roots_.back()), "', so its class cannot be told"))
            .with_hint("name the folder of the classes with --root, or use --labels none");
      }
      path.remove_prefix(root->size());
    }
    while (folders->size() < 2) {
      const size_t slash = path.find('/');
      if (slash == std::string_view::npos) return {};
      const std::string_view part = path.substr(0, slash);
      path.remove_prefix(slash + 1);
      if (part.empty() || part == ".") continue;
      if (part == "..") {
        return list_error(list_path_, record.line,
                          str_cat("'", escape_bytes(record.path),
                                  "' leads upwards, so its class cannot be told"))
            .with_hint("name the folder of the classes with --root, or use --labels none");
      }
      folders->push_back(part);
    }
    return {};
  }

  std::string list_path_;
  std::vector<std::string> roots_;
  bool find_splits_;
  bool has_splits_ = false;
  size_t classes_ = 0;
  NameTable first_;
  NameTable second_;
  std::set<std::string, std::less<>> splits_with_classes_;
  std::vector<bool> labelled_;
  std::vector<std::vector<uint64_t>> counts_;
};

}  // namespace

Status NameTable::add(std::string_view name) {
  if (names_.find(name) != names_.end()) return {};
  if (names_.size() == kMostClasses) {
    return invalid_argument(str_cat("more than ", format_count(kMostClasses), " class names"))
        .with_hint("are they classes? --labels none does without");
  }
  names_.emplace(name);
  return {};
}

void NameTable::finish() {
  sorted_.reserve(names_.size());
  while (!names_.empty()) sorted_.push_back(std::move(names_.extract(names_.begin()).value()));
}

int64_t NameTable::index(std::string_view name) const {
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), name);
  return found != sorted_.end() && *found == name ? found - sorted_.begin() : -1;
}

Result<std::unique_ptr<ListLabels>> choose_labels(
    const PackOptions& options, const RecognisedForm& form, const RecordReader& reader,
    const ListRecord& first, const std::string& list_path, const std::string& root) {
  if (options.labels == LabelMode::kNone) return std::unique_ptr<ListLabels>(new NoLabels());
  const bool has_labels = form.form == ListForm::kLines || form.form == ListForm::kLst ||
                          (form.form == ListForm::kTable && reader.label_columns() != 0);
  if (!has_labels) {
    if (options.labels == LabelMode::kFloat) {
      return invalid_argument("--labels float, but the list has no labels").at_path(list_path);
    }
    return std::unique_ptr<ListLabels>(
        new FolderLabels(list_path, root, options.splits == SplitMode::kAuto));
  }
  if (form.form == ListForm::kTable && reader.label_columns() == 1 &&
      options.labels == LabelMode::kAuto && !first.labels[0].empty() &&
      !looks_like_number(first.labels[0])) {
    return std::unique_ptr<ListLabels>(new NameLabels(list_path));
  }
  return std::unique_ptr<ListLabels>(new NumberLabels(
      list_path, options.labels == LabelMode::kFloat, form.form == ListForm::kLines));
}

}  // namespace spk
