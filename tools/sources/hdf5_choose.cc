#include "sources/hdf5_choose.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "sources/names.h"
#include "sources/source.h"

namespace spk {

namespace {

using Kind = Hdf5Dataset::Kind;

constexpr size_t kNamesToldAtMost = 12;
constexpr std::array<std::string_view, 8> kImageNames = {"images", "image", "x",      "data",
                                                         "img",    "imgs",  "pixels", "bytes"};
constexpr std::array<std::string_view, 6> kLabelNames = {"labels", "label",   "y",
                                                         "target", "targets", "class"};
constexpr std::array<std::string_view, 6> kKeyNames = {"keys",      "key",      "names",
                                                       "filenames", "filename", "file_name"};
constexpr std::array<std::string_view, 4> kClassNames = {"class_names", "classes", "list_classes",
                                                         "label_names"};

template <size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string group_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string() : path.substr(0, slash + 1);
}
std::string name_of(const Hdf5Dataset& dataset) {
  return to_lower(std::string_view(dataset.path).substr(group_of(dataset.path).size()));
}
bool is_beside(const Hdf5Dataset& a, const Hdf5Dataset& b) {
  return group_of(a.path) == group_of(b.path) && a.path != b.path;
}
bool is_integers(const Hdf5Dataset& dataset) {
  return dataset.kind == Kind::kNumbers && dataset.element.kind != ArrayElement::Kind::kFloat;
}

bool holds_dense(const Hdf5Dataset& dataset) {
  return dataset.kind == Kind::kNumbers && (dataset.sizes.size() == 3 || dataset.sizes.size() == 4);
}
bool holds_rows(const Hdf5Dataset& dataset) {
  return dataset.kind == Kind::kBytesRows && dataset.sizes.size() == 1;
}
bool holds_flat(const Hdf5Dataset& dataset) {
  return dataset.kind == Kind::kNumbers && dataset.element.is_byte() && dataset.sizes.size() == 1;
}
// One picture: its file, or its pixels.
bool holds_one(const Hdf5Dataset& dataset) {
  if (dataset.kind == Kind::kOpaque) return dataset.sizes.size() <= 1;
  return dataset.kind == Kind::kNumbers && dataset.element.is_byte() && !dataset.sizes.empty() &&
         dataset.sizes.size() <= 3;
}

class Chooser {
 public:
  Chooser(const std::vector<Hdf5Dataset>& datasets, const PackOptions& options)
      : datasets_(datasets), options_(options) {}

  Result<Hdf5Choice> run() {
    SPK_TRY(choose_images());
    if (choice_.form == Hdf5Form::kMany) return std::move(choice_);
    SPK_TRY(choose_labels());
    choice_.keys = find_texts(kKeyNames, choice_.count);
    choice_.classes = find_texts(kClassNames, 0);
    choice_.others = datasets_.size() - 1 - (choice_.offsets ? 1 : 0) - (choice_.labels ? 1 : 0) -
                     (choice_.keys ? 1 : 0) - (choice_.classes ? 1 : 0);
    return std::move(choice_);
  }

 private:
  std::string names() const {
    std::string text;
    for (size_t i = 0; i < std::min(datasets_.size(), kNamesToldAtMost); ++i) {
      const Hdf5Dataset& one = datasets_[i];
      text += str_cat(i == 0 ? "" : ", ", escape_bytes(one.path), " (", one.what);
      for (const uint64_t size : one.sizes) text += str_cat(" x ", size);
      text += ")";
    }
    return text + (datasets_.size() > kNamesToldAtMost ? ", ..." : "");
  }

  const Hdf5Dataset* find(std::string name) const {
    while (name.starts_with('/')) name.erase(0, 1);
    for (const Hdf5Dataset& one : datasets_) {
      if (one.path == name) return &one;
    }
    return nullptr;
  }

  const Hdf5Dataset* offsets_of(const Hdf5Dataset& bytes) const {
    for (const Hdf5Dataset& one : datasets_) {
      const bool is_named =
          name_of(one) == "offsets" || name_of(one) == name_of(bytes) + "_offsets";
      if (is_named && is_beside(one, bytes) && is_integers(one) && one.sizes.size() == 1) {
        return &one;
      }
    }
    return nullptr;
  }

  bool take_images(const Hdf5Dataset& images) {
    choice_.images = images;
    choice_.count = images.sizes.empty() ? 0 : images.sizes[0];
    if (holds_dense(images)) {
      choice_.form = Hdf5Form::kDense;
    } else if (holds_rows(images)) {
      choice_.form = Hdf5Form::kRows;
    } else if (const Hdf5Dataset* offsets = offsets_of(images);
               offsets != nullptr && holds_flat(images)) {
      choice_.form = Hdf5Form::kFlat;
      choice_.offsets = *offsets;
      choice_.count = offsets->sizes[0] == 0 ? 0 : offsets->sizes[0] - 1;
    } else {
      return false;
    }
    return true;
  }

  // All pictures below GROUP, which ends with a slash or is empty.
  Status take_many(const std::string& group) {
    choice_.form = Hdf5Form::kMany;
    for (const Hdf5Dataset& one : datasets_) {
      if (one.path.starts_with(group) && holds_one(one)) {
        choice_.many.push_back(one);
      } else {
        ++choice_.others;
      }
    }
    if (!choice_.many.empty()) return {};
    return invalid_argument(str_cat("no dataset holds pictures: ", names()))
        .with_hint("--images NAME says which one does");
  }

