// MosaicML MDS datasets: index.json and shards, plain or packed.
#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "sources/container_source.h"
#include "sources/label_values.h"
#include "sources/mds_index.h"
#include "sources/names.h"
#include "sources/source_features.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr uint64_t kMostTextBytes = 4096;  // of a key or label
constexpr uint64_t kWordBytes = 4;
constexpr std::string_view kImageNames[] = {"image", "jpg", "jpeg", "png", "img", "x"};
constexpr std::string_view kLabelNames[] = {"label", "class", "cls", "target", "y"};
constexpr std::string_view kKeyNames[] = {"key", "__key__", "filename", "file_name"};
constexpr size_t kNone = SIZE_MAX;

// A dataset, or one split of it.
struct MdsPart {
  std::string split;
  std::vector<MdsShard> shards;
};

double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits >> 15) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

class MdsListing {
 public:
  MdsListing(const PackOptions& options, const ContainerSet& files,
             const std::vector<MdsPart>& parts)
      : options_(options), files_(files), parts_(parts), labels_(options.labels) {}
  Result<Listing> run(const Source::Sink& sink);

 private:
  // Where a column goes.
  struct Use {
    enum class To { kNowhere, kBlob, kNumber } to = To::kNowhere;
    size_t index = 0;
  };
  struct Place {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };
  Status choose();
  size_t find_column(std::string_view field, std::span<const std::string_view> names) const;
  Status add_field(const std::string& field, size_t column);
  Status list_shard(const MdsShard& shard, uint32_t file, uint32_t split, const Source::Sink& sink);
  Result<std::vector<uint32_t>> read_offsets(ForwardReader& reader, const MdsShard& shard) const;
  Status bad(std::string what, uint64_t offset, uint32_t file) const;
  Result<std::vector<Place>> read_places(ForwardReader& reader, const MdsShard& shard,
                                         uint64_t begin, uint64_t end) const;
  Status take(ForwardReader& reader, const std::vector<Place>& places, uint32_t file,
              SampleEntry* entry);
  Status take_column(ForwardReader& reader, size_t column, const Place& place, SampleEntry* entry);
  std::string set_label(size_t column, ByteSpan bytes, SampleEntry* entry);
  static bool to_int(const MdsColumn& column, ByteSpan bytes, int64_t* value);
  static double to_float(const MdsColumn& column, ByteSpan bytes);

  const PackOptions& options_;
  const ContainerSet& files_;
  const std::vector<MdsPart>& parts_;
  std::vector<MdsColumn> columns_;
  size_t image_ = kNone, label_ = kNone, key_ = kNone;
  std::vector<Use> uses_;  // of each column
  SourceFeatures features_;
  LabelValues labels_;
  Listing listing_;
  uint64_t ordinal_ = 0;
};

size_t MdsListing::find_column(std::string_view field,
                               std::span<const std::string_view> names) const {
  const auto at = [this](std::string_view name) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].name == name) return i;
    }
    return kNone;
  };
  if (const std::string_view named = features_.source_of(field); !named.empty()) return at(named);
  for (const std::string_view name : names) {
    if (const size_t found = at(name); found != kNone) return found;
  }
  return kNone;
}

Status MdsListing::add_field(const std::string& field, size_t column) {
  const MdsColumn& from = columns_[column];
  if (!is_valid_utf8(field)) return unsupported("a column's name is not UTF-8");
  if (!from.is_number()) {
    uses_[column] = {Use::To::kBlob, listing_.blobs.size()};
    listing_.blobs.push_back({field, BlobContent::kAny});
    return {};
  }
  uses_[column] = {Use::To::kNumber, listing_.numbers.size()};
  const bool whole = from.type == MdsType::kInt || from.type == MdsType::kUnsigned;
  const bool single = from.type == MdsType::kFloat16 || from.type == MdsType::kFloat32;
  listing_.numbers.push_back({field,
                              whole    ? FieldKind::kInt64
                              : single ? FieldKind::kFloat32
                                       : FieldKind::kFloat64,
                              1});
  return {};
}

