#include "commands/pack_diff.h"

#include <algorithm>
#include <tuple>

#include "base/hash.h"
#include "ui/signals.h"

namespace spk {

namespace {

struct Row {
  uint64_t key_hash;
  uint64_t row_hash;  // of key and all compared fields
  uint64_t sample;
  bool operator<(const Row& other) const {
    return std::tie(key_hash, sample) < std::tie(other.key_hash, other.sample);
  }
};

// The fields that both packs have, of the same kind and length.
struct CommonFields {
  std::vector<std::pair<uint16_t, uint16_t>> pairs;  // numbers in A and B
  bool all = true;                                   // neither has any other
};

CommonFields common_fields(const Schema& a, const Schema& b) {
  CommonFields common;
  for (size_t i = 0; i < a.fields.size(); ++i) {
    const uint16_t other = b.find(a.fields[i].name);
    if (other != kNoField && b.fields[other] == a.fields[i]) {
      common.pairs.emplace_back(static_cast<uint16_t>(i), other);
    }
  }
  common.all = common.pairs.size() == a.fields.size() && common.pairs.size() == b.fields.size();
  return common;
}

void add_field(Xxh3Stream& hash, const StoredSample& sample, uint16_t field, bool is_blob) {
  const StoredField& value = sample.fields[field];
  hash.update_u64(value.present ? 1 : 0);
  if (!value.present) return;
  hash.update_u64(is_blob ? value.bytes : value.count);
  if (is_blob) {
    hash.update_u64(value.checksum);
    return;
  }
  for (uint32_t i = value.first; i < value.first + value.count; ++i) {
    hash.update_u64(sample.numbers[i]);
  }
}

bool fields_equal(const StoredSample& a, uint16_t field_a, const StoredSample& b, uint16_t field_b,
                  bool is_blob) {
  const StoredField& x = a.fields[field_a];
  const StoredField& y = b.fields[field_b];
  if (x.present != y.present || !x.present) return x.present == y.present;
  if (is_blob) return x.bytes == y.bytes && x.checksum == y.checksum;
  return x.count == y.count &&
         std::equal(a.numbers.begin() + x.first, a.numbers.begin() + x.first + x.count,
                    b.numbers.begin() + y.first);
}

class Differ {
 public:
  Differ(const Pack& a, const Pack& b)
      : a_(a), b_(b), common_(common_fields(a.schema(), b.schema())) {}

  Result<PackDifference> run() {
    compare_wholes();
    if (result_.identical) {
      result_.same = a_.sample_count();
      return std::move(result_);
    }
    SPK_ASSIGN(const std::vector<Row> rows_a, rows_of(a_, false));
    SPK_ASSIGN(const std::vector<Row> rows_b, rows_of(b_, true));
    SPK_TRY(merge(rows_a, rows_b));
    std::sort(result_.samples.begin(), result_.samples.end(), [](const auto& x, const auto& y) {
      return std::tie(x.in_a, x.in_b, x.kind) < std::tie(y.in_a, y.in_b, y.kind);
    });
    return std::move(result_);
  }

 private:
  void compare_wholes() {
    const PackIdentity x = a_.identity();
    const PackIdentity y = b_.identity();
    result_.identical = a_.content_id() == b_.content_id();
    result_.fields_differ = !common_.all;
    result_.classes_differ = a_.schema().classes != b_.schema().classes;
    result_.geometry_differs = x.chunk_bytes_log2 != y.chunk_bytes_log2 ||
                               x.blob_align_log2 != y.blob_align_log2 ||
                               a_.shards().size() != b_.shards().size();
    result_.settings_differ = a_.settings() != b_.settings();
  }

  Result<std::vector<Row>> rows_of(const Pack& pack, bool is_b) const {
    std::vector<Row> rows;
    rows.reserve(pack.sample_count());
    for (uint64_t i = 0; i < pack.sample_count(); ++i) {
      if (cancel_flag()) return cancel_status();
      SPK_ASSIGN(const StoredSample sample, pack.sample(i));
      Xxh3Stream hash;
      hash.update_u64(sample.key.size());
      hash.update(as_bytes(sample.key));
      for (const auto& [in_a, in_b] : common_.pairs) {
        add_field(hash, sample, is_b ? in_b : in_a, is_blob(in_a));
      }
      rows.push_back({xxh3_64(as_bytes(sample.key)), hash.digest_64(), i});
    }
    std::sort(rows.begin(), rows.end());
    return rows;
  }

  bool is_blob(uint16_t field_in_a) const {
    return a_.schema().fields[field_in_a].kind == FieldKind::kBlob;
  }