  Status choose_images() {
    if (!options_.images_name.empty()) {
      if (const Hdf5Dataset* found = find(options_.images_name); found != nullptr) {
        if (take_images(*found)) return {};
        return invalid_argument(str_cat("dataset '", escape_bytes(found->path),
                                        "' holds no pictures that are read: ", names()));
      }
      std::string group = options_.images_name;
      while (group.starts_with('/')) group.erase(0, 1);
      if (!group.empty() && !group.ends_with('/')) group += '/';
      const bool is_there = std::any_of(datasets_.begin(), datasets_.end(), [&](const auto& one) {
        return one.path.starts_with(group);
      });
      if (is_there) return take_many(group);
      return Status(Code::kNotFound, str_cat("has no dataset '", escape_bytes(options_.images_name),
                                             "'; it has ", names()));
    }
    std::vector<const Hdf5Dataset*> found, named;
    bool all_in_groups = true;
    for (const Hdf5Dataset& one : datasets_) {
      const bool is_flat = holds_flat(one) && offsets_of(one) != nullptr;
      if (!holds_dense(one) && !holds_rows(one) && !is_flat) continue;
      found.push_back(&one);
      if (is_among(kImageNames, name_of(one))) named.push_back(&one);
      if (group_of(one.path).empty()) all_in_groups = false;
    }
    const Hdf5Dataset* one = found.size() == 1 ? found[0] : named.size() == 1 ? named[0] : nullptr;
    if (found.empty() || (one == nullptr && named.empty() && all_in_groups)) return take_many("");
    if (one != nullptr && take_images(*one)) return {};
    return invalid_argument(str_cat("several datasets may be the pictures: ", names()))
        .with_hint("--images NAME says which one is");
  }

  Status choose_labels() {
    if (options_.labels == LabelMode::kNone) return {};
    if (!options_.labels_name.empty()) {
      const Hdf5Dataset* found = find(options_.labels_name);
      if (found == nullptr) {
        return Status(
            Code::kNotFound,
            str_cat("has no dataset '", escape_bytes(options_.labels_name), "'; it has ", names()));
      }
      return take_labels(*found);
    }
    // x_train has its labels in y_train, images in labels.
    std::string counterpart = name_of(choice_.images);
    if (const size_t at = counterpart.find("image"); at != counterpart.npos) {
      counterpart.replace(at, 5, "label");
    } else if (counterpart.starts_with("x")) {
      counterpart[0] = 'y';
    } else if (counterpart.ends_with("_x")) {
      counterpart.back() = 'y';
    }
    std::vector<const Hdf5Dataset*> found, rows;
    for (const Hdf5Dataset& one : datasets_) {
      if (!is_beside(one, choice_.images) ||
          (choice_.offsets && one.path == choice_.offsets->path)) {
        continue;
      }
      if (name_of(one) == counterpart) return take_labels(one);
      if (is_among(kLabelNames, name_of(one))) found.push_back(&one);
      if (one.kind == Kind::kNumbers && one.sizes.size() == 1 && one.sizes[0] == choice_.count) {
        rows.push_back(&one);
      }
    }
    if (found.size() == 1) return take_labels(*found[0]);
    if (found.empty() && rows.empty()) return {};
    return invalid_argument(str_cat(found.empty() ? "no dataset has a name that labels have, but "
                                                  : "several datasets may be the labels: ",
                                    names()))
        .with_hint("--labels-name NAME says which one is; --labels none packs without");
  }

  Status take_labels(const Hdf5Dataset& labels) {
    if (labels.kind != Kind::kNumbers || labels.sizes.empty() || labels.sizes.size() > 2) {
      return unsupported(str_cat("labels in '", escape_bytes(labels.path), "' that are ",
                                 labels.what, ", not one number or one row of them a picture"));
    }
    if (labels.sizes[0] != choice_.count) {
      return Status(
          Code::kMismatch,
          str_cat(choice_.count, " pictures in '", escape_bytes(choice_.images.path), "', but ",
                  labels.sizes[0], " labels in '", escape_bytes(labels.path), "'"));
    }
    choice_.labels = labels;
    return {};
  }

  // Of these names, beside the pictures. COUNT 0: any number but that of the pictures.
  template <size_t N>
  std::optional<Hdf5Dataset> find_texts(const std::array<std::string_view, N>& wanted,
                                        uint64_t count) const {
    for (const Hdf5Dataset& one : datasets_) {
      if (one.kind != Kind::kStrings || one.sizes.size() != 1) continue;
      if (!is_beside(one, choice_.images) || !is_among(wanted, name_of(one))) continue;
      if (count == 0 ? one.sizes[0] <= kMostClasses : one.sizes[0] == count) return one;
    }
    return {};
  }

  const std::vector<Hdf5Dataset>& datasets_;
  const PackOptions& options_;
  Hdf5Choice choice_;
};

}  // namespace

const char* hdf5_form_name(Hdf5Form form) noexcept {
  switch (form) {
    case Hdf5Form::kDense: return "array";
    case Hdf5Form::kRows: return "rows";
    case Hdf5Form::kFlat: return "bytes and offsets";
    case Hdf5Form::kMany: return "datasets";
  }
  return "unknown";
}

Result<Hdf5Choice> choose_datasets(const std::vector<Hdf5Dataset>& datasets,
                                   const PackOptions& options) {
  return Chooser(datasets, options).run();
}

}  // namespace spk
