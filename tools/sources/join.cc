#include "sources/join.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "base/varint.h"
#include "pipeline/entry_codec.h"
#include "sources/file_sample.h"
#include "sources/joined_handle.h"
#include "sources/list_reader.h"
#include "sources/pieces.h"

namespace spk {

namespace {

constexpr size_t kNamesShown = 3;
constexpr char kNoRow[] = "the table has no row for it, so it has no label";
constexpr char kNoCell[] = "the table's row has no label";

// What an entry's path holds where texts may come from the table: all that the inner source needs
// to open the entry, and the texts.
struct Place {
  SampleEntry inner;
  std::vector<std::string> texts;  // those that are there
};

std::string encode_place(const SampleEntry& inner, const std::vector<std::string>& texts) {
  std::string text;
  append_string(text, inner.path);
  append_be64(text, inner.size_bytes);
  append_varint(text, inner.blob_bytes.size());
  for (const std::string& one : texts) append_string(text, one);
  return text;
}

Result<Place> decode_place(const SampleEntry& entry) {
  Place place;
  ByteSpan bytes = as_bytes(entry.path);
  std::string_view text;
  uint64_t blobs = 0;
  const auto bad = [] { return damaged("the place of a sample in its source is not whole"); };
  if (!take_string(&bytes, &text) || bytes.size() < 8) return bad();
  place.inner = entry;
  place.inner.path = text;
  place.inner.size_bytes = load_be<uint64_t>(bytes.data());
  bytes = bytes.subspan(8);
  if (!take_varint(&bytes, &blobs) || blobs > entry.blob_bytes.size()) return bad();
  place.inner.blob_bytes.resize(blobs);
  while (!bytes.empty()) {
    if (!take_string(&bytes, &text)) return bad();
    place.texts.emplace_back(text);
  }
  return place;
}

// Counts what has no partner; the first names are kept.
struct Lonely {
  uint64_t count = 0;
  std::string names;
  void add(std::string_view name) {
    if (count++ < kNamesShown) names += str_cat(names.empty() ? "" : ", ", escape_bytes(name));
  }
  std::string text() const { return str_cat("(", names, count > kNamesShown ? ", ...)" : ")"); }
};

std::string missing_text(const PackOptions& options) {
  return options.join_missing.empty() ? "refuse" : options.join_missing;
}

}  // namespace

// Takes entries from the inner source and sorts them by key. Thread-safe.
class JoinSource::Collector {
 public:
  Collector(const JoinSource& source, const PackOptions& options, std::string spill)
      : source_(source), entries_(std::move(spill), options.memory_bytes / 16) {}

  Status take(SampleEntry&& entry) {
    if (entry.size_bytes == kUnknownSize && entry.reject.empty()) SPK_TRY(size(&entry));
    thread_local std::string payload;
    payload.clear();
    append_varint(payload, entry.split);
    append_entry_without_key(payload, entry);
    const std::lock_guard lock(mutex_);
    return entries_.add(as_bytes(entry.key), as_bytes(payload));
  }
  ExternalSorter& entries() { return entries_; }

 private:
  // Behind bytes of an unknown number nothing has a place.
  Status size(SampleEntry* entry) const {
    auto handle = source_.inner_->open(*entry);
    if (handle.ok()) {
      entry->size_bytes = (*handle)->size_bytes();
      return {};
    }
    const Code code = handle.status().code();
    if (code != Code::kNotFound && code != Code::kDenied) return std::move(handle).status();
    entry->reject = code == Code::kNotFound ? kRejectNotFound : kRejectDenied;
    return {};
  }

  const JoinSource& source_;
  std::mutex mutex_;  // guards what follows
  ExternalSorter entries_;
};

// Brings sorted entries and sorted rows together.
class JoinSource::Merger {
 public:
  Merger(const JoinTable& table, const PackOptions& options, Listing* listing)
      : table_(table), options_(options), listing_(*listing) {}

  Status prepare();
  Status run(ExternalSorter& entries, bool carries_texts, const Sink& sink);

