#include "sources/lmdb.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "sources/caffe_datum.h"
#include "sources/list_labels.h"
#include "sources/lmdb_tree.h"
#include "sources/names.h"
#include "sources/picture_bytes.h"
#include "sources/pieces.h"
#include "sources/planar.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr uint64_t kSurveyed = 64;  // values that are looked at to tell what all are
constexpr size_t kNamesToldAtMost = 8;
constexpr char kDataName[] = "data.mdb";

enum class ValueForm { kDatum, kPicture, kOther };

// The class that a key names: what stands before its first '/', or before its last '_'. Empty where
// it names none.
std::string_view class_of_key(std::string_view key) {
  if (const size_t slash = key.find('/'); slash != key.npos) return key.substr(0, slash);
  const size_t end = key.rfind('_');
  return end == key.npos ? std::string_view() : key.substr(0, end);
}

// "cat/1.jpg" of "00000042_cat/1.jpg", as Caffe's tools number the names of a list; other keys are
// their own names.
std::string_view name_of_key(std::string_view key) {
  const size_t digits = std::min(key.find_first_not_of("0123456789"), key.size());
  const bool numbered = digits >= 8 && digits + 1 < key.size() && key[digits] == '_';
  return numbered ? key.substr(digits + 1) : key;
}

class Lister {
 public:
  Lister(const PackOptions& options, const File& file, const LmdbTree& tree,
         const Source::Sink& sink)
      : options_(options), file_(file), tree_(tree), sink_(sink) {}

  Result<Listing> run();

 private:
  Status choose_database();
  Status take_named(const std::string& name);
  Status survey();
  Status choose_form();
  Status choose_label_rule();
  Status add(const LmdbEntry& value);
  Status add_datum(const LmdbEntry& value, SampleEntry* entry);
  Status add_picture(const LmdbEntry& value, SampleEntry* entry);
  Status finish();

  Result<ValueForm> form_of(const LmdbEntry& value, CaffeDatum* datum) const;
  Result<std::vector<uint8_t>> head_of(uint64_t offset, uint64_t bytes) const;
  Status walk(const LmdbTree::Visit& visit) {
    uint64_t lost = 0;
    SPK_TRY(tree_.walk(database_, visit, options_.salvage ? &lost : nullptr));
    lost_ = lost;
    return {};
  }
  WireWalk::Read reader() const {
    return [this](uint64_t offset, MutableByteSpan into) { return file_.read_exact(offset, into); };
  }

  const PackOptions& options_;
  const File& file_;
  LmdbTree tree_;
  const Source::Sink& sink_;
  Listing listing_;
  LmdbDatabase database_;
  int64_t mtime_ns_ = kUnknownMtime;

  // What the survey found.
  uint64_t surveyed_[3] = {};  // by ValueForm
  std::string first_key_;
  std::string other_key_;
  std::optional<CaffeDatum> first_datum_;
  bool all_have_slash_ = true;
  bool prefix_labels_ = false;
  bool named_keys_ = false;
  std::string key_without_class_;
  NameTable classes_;

  uint64_t entries_ = 0;
  uint64_t misfits_ = 0;
  uint64_t lost_ = 0;
};

Result<std::vector<uint8_t>> Lister::head_of(uint64_t offset, uint64_t bytes) const {
  std::vector<uint8_t> head(std::min<uint64_t>(bytes, kPictureHeadBytes));
  SPK_TRY(file_.read_exact(offset, head));
  return head;
}

Result<ValueForm> Lister::form_of(const LmdbEntry& value, CaffeDatum* datum) const {
  auto parsed = parse_datum(reader(), value.offset, value.bytes);
  if (parsed.ok()) {
    *datum = *parsed;
    return ValueForm::kDatum;
  }
  if (parsed.status().code() != Code::kDamaged) return std::move(parsed).status();
  SPK_ASSIGN(const auto head, head_of(value.offset, value.bytes));
  return picture_kind(head).empty() ? ValueForm::kOther : ValueForm::kPicture;
}