  Status merge(const std::vector<Row>& rows_a, const std::vector<Row>& rows_b) {
    size_t i = 0;
    size_t j = 0;
    while (i < rows_a.size() || j < rows_b.size()) {
      if (cancel_flag()) return cancel_status();
      if (j == rows_b.size() || (i < rows_a.size() && rows_a[i].key_hash < rows_b[j].key_hash)) {
        only_in_a(rows_a[i++].sample);
        continue;
      }
      if (i == rows_a.size() || rows_b[j].key_hash < rows_a[i].key_hash) {
        only_in_b(rows_b[j++].sample);
        continue;
      }
      const uint64_t hash = rows_a[i].key_hash;
      const auto end_of = [hash](const std::vector<Row>& rows, size_t at) {
        while (at < rows.size() && rows[at].key_hash == hash) ++at;
        return at;
      };
      const size_t end_i = end_of(rows_a, i);
      const size_t end_j = end_of(rows_b, j);
      if (end_i == i + 1 && end_j == j + 1 && rows_a[i].row_hash == rows_b[j].row_hash) {
        ++result_.same;  // two hashes of the key agree; the key itself need not be read
        SPK_TRY(compare_places(rows_a[i].sample, rows_b[j].sample));
      } else {
        SPK_TRY(match_group({&rows_a[i], end_i - i}, {&rows_b[j], end_j - j}));
      }
      i = end_i;
      j = end_j;
    }
    return {};
  }

  struct Keyed {
    std::string key;
    uint64_t ordinal;
    uint64_t sample;
    bool operator<(const Keyed& other) const {
      return std::tie(key, ordinal) < std::tie(other.key, other.ordinal);
    }
  };
  static Result<std::vector<Keyed>> keyed(const Pack& pack, std::span<const Row> rows) {
    std::vector<Keyed> result;
    for (const Row& row : rows) {
      SPK_ASSIGN(std::string key, pack.key(row.sample));
      SPK_ASSIGN(const uint64_t ordinal, pack.ordinal(row.sample));
      result.push_back({std::move(key), ordinal, row.sample});
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  // Keys with one hash: mostly one key; a key that occurs several times is matched in the order of
  // the source.
  Status match_group(std::span<const Row> in_a, std::span<const Row> in_b) {
    SPK_ASSIGN(const std::vector<Keyed> x, keyed(a_, in_a));
    SPK_ASSIGN(const std::vector<Keyed> y, keyed(b_, in_b));
    size_t i = 0;
    size_t j = 0;
    while (i < x.size() || j < y.size()) {
      if (j == y.size() || (i < x.size() && x[i].key < y[j].key)) {
        only_in_a(x[i++].sample);
      } else if (i == x.size() || y[j].key < x[i].key) {
        only_in_b(y[j++].sample);
      } else {
        SPK_TRY(compare_samples(x[i++].sample, y[j++].sample));
      }
    }
    return {};
  }

  Status compare_samples(uint64_t in_a, uint64_t in_b) {
    SPK_ASSIGN(const StoredSample x, a_.sample(in_a));
    SPK_ASSIGN(const StoredSample y, b_.sample(in_b));
    bool relabelled = false;
    bool changed = false;
    for (const auto& [field_a, field_b] : common_.pairs) {
      if (fields_equal(x, field_a, y, field_b, is_blob(field_a))) continue;
      (a_.schema().fields[field_a].name == "label" ? relabelled : changed) = true;
    }
    if (relabelled) {
      result_.samples.push_back({DifferenceKind::kRelabelled, in_a, in_b});
      ++result_.relabelled;
    }
    if (changed) {
      result_.samples.push_back({DifferenceKind::kChanged, in_a, in_b});
      ++result_.changed;
    }
    if (!relabelled && !changed) ++result_.same;
    return compare_places(in_a, in_b);
  }

  Status compare_places(uint64_t in_a, uint64_t in_b) {
    if (in_a != in_b) result_.order_differs = true;
    if (result_.order_differs) return {};
    SPK_ASSIGN(const uint64_t x, a_.ordinal(in_a));
    SPK_ASSIGN(const uint64_t y, b_.ordinal(in_b));
    if (x != y) result_.order_differs = true;
    return {};
  }

  void only_in_a(uint64_t sample) {
    result_.samples.push_back({DifferenceKind::kRemoved, sample, Difference::kNone});
    ++result_.removed;
  }
  void only_in_b(uint64_t sample) {
    result_.samples.push_back({DifferenceKind::kAdded, Difference::kNone, sample});
    ++result_.added;
  }

  const Pack& a_;
  const Pack& b_;
  const CommonFields common_;
  PackDifference result_;
};

}  // namespace

const char* difference_name(DifferenceKind kind) noexcept {
  switch (kind) {
    case DifferenceKind::kRemoved: return "removed";
    case DifferenceKind::kAdded: return "added";
    case DifferenceKind::kRelabelled: return "relabelled";
    case DifferenceKind::kChanged: return "changed";
  }
  return "unknown";
}

Result<PackDifference> diff_packs(const Pack& a, const Pack& b) { return Differ(a, b).run(); }

}  // namespace spk
