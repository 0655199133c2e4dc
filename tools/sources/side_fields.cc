#include "sources/side_fields.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "base/varint.h"
#include "sources/file_sample.h"
#include "sources/joined_handle.h"
#include "sources/names.h"
#include "sources/npy.h"

namespace spk {

namespace {

constexpr std::array<std::string_view, 6> kTakenNames = {"image", "label",    "height",
                                                         "width", "channels", "shape"};
constexpr size_t kDtypesKept = 16;

std::string_view without_suffix(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_suffix = dot != path.npos && dot != 0 && (slash == path.npos || dot > slash + 1);
  return has_suffix ? path.substr(0, dot) : path;
}

// What an entry's path holds: the inner source's entry, and the files beside it that are there.
struct Joined {
  SampleEntry inner;
  std::vector<SampleEntry> sides;  // in the order of the fields
};

std::string encode(const Joined& joined) {
  std::string text;
  append_string(text, joined.inner.path);
  append_be64(text, joined.inner.size_bytes);
  for (const SampleEntry& side : joined.sides) {
    append_string(text, side.key);
    append_be64(text, side.size_bytes);
    append_be64(text, static_cast<uint64_t>(side.mtime_ns));
  }
  return text;
}

Result<Joined> decode(const SampleEntry& entry) {
  Joined joined;
  ByteSpan bytes = as_bytes(entry.path);
  const auto bad = [] { return damaged("the place of a sample in its source is not whole"); };
  const auto take_be64 = [&](uint64_t* value) {
    if (bytes.size() < 8) return false;
    *value = load_be<uint64_t>(bytes.data());
    bytes = bytes.subspan(8);
    return true;
  };
  std::string_view path;
  if (!take_string(&bytes, &path) || !take_be64(&joined.inner.size_bytes)) return bad();
  joined.inner.key = entry.key;
  joined.inner.path = path;
  joined.inner.mtime_ns = entry.mtime_ns;
  while (!bytes.empty()) {
    SampleEntry side;
    uint64_t mtime = 0;
    if (!take_string(&bytes, &path) || !take_be64(&side.size_bytes) || !take_be64(&mtime)) {
      return bad();
    }
    side.key = path;
    side.mtime_ns = static_cast<int64_t>(mtime);
    joined.sides.push_back(std::move(side));
  }
  return joined;
}

bool is_absence(const Status& status) {
  return status.code() == Code::kNotFound || status.code() == Code::kDenied;
}

}  // namespace

Result<std::vector<SideField>> parse_side_fields(const std::vector<std::string>& texts) {
  std::vector<SideField> fields;
  std::set<std::string> names(kTakenNames.begin(), kTakenNames.end());
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const auto bad = [&](std::string_view why) {
      return invalid_argument(str_cat("--field ", escape_bytes(text), ": ", why))
          .with_hint("--field mask=masks/{key}.png names a file for each sample");
    };
    if (equals == text.npos || equals == 0) return bad("no NAME=PATTERN");
    SideField field{text.substr(0, equals), text.substr(equals + 1)};
    if (!is_valid_utf8(field.name)) return bad("the name is not UTF-8");
    if (field.pattern.find("{key}") == text.npos && field.pattern.find("{path}") == text.npos) {
      return bad("the pattern has neither {key} nor {path}");
    }
    if (!names.insert(field.name).second) return bad("a field of that name is there already");
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string side_path(const std::string& pattern, std::string_view key, std::string_view path) {
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const std::string_view rest = std::string_view(pattern).substr(at);
    if (rest.starts_with("{key}")) {
      out += without_suffix(key);
      at += 5;
    } else if (rest.starts_with("{path}")) {
      out += without_suffix(path);
      at += 6;
    } else {
      out += pattern[at++];
    }
  }
  return out;
}

// Adds to entries on their way from the inner source. Thread-safe.
class SideFieldSource::Collector {
 public:
  Collector(const SideFieldSource& source, const PackOptions& options, const Sink& sink)
      : source_(source), options_(options), sink_(sink) {}

  Status take(SampleEntry&& entry) {
    if (entry.reject.empty()) SPK_TRY(join(&entry));
    return sink_(std::move(entry));
  }

  // What all entries were, together.
  void finish(Listing* listing) {
    listing->warnings.merge(warnings_);
    if (options_.accept_any) {
      listing->blobs = {{"image", BlobContent::kAny}};
      listing->decisions.emplace_back("accept", "any");
    }
    for (const SideField& field : source_.fields_) {
      const bool is_picture = is_picture_name(field.pattern) && !options_.accept_any;
      listing->blobs.push_back(
          {field.name, is_picture ? BlobContent::kPicture : BlobContent::kAny});
    }
    if (options_.require_fields) listing->decisions.emplace_back("require_fields", "true");
    if (dtypes_.empty()) return;
    listing->numbers = {{"shape", FieldKind::kInt64, 0}};
    std::string text;
    for (const std::string& dtype : dtypes_) text += str_cat(text.empty() ? "" : ",", dtype);
    listing->decisions.emplace_back("dtype", text);
    if (dtypes_.size() > 1) listing->warnings.add("arrays of several dtypes", text);
  }