Status MdsListing::choose() {
  columns_ = parts_.front().shards.front().columns;
  uses_.resize(columns_.size());
  std::string names;
  for (const MdsColumn& column : columns_) {
    names += str_cat(names.empty() ? "" : ", ", escape_bytes(column.name), ":",
                     escape_bytes(column.encoding));
  }
  const auto refuse = [&](Status status) {
    return std::move(status)
        .at_path(escape_bytes(options_.source))
        .with_hint(str_cat("columns are: ", names));
  };
  for (const SourceFeature& one : features_.all()) {
    if (std::none_of(columns_.begin(), columns_.end(),
                     [&](const MdsColumn& column) { return column.name == one.from; })) {
      return refuse(invalid_argument(
          str_cat("--features: no column is called '", escape_bytes(one.from), "'")));
    }
  }
  image_ = find_column("image", kImageNames);
  for (size_t i = 0; i < columns_.size() && image_ == kNone; ++i) {
    if (columns_[i].encoding == "jpeg" || columns_[i].encoding == "png") image_ = i;
  }
  if (image_ == kNone || columns_[image_].is_number()) {
    return refuse(
        invalid_argument("no column is known to be the picture; --features image=NAME names it"));
  }
  if (columns_[image_].type == MdsType::kPil) {
    return refuse(
        unsupported("pictures are in the encoding 'pil', raw pixels of the Python library; "
                    "jpeg, png and bytes are read"));
  }
  if (options_.labels != LabelMode::kNone) label_ = find_column("label", kLabelNames);
  key_ = find_column("key", kKeyNames);
  if (key_ != kNone && columns_[key_].is_number()) key_ = kNone;
  uses_[image_] = {Use::To::kBlob, 0};
  const auto spoken_for = [this](size_t i) { return i == image_ || i == label_ || i == key_; };
  if (!features_.empty()) {
    listing_.decisions.emplace_back("features", escape_bytes(options_.features));
    for (const SourceFeature& one : features_.others()) {
      const std::string_view from[] = {one.from};
      const size_t column = find_column(one.field, from);
      if (column != kNone && !spoken_for(column)) SPK_TRY(add_field(one.field, column));
    }
    return {};
  }
  listing_.decisions.emplace_back("image", escape_bytes(columns_[image_].name));
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (spoken_for(i)) continue;
    const std::string& name = columns_[i].name;
    SPK_TRY(add_field(is_reserved_field(name) ? name + "_" : name, i));
  }
  return {};
}

Status MdsListing::bad(std::string what, uint64_t offset, uint32_t file) const {
  return damaged(std::move(what)).at_path(escape_bytes(files_.path(file))).at_offset(offset);
}

Result<std::vector<uint32_t>> MdsListing::read_offsets(ForwardReader& reader,
                                                       const MdsShard& shard) const {
  const auto wrong = [&reader](std::string what, uint64_t offset) {
    return damaged(std::move(what)).at_path(escape_bytes(reader.path())).at_offset(offset);
  };
  SPK_ASSIGN(const ByteSpan head, reader.at(0, kWordBytes));
  if (head.size() < kWordBytes) return wrong("the shard is cut", head.size());
  const uint64_t samples = load_le<uint32_t>(head.data());
  const uint64_t table_bytes = (samples + 1) * kWordBytes;
  if (table_bytes > shard.raw_bytes || table_bytes > options_.memory_bytes / 16) {
    return wrong(str_cat("a shard of ", samples, " samples in ", shard.raw_bytes, " bytes"), 0);
  }
  std::vector<uint32_t> offsets;
  for (uint64_t at = kWordBytes; offsets.size() <= samples;) {
    const uint64_t now = std::min<uint64_t>((samples + 1 - offsets.size()) * kWordBytes, 65536);
    SPK_ASSIGN(const ByteSpan bytes, reader.at(at, now));
    if (bytes.size() < now) return wrong("the shard is cut within its table", at + bytes.size());
    for (uint64_t i = 0; i < now; i += kWordBytes) {
      const auto offset = load_le<uint32_t>(bytes.data() + i);
      const uint64_t least = offsets.empty() ? kWordBytes + table_bytes : offsets.back();
      if (offset < least || offset > shard.raw_bytes) {
        return wrong("the table of samples is out of order", at + i);
      }
      offsets.push_back(offset);
    }
    at += now;
  }
  return offsets;
}

// The sizes of columns that differ stand first, then all columns one behind the other.
Result<std::vector<MdsListing::Place>> MdsListing::read_places(ForwardReader& reader,
                                                               const MdsShard& shard,
                                                               uint64_t begin, uint64_t end) const {
  const auto variable = static_cast<uint64_t>(
      std::count_if(columns_.begin(), columns_.end(), [](const MdsColumn& c) { return !c.bytes; }));
  const auto wrong = [&](const char* what) {
    return damaged(what).at_path(escape_bytes(reader.path())).at_offset(begin);
  };
  const uint64_t head_bytes = variable * kWordBytes;
  if (end > shard.raw_bytes || end - begin < head_bytes) return wrong("a sample is too short");
  SPK_ASSIGN(const ByteSpan head, reader.at(begin, head_bytes));
  if (head.size() < head_bytes) return wrong("the shard is cut within a sample");
  std::vector<Place> places;
  uint64_t at = begin + head_bytes;
  size_t word = 0;
  for (const MdsColumn& column : columns_) {
    const uint64_t bytes =
        column.bytes ? *column.bytes : load_le<uint32_t>(head.data() + kWordBytes * word++);
    if (bytes > end - at) return wrong("a column reaches beyond its sample");
    places.push_back({at, bytes});
    at += bytes;
  }
  return places;
}