Status Lister::take_named(const std::string& name) {
  std::optional<LmdbDatabase> found;
  SPK_TRY(walk([&](const LmdbEntry& entry) -> Status {
    if (!entry.is_database || entry.key != name) return {};
    SPK_ASSIGN(found, tree_.parse_named(entry));
    return {};
  }));
  if (!found) {
    return Status(Code::kNotFound, str_cat("has no database called '", escape_bytes(name), "'"))
        .at_path(file_.path())
        .with_hint("without --db, the unnamed database is taken, or the names are told");
  }
  database_ = *found;
  listing_.decisions.emplace_back("database", escape_bytes(name));
  return {};
}

// The unnamed database describes the named ones among its own entries.
Status Lister::choose_database() {
  database_ = tree_.main();
  if (!options_.database.empty()) return take_named(options_.database);
  uint64_t named = 0, plain = 0;
  std::string name, names;
  SPK_TRY(walk([&](const LmdbEntry& entry) -> Status {
    if (!entry.is_database) {
      ++plain;
      return {};
    }
    if (++named <= kNamesToldAtMost) {
      names += str_cat(names.empty() ? "" : ", ", escape_bytes(entry.key));
      name = entry.key;
    }
    return {};
  }));
  if (plain != 0 || named == 0) return {};
  if (named == 1) return take_named(name);
  return invalid_argument(str_cat("holds ", named, " named databases: ", names,
                                  named > kNamesToldAtMost ? ", ..." : ""))
      .at_path(file_.path())
      .with_hint("--db NAME takes one");
}

Status Lister::survey() {
  const bool asked = options_.label_from == LabelFrom::kKeyPrefix;
  const bool wanted = options_.labels != LabelMode::kNone;
  return walk([&](const LmdbEntry& value) -> Status {
    if (value.is_database) return {};
    if (surveyed_[0] + surveyed_[1] + surveyed_[2] < kSurveyed) {
      if (first_key_.empty()) first_key_ = value.key;
      CaffeDatum datum;
      SPK_ASSIGN(const ValueForm form, form_of(value, &datum));
      ++surveyed_[static_cast<size_t>(form)];
      if (form == ValueForm::kDatum && !first_datum_) first_datum_ = datum;
      if (form == ValueForm::kOther && other_key_.empty()) other_key_ = value.key;
    }
    if (value.key.find('/') == value.key.npos) all_have_slash_ = false;
    const std::string_view name = class_of_key(value.key);
    if (name.empty() && key_without_class_.empty()) key_without_class_ = value.key;
    if (name.empty() || !wanted || !(asked || all_have_slash_)) return {};
    return classes_.add(name);
  });
}

Status Lister::choose_form() {
  const uint64_t datums = surveyed_[static_cast<size_t>(ValueForm::kDatum)];
  const uint64_t pictures = surveyed_[static_cast<size_t>(ValueForm::kPicture)];
  const uint64_t others = surveyed_[static_cast<size_t>(ValueForm::kOther)];
  if (others > datums && others > pictures) {
    return Status(Code::kNotThisFormat,
                  str_cat("an LMDB environment of values that are neither Caffe's Datum nor "
                          "pictures: of the first ",
                          datums + pictures + others, ", ", datums, " are Datum and ", pictures,
                          " are pictures; key '", escape_bytes(other_key_), "' is neither"))
        .at_path(file_.path())
        .with_hint("write the pictures to files and pack a list of them");
  }
  listing_.source_kind = "lmdb";
  listing_.form = datums >= pictures ? "datum" : "pictures";
  listing_.splits = {""};
  listing_.ordered = true;
  if (listing_.form == "datum" && first_datum_ && !first_datum_->encoded) {
    listing_.blobs = {{"image", BlobContent::kPixels}};
    listing_.decisions.emplace_back("pixels", "uint8 hwc rgb");
  }
  return {};
}