 private:
  void warn(const char* kind, const std::string& example) {
    const std::lock_guard lock(mutex_);
    warnings_.add(kind, escape_bytes(example));
  }

  Status join(SampleEntry* entry) {
    const bool reads_head = options_.accept_any && entry->key.ends_with(".npy");
    if (entry->size_bytes == kUnknownSize || reads_head) {
      auto handle = source_.inner_->open(*entry);
      if (!handle.ok()) {
        if (!is_absence(handle.status())) return std::move(handle).status();
        entry->reject = handle.status().code() == Code::kNotFound ? kRejectNotFound : kRejectDenied;
        return {};
      }
      entry->size_bytes = (*handle)->size_bytes();
      if (reads_head) SPK_TRY(add_shape(**handle, entry));
    }
    if (source_.fields_.empty() || !entry->reject.empty()) return {};
    return add_sides(entry);
  }

  Status add_shape(SampleHandle& handle, SampleEntry* entry) {
    auto head = read_npy_head(handle);
    if (!head.ok()) {
      if (head.status().code() == Code::kNotThisFormat) {
        warn("no NumPy array in spite of its name", entry->key);
        return {};
      }
      if (head.status().code() != Code::kDamaged) return std::move(head).status();
      entry->reject = head.status().message();
      return {};
    }
    uint64_t bytes = head->element_bytes;
    NumericValues shape;
    for (const int64_t size : head->shape) {
      shape.push_back(static_cast<uint64_t>(size));
      if (!checked_mul(bytes, static_cast<uint64_t>(size), &bytes)) bytes = UINT64_MAX;
    }
    const uint64_t there = entry->size_bytes - head->head_bytes;
    if (head->element_bytes != 0 && bytes > there) {
      entry->reject =
          str_cat("truncated: a NumPy array of ", bytes, " bytes, ", there, " are there");
      return {};
    }
    if (head->fortran_order) warn("arrays in Fortran's order", entry->key);
    entry->numbers = {std::move(shape)};
    const std::lock_guard lock(mutex_);
    if (dtypes_.size() < kDtypesKept) dtypes_.insert(head->dtype);
    return {};
  }

  Status add_sides(SampleEntry* entry) {
    const std::string& path = entry->path.empty() ? entry->key : entry->path;
    Joined joined;
    joined.inner.path = entry->path;
    joined.inner.size_bytes = entry->size_bytes;
    entry->blob_bytes = {entry->size_bytes};
    for (const SideField& field : source_.fields_) {
      SampleEntry side;
      side.key = side_path(field.pattern, entry->key, path);
      SPK_TRY(stat_entry(source_.here_.fd(), &side));
      if (side.reject.empty()) {
        entry->blob_bytes.push_back(side.size_bytes);
        entry->size_bytes += side.size_bytes;
        joined.sides.push_back(std::move(side));
        continue;
      }
      if (options_.require_fields) {
        entry->blob_bytes.clear();
        entry->reject =
            str_cat("no field ", field.name, ": ", escape_bytes(side.key), " ", side.reject);
        return {};
      }
      warn("no file for a field", side.key);
      entry->blob_bytes.push_back(kAbsentBlob);
    }
    entry->path = encode(joined);
    return {};
  }

  const SideFieldSource& source_;
  const PackOptions& options_;
  const Sink& sink_;
  std::mutex mutex_;  // guards what follows
  Warnings warnings_;
  std::set<std::string> dtypes_;
};

Result<std::unique_ptr<Source>> SideFieldSource::around(std::unique_ptr<Source> inner,
                                                        const PackOptions& options) {
  SPK_ASSIGN(std::vector<SideField> fields, parse_side_fields(options.side_fields));
  SPK_ASSIGN(Directory here, Directory::open("."));
  return std::unique_ptr<Source>(
      new SideFieldSource(std::move(inner), std::move(fields), std::move(here)));
}

Result<Listing> SideFieldSource::list(const PackOptions& options, const Sink& sink) {
  Collector collector(*this, options, sink);
  SPK_ASSIGN(Listing listing, inner_->list(options, [&](SampleEntry&& entry) {
    return collector.take(std::move(entry));
  }));
  collector.finish(&listing);
  return listing;
}

Result<std::unique_ptr<SampleHandle>> SideFieldSource::open(const SampleEntry& entry) const {
  if (fields_.empty()) return inner_->open(entry);
  SPK_ASSIGN(const Joined joined, decode(entry));
  auto all = std::make_unique<JoinedHandle>();
  SPK_ASSIGN(auto inner, inner_->open(joined.inner));
  all->add(std::move(inner));
  for (const SampleEntry& side : joined.sides) {
    SPK_ASSIGN(auto handle, open_file_sample(here_, side));
    all->add(std::move(handle));
  }
  return std::unique_ptr<SampleHandle>(std::move(all));
}

}  // namespace spk