bool MdsListing::to_int(const MdsColumn& column, ByteSpan bytes, int64_t* value) {
  uint64_t bits = 0;
  for (size_t i = bytes.size(); i-- != 0;) bits = bits << 8 | bytes[i];
  if (column.type == MdsType::kUnsigned) {
    *value = static_cast<int64_t>(bits);
    return *value >= 0;
  }
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
  *value = static_cast<int64_t>(bits << unused) >> unused;
  return true;
}

double MdsListing::to_float(const MdsColumn& column, ByteSpan bytes) {
  if (column.type == MdsType::kFloat16) return half_to_double(load_le<uint16_t>(bytes.data()));
  if (column.type == MdsType::kFloat32) {
    return std::bit_cast<float>(load_le<uint32_t>(bytes.data()));
  }
  return std::bit_cast<double>(load_le<uint64_t>(bytes.data()));
}

std::string MdsListing::set_label(size_t column, ByteSpan bytes, SampleEntry* entry) {
  const MdsColumn& from = columns_[column];
  if (!from.is_number()) return labels_.set_text(as_text(bytes), entry);
  int64_t whole = 0;
  if (from.type != MdsType::kInt && from.type != MdsType::kUnsigned) {
    return labels_.set_floats({to_float(from, bytes)}, entry);
  }
  if (!to_int(from, bytes, &whole)) return "the label does not fit into 64 bits";
  return labels_.set_ints({whole}, entry);
}

Status MdsListing::take_column(ForwardReader& reader, size_t column, const Place& place,
                               SampleEntry* entry) {
  const MdsColumn& from = columns_[column];
  const Use& use = uses_[column];
  if (column != label_ && column != key_ && use.to != Use::To::kNumber) return {};
  if (place.bytes > kMostTextBytes) {
    if (column == label_) entry->reject = str_cat("a label of ", place.bytes, " bytes");
    return {};
  }
  SPK_ASSIGN(const ByteSpan bytes, reader.at(place.offset, place.bytes));
  if (bytes.size() < place.bytes) {
    return damaged("the shard is cut within a sample")
        .at_path(escape_bytes(reader.path()))
        .at_offset(place.offset);
  }
  if (column == key_ && !bytes.empty()) entry->key = as_text(bytes);
  if (column == label_ && entry->reject.empty()) entry->reject = set_label(column, bytes, entry);
  if (use.to != Use::To::kNumber) return {};
  uint64_t bits = 0;
  int64_t whole = 0;
  switch (listing_.numbers[use.index].kind) {
    case FieldKind::kInt64:
      if (!to_int(from, bytes, &whole)) {
        entry->reject = str_cat("column ", escape_bytes(from.name), " does not fit into int64");
      }
      bits = static_cast<uint64_t>(whole);
      break;
    case FieldKind::kFloat32:
      bits = std::bit_cast<uint32_t>(static_cast<float>(to_float(from, bytes)));
      break;
    default: bits = std::bit_cast<uint64_t>(to_float(from, bytes)); break;
  }
  entry->numbers[use.index] = NumericValues{bits};
  return {};
}

Status MdsListing::take(ForwardReader& reader, const std::vector<Place>& places, uint32_t file,
                        SampleEntry* entry) {
  entry->numbers.resize(listing_.numbers.size());
  std::vector<Piece> pieces(listing_.blobs.size());
  for (size_t column = 0; column < columns_.size(); ++column) {
    SPK_TRY(take_column(reader, column, places[column], entry));
    if (uses_[column].to != Use::To::kBlob) continue;
    pieces[uses_[column].index] = Piece::of_file(file, places[column].offset, places[column].bytes);
  }
  entry->mtime_ns = files_.entry_mtime_ns(file);
  entry->size_bytes = 0;
  for (const Piece& piece : pieces) {
    if (pieces.size() > 1) entry->blob_bytes.push_back(piece.bytes);
    entry->size_bytes += piece.bytes;
  }
  entry->path = encode_pieces(pieces);
  return {};
}