Status Lister::choose_label_rule() {
  if (options_.labels == LabelMode::kFloat) {
    return invalid_argument("--labels float does not go with LMDB, whose labels are integers")
        .at_path(file_.path());
  }
  const bool datum = listing_.form == "datum";
  if (datum && options_.label_from != LabelFrom::kAuto) {
    return invalid_argument("--label-from goes with pictures, but each Datum has its own label")
        .at_path(file_.path());
  }
  if (options_.labels == LabelMode::kNone) return {};
  if (datum) {
    if (first_datum_ && first_datum_->label) listing_.label_kind = LabelKind::kInt;
  } else if (options_.label_from == LabelFrom::kKeyPrefix || all_have_slash_) {
    if (!key_without_class_.empty()) {
      return invalid_argument(str_cat("key '", escape_bytes(key_without_class_),
                                      "' has neither '/' nor '_', so it names no class"))
          .at_path(file_.path())
          .with_hint("--labels none packs without labels");
    }
    classes_.finish();
    listing_.classes = classes_.sorted();
    listing_.label_kind = LabelKind::kInt;
    listing_.decisions.emplace_back("label_from", "key-prefix");
    prefix_labels_ = true;
    warn_of_numeric_classes(&listing_);
  }
  if (listing_.label_kind == LabelKind::kNone) {
    listing_.warnings.add(
        "no labels", datum ? str_cat("the Datum of key '", escape_bytes(first_key_), "' has none")
                           : "see --label-from");
  }
  return {};
}

Status Lister::add_datum(const LmdbEntry& value, SampleEntry* entry) {
  auto parsed = parse_datum(reader(), value.offset, value.bytes);
  if (!parsed.ok()) {
    if (parsed.status().code() != Code::kDamaged) return std::move(parsed).status();
    ++misfits_;
    entry->reject = parsed.status().message();
    return {};
  }
  const CaffeDatum& datum = *parsed;
  const bool wants_raw = listing_.blobs[0].content == BlobContent::kPixels;
  if (listing_.label_kind != LabelKind::kNone) {
    if (datum.label) {
      entry->int_labels = {*datum.label};
    } else {
      entry->reject = "no label";
      return {};
    }
  }
  if (datum.has_floats && !datum.has_data) {
    entry->reject = "float_data instead of bytes";
    return {};
  }
  if (datum.encoded == wants_raw) {
    entry->reject = wants_raw ? "encoded, but the first sample is raw pixels"
                              : "raw pixels, but the first sample is encoded";
    return {};
  }
  if (wants_raw) {
    SPK_ASSIGN(const auto head, head_of(datum.data_offset, datum.data_bytes));
    entry->reject = check_raw_datum(datum, head, options_.max_pixels);
    if (!entry->reject.empty()) return {};
    entry->pixels = {static_cast<uint32_t>(datum.height), static_cast<uint32_t>(datum.width),
                     static_cast<uint32_t>(datum.channels)};
  }
  if (!wants_raw) {
    const auto told = [](int64_t size) {
      return size > 0 && size <= UINT32_MAX ? static_cast<uint32_t>(size) : 0;
    };
    entry->told = {told(datum.height), told(datum.width), told(datum.channels)};
  }
  entry->size_bytes = datum.data_bytes;
  entry->path = encode_pieces({Piece::of_file(0, datum.data_offset, datum.data_bytes)});
  return {};
}

Status Lister::add_picture(const LmdbEntry& value, SampleEntry* entry) {
  if (prefix_labels_) entry->int_labels = {classes_.index(class_of_key(value.key))};
  SPK_ASSIGN(const auto head, head_of(value.offset, value.bytes));
  if (picture_kind(head).empty()) {
    ++misfits_;
    if (other_key_.empty()) other_key_ = value.key;
    entry->reject = "not a picture";
    return {};
  }
  entry->size_bytes = value.bytes;
  entry->path = encode_pieces({Piece::of_file(0, value.offset, value.bytes)});
  return {};
}

Status Lister::add(const LmdbEntry& value) {
  if (value.is_database) {
    ++listing_.ignored["named database"];
    return {};
  }
  SampleEntry entry;
  entry.key = named_keys_ ? std::string(name_of_key(value.key)) : value.key;
  entry.ordinal = entries_++;
  entry.mtime_ns = mtime_ns_;
  SPK_TRY(listing_.form == "datum" ? add_datum(value, &entry) : add_picture(value, &entry));
  return sink_(std::move(entry));
}

