// describe_plan_difference of pipeline/plan.h.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "pipeline/entry_codec.h"
#include "pipeline/external_sort.h"
#include "pipeline/plan.h"

namespace spk {

namespace {

constexpr uint64_t kSorterBytes = uint64_t{32} << 20;
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr size_t kNamesShown = 5;

// "added: 7 (a, b, c, d, e ...)"
class Names {
 public:
  void add(std::string name) {
    ++count_;
    if (names_.size() < kNamesShown) names_.push_back(std::move(name));
  }
  uint64_t count() const noexcept { return count_; }
  void describe(std::string_view what, std::string* out) const {
    if (count_ == 0) return;
    *out += str_cat(what, ": ", format_count(count_), " (");
    for (size_t i = 0; i < names_.size(); ++i) *out += str_cat(i == 0 ? "" : ", ", names_[i]);
    *out += names_.size() < count_ ? " ...)\n" : ")\n";
  }

 private:
  uint64_t count_ = 0;
  std::vector<std::string> names_;
};

void compare_settings(const PlanInfo& before, const PlanInfo& now, std::string* out) {
  const auto find = [](const PlanInfo& info, const std::string& name) {
    for (const auto& [known, value] : info.settings) {
      if (known == name) return value;
    }
    return std::string("not set");
  };
  const auto compare = [&](const std::string& name) {
    const std::string old_value = find(before, name);
    const std::string new_value = find(now, name);
    if (old_value != new_value) {
      *out += str_cat(name, ": ", old_value, " before, ", new_value, " now\n");
    }
  };
  for (const auto& [name, value] : now.settings) compare(name);
  for (const auto& [name, value] : before.settings) {
    if (find(now, name) == "not set") compare(name);
  }
  if (before.split != now.split) {
    *out += str_cat("split: ", escape_bytes(before.split), " before, ", escape_bytes(now.split),
                    " now\n");
  }
}

void compare_classes(const PlanInfo& before, const PlanInfo& now, std::string* out) {
  Names added, removed;
  auto old_name = before.classes.begin();
  auto new_name = now.classes.begin();
  while (old_name != before.classes.end() || new_name != now.classes.end()) {
    if (new_name == now.classes.end() ||
        (old_name != before.classes.end() && *old_name < *new_name)) {
      removed.add(escape_bytes(*old_name++));
    } else if (old_name == before.classes.end() || *new_name < *old_name) {
      added.add(escape_bytes(*new_name++));
    } else {
      ++old_name;
      ++new_name;
    }
  }
  added.describe("classes added", out);
  removed.describe("classes removed", out);
}

std::string show_labels(const SampleEntry& entry) {
  if (entry.int_labels.empty() && entry.float_labels.empty()) return "none";
  std::string shown;
  for (const int64_t label : entry.int_labels) shown += str_cat(shown.empty() ? "" : " ", label);
  for (const double label : entry.float_labels) {
    shown += str_cat(shown.empty() ? "" : " ", format_fixed(label, 6));
  }
  return shown;
}

std::string show_size(const SampleEntry& entry) {
  return entry.size_bytes == kUnknownSize ? "no size" : str_cat(entry.size_bytes, " bytes");
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint64_t>(a[i]) != std::bit_cast<uint64_t>(b[i])) return false;
  }
  return true;
}

// The samples of a plan by key, and within one key by ordinal.
class SortedSamples {
 public:
  explicit SortedSamples(const std::string& directory) : sorter_(directory, kSorterBytes) {}

  Status load(const Plan& plan) {
    SampleEntry entry;
    std::string key, payload;
    for (uint32_t shard = 0; shard < plan.info().geometry.shard_count; ++shard) {
      SPK_ASSIGN(const auto cursor, plan.shard(shard));
      for (;;) {
        SPK_ASSIGN(const bool more, cursor->next(&entry));
        if (!more) break;
        payload.clear();
        append_be64(payload, entry.ordinal);
        append_entry_without_key(payload, entry);
        SPK_TRY(sorter_.add(as_bytes(entry.key), as_bytes(payload)));
      }
    }
    SPK_TRY(sorter_.finish());
    SPK_ASSIGN(stream_, sorter_.read());
    return advance();
  }
  bool at_end() const noexcept { return at_end_; }
  const SampleEntry& entry() const noexcept { return entry_; }
  Status advance() {
    ByteSpan key, payload;
    SPK_ASSIGN(const bool more, stream_->next(&key, &payload));
    at_end_ = !more;
    if (!more) return {};
    payload = payload.subspan(8);
    return take_entry_without_key(&payload, as_text(key), &entry_);
  }