Status MdsListing::list_shard(const MdsShard& shard, uint32_t file, uint32_t split,
                              const Source::Sink& sink) {
  if (shard.packing == Packing::kNone && files_.size_bytes(file) != shard.raw_bytes) {
    return bad(str_cat("the shard has ", files_.size_bytes(file), " bytes, the index says ",
                       shard.raw_bytes),
               std::min(files_.size_bytes(file), shard.raw_bytes), file);
  }
  SPK_ASSIGN(const auto reader, files_.read(file, kHeaderWindowBytes, false));
  SPK_ASSIGN(const std::vector<uint32_t> offsets, read_offsets(*reader, shard));
  if (offsets.size() - 1 != shard.samples) {
    listing_.warnings.add("an index disagrees with its shard, which was taken as it is",
                          str_cat(escape_bytes(files_.path(file)), " has ", offsets.size() - 1,
                                  " samples, the index says ", shard.samples));
  }
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    SampleEntry entry;
    entry.ordinal = ordinal_++;
    entry.split = split;
    entry.key = str_cat(entry.ordinal);
    SPK_ASSIGN(const std::vector<Place> places,
               read_places(*reader, shard, offsets[i], offsets[i + 1]));
    SPK_TRY(take(*reader, places, file, &entry));
    SPK_TRY(sink(std::move(entry)));
  }
  SPK_ASSIGN(const ByteSpan behind, reader->at(shard.raw_bytes, 1));
  SPK_ASSIGN(const uint64_t end, reader->end());
  if (!behind.empty() || end != shard.raw_bytes) {
    return bad("the shard has not the bytes that the index says", shard.raw_bytes, file);
  }
  return reader->finish();
}

Result<Listing> MdsListing::run(const Source::Sink& sink) {
  listing_.source_kind = "mds";
  listing_.ordered = true;
  SPK_ASSIGN(features_, SourceFeatures::parse(options_.features));
  SPK_TRY(choose());
  uint32_t file = 0, split = 0;
  for (const MdsPart& part : parts_) {
    const bool own_split = split == 0 || options_.splits == SplitMode::kAuto;
    if (own_split) listing_.splits.push_back(options_.splits == SplitMode::kAuto ? part.split : "");
    for (const MdsShard& shard : part.shards) {
      if (shard.columns != columns_) {
        return bad("its columns are not those of the first shard", 0, file);
      }
      SPK_TRY(list_shard(shard, file++, own_split ? split : 0, sink));
    }
    ++split;
  }
  labels_.finish(&listing_);
  if (label_ == kNone && options_.labels != LabelMode::kNone) {
    listing_.warnings.add("no labels", "--features label=NAME names the column that holds them");
  }
  return std::move(listing_);
}

class MdsSource : public ContainerSource {
 public:
  MdsSource(std::unique_ptr<ContainerSet> files, std::vector<MdsPart> parts)
      : ContainerSource(std::move(files)), parts_(std::move(parts)) {}
  Result<Listing> list(const PackOptions& options, const Sink& sink) override {
    return MdsListing(options, files(), parts_).run(sink);
  }

 private:
  std::vector<MdsPart> parts_;
};

// The folder itself, or those in it whose names are splits'.
Result<std::vector<std::string>> split_folders(const SourceLook& look) {
  std::vector<std::string> found;
  if (!look.has_folders) return found;
  SPK_ASSIGN(const Directory folder, Directory::open(look.path));
  SPK_ASSIGN(const auto entries, folder.list());
  for (const DirectoryEntry& entry : entries) {
    if (is_split_name(entry.name) && has_mds_index(look.path + "/" + entry.name)) {
      found.push_back(entry.name);
    }
  }
  return found;
}

}  // namespace

SourceKind mds_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    if (!look.is_folder) return false;
    if (has_mds_index(look.path)) return true;
    SPK_ASSIGN(const auto splits, split_folders(look));
    return !splits.empty();
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    std::vector<MdsPart> parts;
    SPK_ASSIGN(std::vector<std::string> splits, split_folders(look));
    if (look.is_folder && has_mds_index(look.path)) splits = {""};
    if (splits.empty()) {
      return Status(Code::kNotThisFormat, "no folder with the index.json of an MDS dataset")
          .at_path(escape_bytes(look.path));
    }
    std::vector<std::string> paths;
    std::vector<Packing> packings;
    for (const std::string& split : splits) {
      const std::string folder = split.empty() ? look.path : look.path + "/" + split;
      SPK_ASSIGN(std::vector<MdsShard> shards, read_mds_index(folder));
      for (const MdsShard& shard : shards) {
        paths.push_back(folder + "/" + shard.name);
        packings.push_back(shard.packing);
      }
      parts.push_back({split, std::move(shards)});
    }
    SPK_ASSIGN(auto files, ContainerSet::open_as(std::move(paths), packings, std::move(spool)));
    return std::unique_ptr<Source>(std::make_unique<MdsSource>(std::move(files), std::move(parts)));
  };
  return {"mds", "a MosaicML MDS dataset", recognises, open};
}

}  // namespace spk
