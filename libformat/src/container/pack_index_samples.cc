// What an index tells of samples: where their blobs lie, keys, numbers.
#include <algorithm>
#include <type_traits>

#include "base/checked.h"
#include "base/text.h"
#include "container/pack_index.h"

namespace spk {

namespace {

// Parses a shard's table where nobody has yet. Several threads may do so at once; the first to
// publish wins, so that no lock is needed, which a fork could leave locked.
template <typename Table, typename Parse>
Status get_table(std::atomic<const Table*>& slot, const Parse& parse, const Table*& table) {
  table = slot.load(std::memory_order_acquire);
  if (table != nullptr) return {};
  SPK_ASSIGN(std::unique_ptr<Table> parsed, parse());
  if (slot.compare_exchange_strong(table, parsed.get(), std::memory_order_acq_rel)) {
    table = parsed.release();
  }
  return {};
}

template <typename T>
T value_at(const ColumnView& values, uint64_t index) noexcept {
  if constexpr (std::is_same_v<T, int64_t>) {
    return values.signed_at(index);
  } else {
    return values.float_at(index);
  }
}

}  // namespace

Status PackIndex::find_row(uint64_t sample, Row& row) const {
  if (sample >= sample_count()) {
    return invalid_argument(str_cat("sample ", sample, " of ", sample_count(), " does not exist"));
  }
  // Shards have almost equally many samples, so that a guess is seldom off by more than one; a
  // search finds the rest.
  auto shard = std::min(static_cast<size_t>(static_cast<double>(sample) * shards_per_sample_),
                        shards_.size() - 1);
  const auto is_within = [&](size_t s) {
    return samples_before_[s] <= sample && sample < samples_before_[s + 1];
  };
  if (!is_within(shard)) {
    const auto after = std::upper_bound(samples_before_.begin(), samples_before_.end(), sample);
    shard = static_cast<size_t>(after - samples_before_.begin() - 1);
  }
  row.shard = static_cast<uint32_t>(shard);
  row.row = sample - samples_before_[shard];
  return {};
}

Status PackIndex::samples_table(uint32_t shard, const SamplesTable*& table) const {
  return get_table(
      samples_tables_[shard], [&] { return SamplesTable::parse(*body_, shards_[shard], schema_); },
      table);
}

Status PackIndex::names_table(uint32_t shard, const NamesTable*& table) const {
  return get_table(
      names_tables_[shard], [&] { return NamesTable::parse(*body_, shards_[shard]); }, table);
}

Status PackIndex::check_blob_field(uint16_t field) const {
  if (field >= schema_.fields.size()) {
    return invalid_argument(
        str_cat("field ", field, " does not exist; the pack has ", schema_.fields.size()));
  }
  if (schema_.fields[field].kind == FieldKind::kBlob) return {};
  return invalid_argument(
      str_cat("field '", schema_.fields[field].name, "' is numeric, not bytes"));
}

Status PackIndex::locate(uint64_t sample, uint16_t field, SampleLocation& location) const {
  Row at;
  SPK_TRY(find_row(sample, at));
  const SamplesTable* table = nullptr;
  SPK_TRY(samples_table(at.shard, table));
  const LazyField& columns = table->fields[field];
  location.shard = at.shard;
  SPK_TRY(columns.get_present(*body_, at.row, location.present));
  SPK_TRY(columns.offsets.get(*body_, at.row, location.offset));
  SPK_TRY(columns.bytes.get(*body_, at.row, location.bytes));
  SPK_TRY(columns.checksums.get(*body_, at.row, location.checksum));
  const uint64_t data_bytes = shards_[at.shard].data_bytes;
  if (range_fits(location.offset, location.bytes, data_bytes)) return {};
  return damaged(str_cat("the index places ", describe(sample), " at ", location.offset, " with ",
                         location.bytes, " bytes, but shard ", at.shard, " has ", data_bytes))
      .at_path(body_->path())
      .at_shard(at.shard);
}

std::string PackIndex::describe(uint64_t sample) const {
  const auto name = key(sample);
  return name.ok() ? str_cat("sample '", escape_bytes(*name), "'") : str_cat("sample ", sample);
}

Result<std::string> PackIndex::key(uint64_t sample) const {
  Row at;
  SPK_TRY(find_row(sample, at));
  const NamesTable* table = nullptr;
  SPK_TRY(names_table(at.shard, table));
  std::string_view key;
  SPK_TRY(table->get_key(*body_, at.row, key));
  return std::string(key);
}

Result<uint64_t> PackIndex::ordinal(uint64_t sample) const {
  Row at;
  SPK_TRY(find_row(sample, at));
  const NamesTable* table = nullptr;
  SPK_TRY(names_table(at.shard, table));
  uint64_t ordinal = 0;
  SPK_TRY(table->ordinals.get(*body_, at.row, ordinal));
  return ordinal;
}

Result<uint64_t> PackIndex::find_key(std::string_view wanted) const {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    const uint64_t rows = shards_[shard].sample_count;
    if (rows == 0) continue;
    const NamesTable* table = nullptr;
    SPK_TRY(names_table(shard, table));
    SPK_TRY(table->key_ends.load(*body_, 0, rows));
    const ColumnView& ends = table->key_ends.view();
    uint64_t begin = 0;
    for (uint64_t row = 0; row < rows; ++row) {
      // A key of another length is no candidate, so that the keys themselves are hardly looked at.
      const uint64_t end = ends.unsigned_at(row);
      const bool candidate = end - begin == wanted.size();
      begin = end;
      if (!candidate) continue;
      std::string_view key;
      SPK_TRY(table->get_key(*body_, row, key));
      if (key == wanted) return samples_before_[shard] + row;
    }
  }
  return Status(Code::kNotFound, str_cat("no sample has the key '", escape_bytes(wanted), "'"));
}