Status Lister::finish() {
  if (misfits_ != 0 && misfits_ >= entries_ - misfits_) {
    const bool datum = listing_.form == "datum";
    return Status(Code::kNotThisFormat,
                  str_cat("of ", entries_, " values ", misfits_, " are ",
                          datum ? "no Datum" : "no pictures",
                          other_key_.empty()
                              ? ""
                              : str_cat(", that of key '", escape_bytes(other_key_), "' for one"),
                          ": an LMDB environment of another kind"))
        .at_path(file_.path())
        .with_hint("write the pictures to files and pack a list of them");
  }
  if (options_.salvage) listing_.decisions.emplace_back("salvage", "true");
  if (lost_ != 0) {
    listing_.warnings.add("part of the LMDB tree lost", str_cat(lost_, " pages or values"));
  }
  return {};
}

Result<Listing> Lister::run() {
  SPK_ASSIGN(const EntryInfo info, file_.info());
  mtime_ns_ = info.mtime_ns;
  named_keys_ = options_.features == "key=name";
  if (named_keys_) listing_.decisions.emplace_back("features", options_.features);
  SPK_TRY(choose_database());
  SPK_TRY(survey());
  SPK_TRY(choose_form());
  SPK_TRY(choose_label_rule());
  SPK_TRY(walk([this](const LmdbEntry& value) { return add(value); }));
  SPK_TRY(finish());
  return std::move(listing_);
}

// data.mdb of the environment at SRC; empty where there is none.
std::string data_file_of(const SourceLook& look) {
  if (look.is_folder) {
    if (!look.has_file(kDataName)) return {};
    return str_cat(look.path, look.path.ends_with('/') ? "" : "/", kDataName);
  }
  return look.files.size() == 1 ? look.files[0] : std::string();
}

Result<bool> recognises(const SourceLook& look) {
  const std::string path = data_file_of(look);
  if (path.empty()) return false;
  if (!look.is_folder) return LmdbTree::recognises(look.head);
  SPK_ASSIGN(const File file, File::open_read(path));
  std::vector<uint8_t> head(LmdbTree::kMetaHeadBytes);
  SPK_ASSIGN(const uint64_t got, file.read_some(0, head));
  head.resize(got);
  return LmdbTree::recognises(head);
}

}  // namespace

Result<std::unique_ptr<Source>> LmdbSource::open_file(const std::string& data_path) {
  SPK_ASSIGN(const File file, File::open_read(data_path));
  SPK_TRY(LmdbTree::open(file).status());
  SPK_ASSIGN(auto set, ContainerSet::open({data_path}, nullptr, false, LmdbTree::recognises));
  return std::unique_ptr<Source>(new LmdbSource(std::move(set)));
}

Result<Listing> LmdbSource::list(const PackOptions& options, const Sink& sink) {
  SPK_ASSIGN(const File file, File::open_read(set_->path(0)));
  SPK_ASSIGN(LmdbTree tree, LmdbTree::open(file));
  return Lister(options, file, tree, sink).run();
}

Result<std::unique_ptr<SampleHandle>> LmdbSource::open(const SampleEntry& entry) const {
  SPK_ASSIGN(auto handle, set_->open_sample(entry));
  if (entry.pixels == PixelDimensions()) return handle;
  return interleave_planes(std::move(handle), entry.pixels, entry.pixels.channels == 3);
}

SourceKind lmdb_kind() {
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool>) -> Result<std::unique_ptr<Source>> {
    const std::string path = data_file_of(look);
    if (path.empty()) {
      return Status(Code::kNotThisFormat, "no LMDB environment: it holds no data.mdb")
          .at_path(escape_bytes(look.path));
    }
    return LmdbSource::open_file(path);
  };
  return {"lmdb", "an LMDB environment", recognises, open};
}

}  // namespace spk