 private:
  ExternalSorter sorter_;
  std::unique_ptr<ExternalSorter::Stream> stream_;
  SampleEntry entry_;
  bool at_end_ = false;
};

struct SampleChanges {
  Names added, removed, size, label, mtime, reject;
  bool moved = false;

  void compare(const SampleEntry& before, const SampleEntry& now) {
    const std::string name = escape_bytes(now.key);
    const auto told = [&name](const std::string& from, const std::string& to) {
      return str_cat(name, ": ", from, " before, ", to, " now");
    };
    if (before.size_bytes != now.size_bytes) size.add(told(show_size(before), show_size(now)));
    if (before.int_labels != now.int_labels || !same_bits(before.float_labels, now.float_labels)) {
      label.add(told(show_labels(before), show_labels(now)));
    }
    if (before.mtime_ns != now.mtime_ns) mtime.add(name);
    if (before.reject != now.reject) {
      reject.add(told(before.reject.empty() ? "readable" : before.reject,
                      now.reject.empty() ? "readable" : now.reject));
    }
    moved |= before.ordinal != now.ordinal;
  }
  void describe(std::string* out) const {
    added.describe("samples added", out);
    removed.describe("samples removed", out);
    size.describe("samples changed in size", out);
    label.describe("samples changed in label", out);
    mtime.describe("samples changed in mtime", out);
    reject.describe("samples changed in what can be read of them", out);
    if (moved && added.count() + removed.count() == 0) *out += "the order of the samples differs\n";
  }
};

// A plan's bytes are a function of what is in it. (Of equal plans this sees all; others end it at
// the first difference.)
Result<bool> are_same_bytes(const std::string& path, const std::string& other_path) {
  SPK_ASSIGN(const File file, File::open_read(path));
  SPK_ASSIGN(const File other, File::open_read(other_path));
  SPK_ASSIGN(const uint64_t size, file.size());
  SPK_ASSIGN(const uint64_t other_size, other.size());
  if (size != other_size) return false;
  std::vector<uint8_t> bytes(kPieceBytes), other_bytes(kPieceBytes);
  for (uint64_t done = 0; done < size;) {
    const auto piece = static_cast<size_t>(std::min(kPieceBytes, size - done));
    SPK_TRY(file.read_exact(done, {bytes.data(), piece}));
    SPK_TRY(other.read_exact(done, {other_bytes.data(), piece}));
    if (std::memcmp(bytes.data(), other_bytes.data(), piece) != 0) return false;
    done += piece;
  }
  return true;
}

}  // namespace

Result<std::string> describe_plan_difference(const std::string& old_plan_path,
                                             const std::string& new_plan_path) {
  SPK_ASSIGN(const bool same, are_same_bytes(old_plan_path, new_plan_path));
  if (same) return std::string();
  SPK_ASSIGN(const auto before, Plan::load(old_plan_path));
  SPK_ASSIGN(const auto now, Plan::load(new_plan_path));
  std::string out;
  compare_settings(before->info(), now->info(), &out);
  compare_classes(before->info(), now->info(), &out);

  const size_t slash = new_plan_path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : new_plan_path.substr(0, slash + 1);
  SortedSamples old_samples(directory), new_samples(directory);
  SPK_TRY(old_samples.load(*before));
  SPK_TRY(new_samples.load(*now));
  SampleChanges changes;
  while (!old_samples.at_end() || !new_samples.at_end()) {
    const SampleEntry& a = old_samples.entry();
    const SampleEntry& b = new_samples.entry();
    if (new_samples.at_end() || (!old_samples.at_end() && a.key < b.key)) {
      changes.removed.add(escape_bytes(a.key));
      SPK_TRY(old_samples.advance());
    } else if (old_samples.at_end() || b.key < a.key) {
      changes.added.add(escape_bytes(b.key));
      SPK_TRY(new_samples.advance());
    } else {
      changes.compare(a, b);
      SPK_TRY(old_samples.advance());
      SPK_TRY(new_samples.advance());
    }
  }
  changes.describe(&out);
  return out;
}

}  // namespace spk