Result<StoredSample> PackIndex::sample(uint64_t sample) const {
  StoredSample stored;
  SPK_ASSIGN(stored.key, key(sample));
  SPK_ASSIGN(stored.ordinal, ordinal(sample));
  Row at;
  SPK_TRY(find_row(sample, at));
  const SamplesTable* table = nullptr;
  SPK_TRY(samples_table(at.shard, table));
  uint64_t flags = 0;
  if (table->flags.there()) SPK_TRY(table->flags.get(*body_, at.row, flags));
  stored.flags = static_cast<uint8_t>(flags);
  stored.fields.resize(schema_.fields.size());
  for (size_t i = 0; i < stored.fields.size(); ++i) {
    StoredField& field = stored.fields[i];
    const LazyField& columns = table->fields[i];
    if (columns.kind == FieldKind::kBlob) {
      SampleLocation location;
      SPK_TRY(locate(sample, static_cast<uint16_t>(i), location));
      field.present = location.present;
      if (!field.present) continue;
      field.offset = location.offset;
      field.bytes = location.bytes;
      field.checksum = location.checksum;
      continue;
    }
    SPK_TRY(columns.get_present(*body_, at.row, field.present));
    if (!field.present) continue;
    RowRange range;
    SPK_TRY(columns.get_values(*body_, at.row, range));
    SPK_TRY(columns.values.load(*body_, range.begin, range.end - range.begin));
    field.first = static_cast<uint32_t>(stored.numbers.size());
    field.count = static_cast<uint32_t>(range.end - range.begin);
    const ColumnView& values = columns.values.view();
    for (uint64_t n = range.begin; n < range.end; ++n) {
      stored.numbers.push_back(columns.kind == FieldKind::kInt64
                                   ? static_cast<uint64_t>(values.signed_at(n))
                                   : values.unsigned_at(n));
    }
  }
  return stored;
}

