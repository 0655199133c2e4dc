// TFRecord files of tf.train.Example: pictures, labels and more by the names of features.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "sources/container_source.h"
#include "sources/label_values.h"
#include "sources/shard_names.h"
#include "sources/source_features.h"
#include "sources/source_kind.h"
#include "sources/tf_example.h"
#include "sources/tfrecord_reader.h"

namespace spk {

namespace {

constexpr uint64_t kHeldBytes = uint64_t{8} << 20;
constexpr uint64_t kMostKeyBytes = 4096;
constexpr uint64_t kRecordsLookedAt = 1000;
constexpr std::string_view kImageNames[] = {"image/encoded", "image", "jpg", "jpeg", "png", "webp"};
constexpr std::string_view kLabelNames[] = {"image/class/label", "label", "cls"};
constexpr std::string_view kKeyNames[] = {"image/filename", "file_name", "filename", "key"};
using Kind = TfFeature::Kind;

// Beside picture, label and key.
struct OtherFeature {
  SourceFeature feature;
  Kind kind = Kind::kNone;
  size_t index = 0;     // in Listing::blobs or Listing::numbers
  uint32_t values = 0;  // of the first sample that has it
  bool any = false;
};

class TfRecordListing {
 public:
  TfRecordListing(const PackOptions& options, const ContainerSet& files)
      : options_(options), files_(files), labels_(options.labels) {}

  Result<Listing> run(uint64_t others, bool is_folder, const Source::Sink& sink);

 private:
  using Use = std::function<Result<bool>(uint32_t file, uint64_t number, const TfRecord& record)>;
  Status walk(uint32_t file, const Use& use);
  Result<TfExample> parse(uint32_t file, const TfRecord& record) const;
  Status choose();
  bool choose_from(const TfExample& example);
  Status check_choice() const;
  void decide();
  std::string name_of(uint32_t file, uint64_t number) const;
  Status take(uint32_t file, uint64_t number, const TfRecord& record, SampleEntry* entry);
  Result<std::string> take_image(const TfExample& example, std::vector<Piece>* pieces,
                                 uint32_t file) const;
  Result<std::string> take_label(const TfExample& example, SampleEntry* entry);
  Status take_key(const TfExample& example, SampleEntry* entry) const;
  Result<std::string> take_other(const TfExample& example, OtherFeature& other, uint32_t file,
                                 std::vector<Piece>* pieces, SampleEntry* entry) const;
  uint64_t held_bytes(uint32_t file) const {
    return files_.packing(file) == Packing::kNone ? kHeldBytes : options_.memory_bytes / 8;
  }