 private:
  Status add_field(const JoinColumn& column);
  Status set(SampleEntry* entry, const JoinRow* row, bool carries_texts);
  void set_label(SampleEntry* entry, const std::string* cell);
  // The cell's number, or what --join-missing gives; nothing where it is to be absent.
  std::optional<uint64_t> number(const JoinColumn& column, const std::string* cell) const;
  Status refuse_lonely() const;

  const JoinTable& table_;
  const PackOptions& options_;
  Listing& listing_;
  size_t inner_blobs_ = 0;
  size_t inner_numbers_ = 0;
  bool refuses_missing_ = true;
  std::optional<std::string> fill_;  // for numbers
  Lonely missing_, extra_, empty_;
};

Status JoinSource::Merger::add_field(const JoinColumn& column) {
  const auto taken = [&](const auto& one) { return one.name == column.field; };
  if (std::any_of(listing_.blobs.begin(), listing_.blobs.end(), taken) ||
      std::any_of(listing_.numbers.begin(), listing_.numbers.end(), taken)) {
    return invalid_argument(
               str_cat("the source has a field '", escape_bytes(column.field), "' already"))
        .at_path(table_.path())
        .with_hint("--join-columns COLUMN:FIELD gives the table's another name");
  }
  switch (column.type) {
    case JoinType::kText: listing_.blobs.push_back({column.field, BlobContent::kAny}); return {};
    case JoinType::kInt64: listing_.numbers.push_back({column.field, FieldKind::kInt64, 1}); break;
    case JoinType::kFloat32:
      listing_.numbers.push_back({column.field, FieldKind::kFloat32, 1});
      break;
    case JoinType::kFloat64:
      listing_.numbers.push_back({column.field, FieldKind::kFloat64, 1});
      break;
  }
  if (fill_ && !join_number(column.type, *fill_)) {
    return invalid_argument(str_cat("--join-missing ", escape_bytes(*fill_), " is no ",
                                    join_type_name(column.type), ", which the column '",
                                    escape_bytes(column.name), "' is"));
  }
  return {};
}

Status JoinSource::Merger::prepare() {
  inner_blobs_ = listing_.blobs.size();
  inner_numbers_ = listing_.numbers.size();
  const std::string missing = missing_text(options_);
  refuses_missing_ = missing == "refuse";
  if (!refuses_missing_ && missing != "absent") fill_ = missing;
  std::string fields;
  for (size_t i = 0; i < table_.columns().size(); ++i) {
    const JoinColumn& column = table_.columns()[i];
    fields += str_cat(fields.empty() ? "" : ",", column.field, ":", join_type_name(column.type));
    if (i != table_.label_column()) {
      SPK_TRY(add_field(column));
      continue;
    }
    const bool is_whole = column.type == JoinType::kText || column.type == JoinType::kInt64;
    if (column.type == JoinType::kText) {
      fill_.reset();  // a number is no class
    } else if (fill_ && !join_number(column.type, *fill_)) {
      return invalid_argument(
          str_cat("--join-missing ", escape_bytes(*fill_), " is no label of this table"));
    }
    listing_.label_kind = is_whole ? LabelKind::kInt : LabelKind::kFloat;
    listing_.label_count = 1;
    listing_.classes = table_.classes();
  }
  listing_.decisions.emplace_back("join", fields);
  listing_.decisions.emplace_back("join_table", table_.digest().to_hex());
  if (!refuses_missing_) listing_.decisions.emplace_back("join_missing", missing);
  return {};
}

std::optional<uint64_t> JoinSource::Merger::number(const JoinColumn& column,
                                                   const std::string* cell) const {
  if (cell != nullptr && !trim_blanks(*cell).empty()) return join_number(column.type, *cell);
  return fill_ ? join_number(column.type, *fill_) : std::nullopt;
}

void JoinSource::Merger::set_label(SampleEntry* entry, const std::string* cell) {
  const JoinColumn& column = table_.columns()[table_.label_column()];
  entry->int_labels.clear();
  entry->float_labels.clear();
  if (column.type == JoinType::kText) {
    const auto& classes = listing_.classes;
    if (cell == nullptr || cell->empty()) {
      entry->reject = cell == nullptr ? kNoRow : kNoCell;
    } else {
      entry->int_labels = {std::lower_bound(classes.begin(), classes.end(), *cell) -
                           classes.begin()};
    }
    return;
  }
  const std::optional<uint64_t> bits = number(column, cell);
  if (!bits) {
    entry->reject = cell == nullptr ? kNoRow : kNoCell;
  } else if (column.type == JoinType::kInt64) {
    entry->int_labels = {static_cast<int64_t>(*bits)};
  } else if (column.type == JoinType::kFloat64) {
    entry->float_labels = {std::bit_cast<double>(*bits)};
  } else {
    entry->float_labels = {double{std::bit_cast<float>(static_cast<uint32_t>(*bits))}};
  }
}

// ROW is null where there is none.
Status JoinSource::Merger::set(SampleEntry* entry, const JoinRow* row, bool carries_texts) {
  const SampleEntry inner = *entry;
  const bool has_texts = listing_.blobs.size() > inner_blobs_;
  std::vector<std::string> texts;
  if (listing_.numbers.size() > inner_numbers_) entry->numbers.resize(inner_numbers_);
  if (has_texts && entry->blob_bytes.empty()) entry->blob_bytes = {entry->size_bytes};
  if (has_texts) entry->blob_bytes.resize(inner_blobs_, kAbsentBlob);
  for (size_t i = 0; i < table_.columns().size(); ++i) {
    const JoinColumn& column = table_.columns()[i];
    const std::string* const cell = row == nullptr ? nullptr : &row->cells[i];
    const bool is_number = column.type != JoinType::kText;
    if (is_number && cell != nullptr && trim_blanks(*cell).empty()) {
      empty_.add(str_cat(entry->key, ": ", column.name));
    }
    if (i == table_.label_column()) {
      set_label(entry, cell);
    } else if (is_number) {
      const std::optional<uint64_t> bits = number(column, cell);
      entry->numbers.push_back(bits ? std::optional(NumericValues{*bits}) : std::nullopt);
    } else if (cell == nullptr) {
      entry->blob_bytes.push_back(kAbsentBlob);
    } else {
      entry->blob_bytes.push_back(cell->size());
      entry->size_bytes += cell->size();
      texts.push_back(*cell);
    }
  }
  if (carries_texts) entry->path = encode_place(inner, texts);
  return {};
}

Status JoinSource::Merger::refuse_lonely() const {
  std::string message, hint;
  const auto add = [](std::string* to, std::string_view text) {
    *to += str_cat(to->empty() ? "" : "; ", text);
  };
  if (refuses_missing_ && missing_.count != 0) {
    add(&message, str_cat(count_of(missing_.count, "sample has", "samples have"),
                          " no row in the table ", missing_.text()));
  }
  if (refuses_missing_ && empty_.count != 0) {
    add(&message, str_cat(count_of(empty_.count, "cell that holds", "cells that hold"),
                          " a number elsewhere ", empty_.count == 1 ? "is" : "are", " empty ",
                          empty_.text()));
  }
  if (!message.empty()) {
    hint = "--join-missing absent leaves their fields out, --join-missing NUMBER fills them";
  }
  if (!options_.join_ignore_extra && extra_.count != 0) {
    add(&message,
        str_cat(count_of(extra_.count, "row has", "rows have"), " no sample ", extra_.text()));
    add(&hint, "--join-extra ignore leaves such rows out");
  }
  if (message.empty()) return {};
  return Status(Code::kMismatch, message).at_path(table_.path()).with_hint(hint);
}

Status JoinSource::Merger::run(ExternalSorter& entries, bool carries_texts, const Sink& sink) {
  SPK_ASSIGN(const auto stream, entries.read());
  SPK_ASSIGN(JoinTable::Rows rows, table_.rows());
  std::string row_key;
  JoinRow row;
  bool row_was_used = false;
  SPK_ASSIGN(bool has_row, rows.next(&row_key, &row));
  const auto next_row = [&]() -> Status {
    if (!row_was_used) extra_.add(row_key);
    row_was_used = false;
    SPK_ASSIGN(has_row, rows.next(&row_key, &row));
    return {};
  };
  for (;;) {
    ByteSpan key, payload;
    SPK_ASSIGN(const bool more, stream->next(&key, &payload));
    if (!more) break;
    SampleEntry entry;
    uint64_t split = 0;
    if (!take_varint(&payload, &split)) return damaged("a sorted entry is not whole");
    SPK_TRY(take_entry_without_key(&payload, as_text(key), &entry));
    entry.split = static_cast<uint32_t>(split);
    while (has_row && row_key < entry.key) SPK_TRY(next_row());
    const bool found = has_row && row_key == entry.key;
    if (found) row_was_used = true;
    if (entry.reject.empty()) {
      if (!found) missing_.add(entry.key);
      SPK_TRY(set(&entry, found ? &row : nullptr, carries_texts));
    }
    SPK_TRY(sink(std::move(entry)));
  }
  while (has_row) SPK_TRY(next_row());
  SPK_TRY(refuse_lonely());
  if (missing_.count != 0) {
    listing_.warnings.add("no row in the table", missing_.names);
    listing_.warnings.add_count("no row in the table", missing_.count - 1);
  }
  if (empty_.count != 0) {
    listing_.warnings.add("empty cells of numbers in the table", empty_.names);
    listing_.warnings.add_count("empty cells of numbers in the table", empty_.count - 1);
  }
  if (extra_.count != 0) {
    listing_.warnings.add("rows of the table without a sample", extra_.names);
    listing_.warnings.add_count("rows of the table without a sample", extra_.count - 1);
  }
  return {};
}

Result<std::unique_ptr<Source>> JoinSource::around(std::unique_ptr<Source> inner,
                                                   const PackOptions& options,
                                                   std::shared_ptr<Spool> spool) {
  SPK_ASSIGN(std::unique_ptr<JoinTable> table, JoinTable::open(options));
  const std::string missing = missing_text(options);
  if (missing != "refuse" && missing != "absent" && !join_number(JoinType::kFloat64, missing)) {
    return invalid_argument(str_cat("--join-missing ", escape_bytes(missing),
                                    " is none of refuse, absent and a number"));
  }
  bool carries_texts = false;
  for (const JoinColumn& column : table->columns()) {
    const bool may_be_text = !column.told || *column.told == JoinType::kText;
    carries_texts = carries_texts || (may_be_text && column.field != "label");
  }
  std::unique_ptr<JoinSource> source(
      new JoinSource(std::move(inner), std::move(table), std::move(spool)));
  source->carries_texts_ = carries_texts;
  return std::unique_ptr<Source>(std::move(source));
}

Result<Listing> JoinSource::list(const PackOptions& options, const Sink& sink) {
  std::string spill = std::filesystem::temp_directory_path().string();
  if (spool_ != nullptr) {
    SPK_ASSIGN(spill, spool_->sorting_place());
  }
  SPK_TRY(table_->read_rows(options, spill));
  PackOptions inner_options = options;
  if (table_->label_column() != SIZE_MAX) inner_options.labels = LabelMode::kNone;
  Collector collector(*this, options, spill);
  SPK_ASSIGN(Listing listing, inner_->list(inner_options, [&](SampleEntry&& entry) {
    return collector.take(std::move(entry));
  }));
  SPK_TRY(collector.entries().finish());
  Merger merger(*table_, options, &listing);
  SPK_TRY(merger.prepare());
  SPK_TRY(merger.run(collector.entries(), carries_texts_, sink));
  return listing;
}

Result<std::unique_ptr<SampleHandle>> JoinSource::open(const SampleEntry& entry) const {
  if (!carries_texts_ || !entry.reject.empty()) return inner_->open(entry);
  SPK_ASSIGN(const Place place, decode_place(entry));
  auto all = std::make_unique<JoinedHandle>();
  SPK_ASSIGN(auto inner, inner_->open(place.inner));
  all->add(std::move(inner));
  for (const std::string& text : place.texts) {
    all->add(std::make_unique<BytesHandle>(std::vector<uint8_t>(text.begin(), text.end())));
  }
  return std::unique_ptr<SampleHandle>(std::move(all));
}

}  // namespace spk