template <typename T>
Status PackIndex::check_numeric_field(uint16_t field) const {
  if (field >= schema_.fields.size()) {
    return invalid_argument(
        str_cat("field ", field, " does not exist; the pack has ", schema_.fields.size()));
  }
  const FieldKind kind = schema_.fields[field].kind;
  const bool is_float = kind == FieldKind::kFloat32 || kind == FieldKind::kFloat64;
  if constexpr (std::is_same_v<T, int64_t>) {
    if (kind == FieldKind::kInt64) return {};
    return invalid_argument(str_cat("field '", schema_.fields[field].name, "' is no integer"));
  }
  if (is_float) return {};
  return invalid_argument(str_cat("field '", schema_.fields[field].name, "' is no float"));
}

template <typename T>
Result<std::vector<T>> PackIndex::numbers(uint64_t sample, uint16_t field) const {
  SPK_TRY(check_numeric_field<T>(field));
  Row at;
  SPK_TRY(find_row(sample, at));
  const SamplesTable* table = nullptr;
  SPK_TRY(samples_table(at.shard, table));
  const LazyField& columns = table->fields[field];
  bool present = false;
  SPK_TRY(columns.get_present(*body_, at.row, present));
  std::vector<T> found;
  if (!present) return found;
  RowRange range;
  SPK_TRY(columns.get_values(*body_, at.row, range));
  SPK_TRY(columns.values.load(*body_, range.begin, range.end - range.begin));
  found.reserve(range.end - range.begin);
  for (uint64_t n = range.begin; n < range.end; ++n) {
    found.push_back(value_at<T>(columns.values.view(), n));
  }
  return found;
}

Result<std::vector<int64_t>> PackIndex::ints(uint64_t sample, uint16_t field) const {
  return numbers<int64_t>(sample, field);
}

Result<std::vector<double>> PackIndex::floats(uint64_t sample, uint16_t field) const {
  return numbers<double>(sample, field);
}

template <typename T>
Status PackIndex::copy_numbers(uint16_t field, uint64_t begin, uint64_t count, T* out,
                               uint8_t* present) const {
  SPK_TRY(check_numeric_field<T>(field));
  const uint64_t length = schema_.fields[field].length;
  if (length == 0) {
    return invalid_argument(str_cat("field '", schema_.fields[field].name,
                                    "' has a different number of values in each sample"))
        .with_hint("ask for one sample at a time");
  }
  if (!range_fits(begin, count, sample_count())) {
    return invalid_argument(
        str_cat("samples ", begin, " to ", begin + count, " of ", sample_count(), " do not exist"));
  }
  while (count != 0) {
    Row at;
    SPK_TRY(find_row(begin, at));
    const uint64_t rows = std::min(count, samples_before_[at.shard + 1] - begin);
    const SamplesTable* table = nullptr;
    SPK_TRY(samples_table(at.shard, table));
    const LazyField& columns = table->fields[field];
    // Rows times length was found to fit when the table was parsed.
    SPK_TRY(columns.values.load(*body_, at.row * length, rows * length));
    const ColumnView& values = columns.values.view();
    for (uint64_t n = 0; n < rows * length; ++n) {
      *out++ = value_at<T>(values, at.row * length + n);
    }
    if (present != nullptr) {
      if (columns.present.there()) SPK_TRY(columns.present.load(*body_, at.row, rows));
      for (uint64_t row = at.row; row < at.row + rows; ++row) {
        const bool there = !columns.present.there() || columns.present.view().unsigned_at(row) != 0;
        *present++ = there ? 1 : 0;
      }
    }
    begin += rows;
    count -= rows;
  }
  return {};
}

Status PackIndex::copy_ints(uint16_t field, uint64_t begin, uint64_t count, int64_t* out,
                            uint8_t* present) const {
  return copy_numbers(field, begin, count, out, present);
}

Status PackIndex::copy_floats(uint16_t field, uint64_t begin, uint64_t count, double* out,
                              uint8_t* present) const {
  return copy_numbers(field, begin, count, out, present);
}

}  // namespace spk