  const PackOptions& options_;
  const ContainerSet& files_;
  SourceFeatures features_;
  std::string image_, label_, key_;  // features; empty: none
  std::vector<OtherFeature> others_;
  std::string seen_names_;  // of the first record, for messages
  bool chosen_ = false;
  LabelValues labels_;
  Listing listing_;
};

// Records until USE says false. What USE does not hold is gone with the next.
Status TfRecordListing::walk(uint32_t file, const Use& use) {
  SPK_ASSIGN(const auto reader, files_.read(file, kDataWindowBytes, options_.salvage));
  TfRecordReader records(reader.get(), held_bytes(file));
  for (uint64_t number = 0;; ++number) {
    TfRecord record;
    const Result<bool> more = records.next(&record);
    if (!more.ok()) {
      if (!options_.salvage || more.status().code() != Code::kDamaged) return more.status();
      listing_.warnings.add("a file is not whole; the records before were taken",
                            more.status().to_string());
      break;
    }
    if (!*more) break;
    SPK_ASSIGN(const bool go_on, use(file, number, record));
    if (!go_on) return {};
  }
  return reader->finish();
}

Result<TfExample> TfRecordListing::parse(uint32_t file, const TfRecord& record) const {
  if (record.is_held) {
    const ByteSpan data = record.data;
    const uint64_t base = record.data_offset;
    // Offsets are those in the file, so that places of pictures are, too.
    return TfExample::parse(
        [data, base](uint64_t offset, MutableByteSpan into) -> Status {
          std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(offset - base), into.size(),
                      into.begin());
          return {};
        },
        base, base + data.size());
  }
  if (files_.packing(file) != Packing::kNone) {
    return unsupported(str_cat("a record of ", format_size(record.data_bytes),
                               " in a packed file; ", format_size(held_bytes(file)),
                               " are the most"))
        .at_path(escape_bytes(files_.path(file)))
        .at_offset(record.offset)
        .with_hint("give more with --memory, or unpack the file");
  }
  SPK_ASSIGN(File opened, File::open_read(files_.path(file)));
  const auto shared = std::make_shared<const File>(std::move(opened));
  return TfExample::parse(
      [shared](uint64_t offset, MutableByteSpan into) { return shared->read_exact(offset, into); },
      record.data_offset, record.data_offset + record.data_bytes);
}

// True once nothing is left to be found out.
bool TfRecordListing::choose_from(const TfExample& example) {
  const auto choose = [&](std::string_view field, std::span<const std::string_view> names,
                          std::string* chosen) {
    if (!chosen->empty()) return;
    *chosen = features_.source_of(field);
    for (const std::string_view name : names) {
      if (chosen->empty() && example.find(name) != nullptr) *chosen = name;
    }
  };
  if (!example.features().empty()) {
    choose("image", kImageNames, &image_);
    if (!chosen_) {
      if (options_.labels != LabelMode::kNone) choose("label", kLabelNames, &label_);
      choose("key", kKeyNames, &key_);
      for (const TfFeature& feature : example.features()) {
        seen_names_ += str_cat(seen_names_.empty() ? "" : ", ", escape_bytes(feature.name));
      }
      chosen_ = true;
    }
  }
  bool all = chosen_ && !image_.empty();
  for (OtherFeature& other : others_) {
    const TfFeature* const found = example.find(other.feature.from);
    if (other.kind == Kind::kNone && found != nullptr) other.kind = found->kind;
    if (other.kind == Kind::kNone) all = false;
  }
  return all;
}

// Looks at the first records that are whole.
Status TfRecordListing::choose() {
  uint64_t looked_at = 0;
  bool all = false;
  for (uint32_t file = 0; file < files_.count() && !all && looked_at < kRecordsLookedAt; ++file) {
    const Use look = [&](uint32_t in, uint64_t, const TfRecord& record) -> Result<bool> {
      if (record.crc_is_right) {
        auto example = parse(in, record);
        if (example.ok()) {
          all = choose_from(*example);
        } else if (example.status().code() != Code::kDamaged) {
          return std::move(example).status();
        }
      }
      return !all && ++looked_at < kRecordsLookedAt;
    };
    SPK_TRY(walk(file, look));
  }
  return check_choice();
}

Status TfRecordListing::check_choice() const {
  const auto at_source = [this](Status status) {
    return std::move(status)
        .at_path(escape_bytes(options_.source))
        .with_hint(str_cat("the first record's features are: ", seen_names_));
  };
  if (image_.empty()) {
    return at_source(
        invalid_argument("no feature is known to be the picture; --features image=NAME names it"));
  }
  for (const OtherFeature& other : others_) {
    if (other.kind != Kind::kNone) continue;
    return at_source(invalid_argument(
        str_cat("--features: no record has the feature '", escape_bytes(other.feature.from), "'")));
  }
  return {};
}

void TfRecordListing::decide() {
  std::string text = str_cat("image=", image_);
  if (!label_.empty()) text += str_cat(",label=", label_);
  if (!key_.empty()) text += str_cat(",key=", key_);
  for (OtherFeature& other : others_) {
    text += str_cat(",", other.feature.field, "=", other.feature.from);
    if (other.kind == Kind::kBytes) {
      other.index = listing_.blobs.size();
      listing_.blobs.push_back({other.feature.field, BlobContent::kAny});
    } else {
      other.index = listing_.numbers.size();
      listing_.numbers.push_back(
          {other.feature.field, other.kind == Kind::kInts ? FieldKind::kInt64 : FieldKind::kFloat32,
           1});
    }
  }
  listing_.decisions.emplace_back("features", escape_bytes(text));
  if (options_.salvage) listing_.decisions.emplace_back("salvage", "yes");
}

std::string TfRecordListing::name_of(uint32_t file, uint64_t number) const {
  if (files_.count() == 1) return str_cat("record ", number);
  const std::string& path = files_.path(file);
  return str_cat(path.substr(path.rfind('/') + 1), " record ", number);
}

Result<std::string> TfRecordListing::take_image(const TfExample& example,
                                                std::vector<Piece>* pieces, uint32_t file) const {
  const TfFeature* const feature = example.find(image_);
  if (feature == nullptr) return str_cat("no picture: no feature '", escape_bytes(image_), "'");
  if (feature->kind != Kind::kBytes) {
    return str_cat("no picture: feature '", escape_bytes(image_), "' holds no bytes");
  }
  SPK_ASSIGN(const auto places, example.byte_strings(*feature));
  if (places.size() != 1) {
    return str_cat("no picture: feature '", escape_bytes(image_), "' has ", places.size(),
                   " values");
  }
  pieces->push_back(Piece::of_file(file, places[0].offset, places[0].bytes));
  return std::string();
}

Result<std::string> TfRecordListing::take_label(const TfExample& example, SampleEntry* entry) {
  if (label_.empty()) return std::string();
  const TfFeature* const feature = example.find(label_);
  if (feature == nullptr || feature->kind == Kind::kNone) {
    return str_cat("no label: no feature '", escape_bytes(label_), "'");
  }
  if (feature->kind == Kind::kInts) {
    SPK_ASSIGN(std::vector<int64_t> values, example.ints(*feature));
    return labels_.set_ints(std::move(values), entry);
  }
  if (feature->kind == Kind::kFloats) {
    SPK_ASSIGN(const std::vector<float> values, example.floats(*feature));
    return labels_.set_floats({values.begin(), values.end()}, entry);
  }
  SPK_ASSIGN(const auto places, example.byte_strings(*feature));
  if (places.size() != 1 || places[0].bytes > kMostKeyBytes) return std::string("no label");
  SPK_ASSIGN(const std::string text, example.text(places[0]));
  return labels_.set_text(text, entry);
}

Status TfRecordListing::take_key(const TfExample& example, SampleEntry* entry) const {
  const TfFeature* const feature = key_.empty() ? nullptr : example.find(key_);
  if (feature == nullptr || feature->kind != Kind::kBytes) return {};
  SPK_ASSIGN(const auto places, example.byte_strings(*feature));
  if (places.size() != 1 || places[0].bytes == 0 || places[0].bytes > kMostKeyBytes) return {};
  SPK_ASSIGN(entry->key, example.text(places[0]));
  return {};
}

Result<std::string> TfRecordListing::take_other(const TfExample& example, OtherFeature& other,
                                                uint32_t file, std::vector<Piece>* pieces,
                                                SampleEntry* entry) const {
  const TfFeature* const feature = example.find(other.feature.from);
  const bool is_blob = other.kind == Kind::kBytes;
  if (feature == nullptr || feature->kind == Kind::kNone) {
    if (is_blob) entry->blob_bytes.push_back(kAbsentBlob);
    return std::string();
  }
  const std::string shown = str_cat("feature '", escape_bytes(other.feature.from), "'");
  if (feature->kind != other.kind) return str_cat(shown, " is of another type than before");
  if (is_blob) {
    SPK_ASSIGN(const auto places, example.byte_strings(*feature));
    if (places.size() > 1) return str_cat(shown, " has ", places.size(), " values; one is taken");
    entry->blob_bytes.push_back(places.empty() ? kAbsentBlob : places[0].bytes);
    if (!places.empty()) {
      pieces->push_back(Piece::of_file(file, places[0].offset, places[0].bytes));
    }
    return std::string();
  }
  NumericValues numbers;
  if (other.kind == Kind::kInts) {
    SPK_ASSIGN(const auto values, example.ints(*feature));
    for (const int64_t value : values) numbers.push_back(static_cast<uint64_t>(value));
  } else {
    SPK_ASSIGN(const auto values, example.floats(*feature));
    for (const float value : values) numbers.push_back(std::bit_cast<uint32_t>(value));
  }
  const auto count = static_cast<uint32_t>(numbers.size());
  if (!other.any) other.values = count;
  if (other.values != count) other.values = 0;  // for good: then it is ragged
  other.any = true;
  entry->numbers[other.index] = std::move(numbers);
  return std::string();
}

Status TfRecordListing::take(uint32_t file, uint64_t number, const TfRecord& record,
                             SampleEntry* entry) {
  entry->key = name_of(file, number);
  entry->mtime_ns = files_.entry_mtime_ns(file);
  if (!record.crc_is_right) {
    entry->reject = str_cat("data CRC is wrong, in the record at offset ", record.offset);
    return {};
  }
  auto example = parse(file, record);
  if (!example.ok()) {
    if (example.status().code() != Code::kDamaged) return std::move(example).status();
    entry->reject = str_cat("no tf.train.Example (", example.status().message(), "), at offset ",
                            record.offset);
    return {};
  }
  std::vector<Piece> pieces;
  const auto step = [&](Result<std::string> done) -> Status {
    if (done.ok()) {
      entry->reject = std::move(*done);
      return {};
    }
    if (done.status().code() != Code::kDamaged) return std::move(done).status();
    entry->reject = str_cat("no tf.train.Example (", done.status().message(), ")");
    return {};
  };
  const Status key = take_key(*example, entry);
  SPK_TRY(step(key.ok() ? Result<std::string>(std::string()) : Result<std::string>(key)));
  if (entry->reject.empty()) SPK_TRY(step(take_image(*example, &pieces, file)));
  if (entry->reject.empty()) SPK_TRY(step(take_label(*example, entry)));
  entry->numbers.resize(listing_.numbers.size());
  if (!pieces.empty()) entry->blob_bytes.push_back(pieces[0].bytes);
  for (OtherFeature& other : others_) {
    if (!entry->reject.empty()) break;
    SPK_TRY(step(take_other(*example, other, file, &pieces, entry)));
  }
  if (entry->numbers.empty() || !entry->reject.empty()) entry->numbers.clear();
  if (listing_.blobs.size() == 1 || !entry->reject.empty()) entry->blob_bytes.clear();
  entry->size_bytes = 0;
  for (const Piece& piece : pieces) entry->size_bytes += piece.bytes;
  entry->path = encode_pieces(pieces);
  return {};
}

Result<Listing> TfRecordListing::run(uint64_t others, bool is_folder, const Source::Sink& sink) {
  listing_.source_kind = "tfrecord";
  listing_.ordered = true;
  SPK_ASSIGN(features_, SourceFeatures::parse(options_.features));
  for (SourceFeature& feature : features_.others()) {
    OtherFeature other;
    other.feature = std::move(feature);
    others_.push_back(std::move(other));
  }
  std::vector<std::string> paths;
  for (uint32_t file = 0; file < files_.count(); ++file) paths.push_back(files_.path(file));
  if (is_folder) SPK_TRY(check_no_shard_is_missing(paths));
  const ShardSplits splits = splits_of_files(paths, options_.splits);
  listing_.splits = splits.names;
  if (others != 0) listing_.ignored["not a TFRecord file"] = others;
  SPK_TRY(choose());
  listing_.warnings = {};  // what it told will be told again
  decide();
  uint64_t ordinal = 0;
  for (uint32_t file = 0; file < files_.count(); ++file) {
    const Use use = [&](uint32_t in, uint64_t number, const TfRecord& record) -> Result<bool> {
      SampleEntry entry;
      entry.split = splits.of_file[in];
      entry.ordinal = ordinal++;
      SPK_TRY(take(in, number, record, &entry));
      SPK_TRY(sink(std::move(entry)));
      return true;
    };
    SPK_TRY(walk(file, use));
  }
  for (const OtherFeature& other : others_) {
    if (other.kind != Kind::kBytes) listing_.numbers[other.index].length = other.values;
  }
  labels_.finish(&listing_);
  if (label_.empty() && options_.labels != LabelMode::kNone) {
    listing_.warnings.add("no labels", "--features label=NAME names the feature that holds them");
  }
  return std::move(listing_);
}

class TfRecordSource : public ContainerSource {
 public:
  TfRecordSource(FoundSet found, bool is_folder)
      : ContainerSource(std::move(found.files), found.others), is_folder_(is_folder) {}
  Result<Listing> list(const PackOptions& options, const Sink& sink) override {
    return TfRecordListing(options, files()).run(others(), is_folder_, sink);
  }

 private:
  bool is_folder_;
};

}  // namespace

SourceKind tfrecord_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    return holds_container(look, true, TfRecordReader::is_tfrecord);
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    SPK_ASSIGN(FoundSet found, open_containers(look,
                                               {TfRecordReader::is_tfrecord, "a TFRecord file",
                                                "a folder without TFRecord files", true, true},
                                               std::move(spool)));
    return std::unique_ptr<Source>(
        std::make_unique<TfRecordSource>(std::move(found), look.is_folder));
  };
  return {"tfrecord", "TFRecord files", recognises, open};
}

}  // namespace spk
