// FFCV .beton files as a source: pictures stored as JPEG or as pixels, and their other fields.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "base/varint.h"
#include "pipeline/external_sort.h"
#include "sources/beton_file.h"
#include "sources/container_source.h"
#include "sources/label_values.h"
#include "sources/shard_names.h"
#include "sources/source_features.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kMostAllocations = 4096;  // of one sample
constexpr std::string_view kLabelNames[] = {"label", "class", "target", "y"};
constexpr uint32_t kChannels = 3;

// The bytes of each allocation of one sample after the other.
class Allocations {
 public:
  static Result<std::unique_ptr<Allocations>> open(const ContainerSet& files, uint32_t file,
                                                   const BetonHeader& header,
                                                   const PackOptions& options) {
    SPK_ASSIGN(const std::string spill, files.sorting_place());
    std::unique_ptr<Allocations> all(new Allocations(spill, options.memory_bytes / 16));
    SPK_ASSIGN(const auto reader, files.read(file, kDataWindowBytes, false));
    for (uint64_t row = 0; row < header.table_rows; ++row) {
      const uint64_t at = header.table_offset + row * kBetonAllocationBytes;
      SPK_ASSIGN(const ByteSpan bytes, reader->at(at, kBetonAllocationBytes));
      if (bytes.size() < kBetonAllocationBytes) return damaged("the table of allocations is cut");
      std::string key, payload;
      append_be64(key, load_le<uint64_t>(bytes.data()));
      append_be64(key, load_le<uint64_t>(bytes.data() + 8));
      append_be64(payload, load_le<uint64_t>(bytes.data() + 16));
      SPK_TRY(all->sorter_.add(as_bytes(key), as_bytes(payload)));
    }
    SPK_TRY(all->sorter_.finish());
    SPK_ASSIGN(all->stream_, all->sorter_.read());
    return all;
  }

  // Those of sample NUMBER, which is never less than before.
  Status move_to(uint64_t number) {
    now_.clear();
    for (;;) {
      if (!has_next_) {
        ByteSpan key, payload;
        SPK_ASSIGN(const bool more, stream_->next(&key, &payload));
        if (!more) return {};
        sample_ = load_be<uint64_t>(key.data());
        next_ = {load_be<uint64_t>(key.data() + 8), load_be<uint64_t>(payload.data())};
        has_next_ = true;
      }
      if (sample_ > number) return {};
      if (sample_ == number && now_.size() < kMostAllocations) now_.push_back(next_);
      has_next_ = false;
    }
  }
  // kUnknownSize where nothing was allocated there.
  uint64_t bytes_at(uint64_t offset) const {
    for (const auto& [place, bytes] : now_) {
      if (place == offset) return bytes;
    }
    return kUnknownSize;
  }

 private:
  Allocations(std::string spill, uint64_t memory_bytes) : sorter_(std::move(spill), memory_bytes) {}
  using Allocation = std::pair<uint64_t, uint64_t>;
  ExternalSorter sorter_;
  std::unique_ptr<ExternalSorter::Stream> stream_;
  std::vector<Allocation> now_;
  Allocation next_;
  uint64_t sample_ = 0;
  bool has_next_ = false;
};

class BetonListing {
 public:
  BetonListing(const PackOptions& options, const ContainerSet& files)
      : options_(options), files_(files), labels_(options.labels) {}
  Result<Listing> run(const Source::Sink& sink);

 private:
  struct Use {
    enum class To { kNowhere, kBlob, kNumber } to = To::kNowhere;
    size_t index = 0;
  };
  Status read_headers();
  Status choose();
  Status add_field(const std::string& name, size_t field);
  Status count_modes();
  Status list_file(uint32_t file, uint32_t split, const Source::Sink& sink);
  Status take(uint32_t file, ByteSpan row, const Allocations& allocations, SampleEntry* entry);
  std::string take_blob(uint32_t file, size_t field, const uint8_t* at,
                        const Allocations& allocations, Piece* piece, SampleEntry* entry) const;
  size_t find(std::string_view name) const;

  const PackOptions& options_;
  const ContainerSet& files_;
  std::vector<BetonHeader> headers_;
  std::vector<BetonField> fields_;
  size_t image_ = kNone, label_ = kNone;
  bool raw_ = false;
  std::vector<Use> uses_;
  SourceFeatures features_;
  LabelValues labels_;
  Listing listing_;
  uint64_t ordinal_ = 0;
};

Status BetonListing::read_headers() {
  for (uint32_t file = 0; file < files_.count(); ++file) {
    SPK_ASSIGN(const File opened, File::open_read(files_.path(file)));
    SPK_ASSIGN(BetonHeader header, read_beton_header(opened));
    const auto same = [](const BetonField& a, const BetonField& b) {
      return a.type == b.type && a.name == b.name;
    };
    if (file == 0) fields_ = header.fields;
    if (!std::equal(fields_.begin(), fields_.end(), header.fields.begin(), header.fields.end(),
                    same)) {
      return invalid_argument("its fields are not those of the first file")
          .at_path(escape_bytes(files_.path(file)));
    }
    headers_.push_back(std::move(header));
  }
  return {};
}

size_t BetonListing::find(std::string_view name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return i;
  }
  return kNone;
}

Status BetonListing::add_field(const std::string& name, size_t field) {
  const BetonType type = fields_[field].type;
  if (!is_valid_utf8(name) || name.empty()) return unsupported("a field's name is not UTF-8");
  if (type != BetonType::kInt && type != BetonType::kFloat) {
    uses_[field] = {Use::To::kBlob, listing_.blobs.size()};
    listing_.blobs.push_back({name, BlobContent::kAny});
    return {};
  }
  uses_[field] = {Use::To::kNumber, listing_.numbers.size()};
  listing_.numbers.push_back(
      {name, type == BetonType::kInt ? FieldKind::kInt64 : FieldKind::kFloat64, 1});
  return {};
}

Status BetonListing::choose() {
  uses_.resize(fields_.size());
  std::string names;
  for (const BetonField& field : fields_) {
    names += str_cat(names.empty() ? "" : ", ", escape_bytes(field.name));
  }
  const auto refuse = [&](std::string what) {
    return invalid_argument(std::move(what))
        .at_path(escape_bytes(options_.source))
        .with_hint(str_cat("fields are: ", names));
  };
  for (const SourceFeature& one : features_.all()) {
    if (one.field == "key") return refuse("--features: samples of a .beton have no key");
    if (find(one.from) == kNone) {
      return refuse(str_cat("--features: no field is called '", escape_bytes(one.from), "'"));
    }
  }
  image_ =
      features_.source_of("image").empty() ? find("image") : find(features_.source_of("image"));
  for (size_t i = 0; i < fields_.size() && image_ == kNone; ++i) {
    if (fields_[i].type == BetonType::kImage) image_ = i;
  }
  if (image_ == kNone || fields_[image_].type != BetonType::kImage) {
    return refuse("no field holds pictures; --features image=NAME names it");
  }
  const auto is_number = [this](size_t i) {
    return fields_[i].type == BetonType::kInt || fields_[i].type == BetonType::kFloat;
  };
  if (options_.labels != LabelMode::kNone) {
    if (!features_.source_of("label").empty()) {
      label_ = find(features_.source_of("label"));
      if (!is_number(label_)) return refuse("--features: the label is no number");
    }
    for (const std::string_view name : kLabelNames) {
      const size_t found = label_ == kNone ? find(name) : kNone;
      if (found != kNone && is_number(found)) label_ = found;
    }
  }
  uses_[image_] = {Use::To::kBlob, 0};
  if (!features_.empty()) {
    listing_.decisions.emplace_back("features", escape_bytes(options_.features));
    for (const SourceFeature& one : features_.others()) {
      const size_t field = find(one.from);
      if (field != image_ && field != label_) SPK_TRY(add_field(one.field, field));
    }
    return {};
  }
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (i == image_ || i == label_) continue;
    const std::string& name = fields_[i].name;
    SPK_TRY(add_field(is_reserved_field(name) ? name + "_" : name, i));
  }
  return {};
}

// Whether pictures are all JPEGs or all pixels.
Status BetonListing::count_modes() {
  uint64_t modes[2] = {};
  for (uint32_t file = 0; file < files_.count(); ++file) {
    const BetonHeader& header = headers_[file];
    SPK_ASSIGN(const auto reader, files_.read(file, kDataWindowBytes, false));
    for (uint64_t i = 0; i < header.samples; ++i) {
      const uint64_t at = header.rows_offset + i * header.row_bytes + header.fields[image_].offset;
      SPK_ASSIGN(const ByteSpan mode, reader->at(at, 1));
      if (mode.size() == 1 && mode[0] <= BetonImage::kRaw) ++modes[mode[0]];
    }
  }
  raw_ = modes[BetonImage::kRaw] != 0;
  if (raw_ && modes[BetonImage::kJpeg] != 0) {
    return unsupported(str_cat(modes[BetonImage::kJpeg], " pictures are JPEGs and ",
                               modes[BetonImage::kRaw],
                               " are pixels (write_mode smart or proportion)"))
        .at_path(escape_bytes(options_.source))
        .with_hint("write the file anew with write_mode jpg, or pack what it was made from");
  }
  if (raw_) {
    listing_.blobs[0].content = BlobContent::kPixels;
    listing_.decisions.emplace_back("pixels", "uint8 hwc rgb");
  }
  return {};
}

std::string BetonListing::take_blob(uint32_t file, size_t field, const uint8_t* at,
                                    const Allocations& allocations, Piece* piece,
                                    SampleEntry* entry) const {
  uint64_t offset = 0, bytes = 0;
  const BetonType type = fields_[field].type;
  if (type == BetonType::kBytes || type == BetonType::kJson) {
    offset = load_le<uint64_t>(at);
    bytes = load_le<uint64_t>(at + 8);
  } else if (type == BetonType::kImage) {
    const BetonImage image = read_beton_image(at);
    offset = image.offset;
    bytes = allocations.bytes_at(offset);
    if (field == image_) {
      if (image.mode > BetonImage::kRaw) return str_cat("a picture of mode ", unsigned{image.mode});
      if (raw_) {
        entry->pixels = {image.height, image.width, kChannels};
        if (bytes != kUnknownSize && bytes != uint64_t{image.height} * image.width * kChannels) {
          return str_cat("pixels of ", bytes, " bytes for ", image.width, " x ", image.height);
        }
        if (bytes == 0) return "a picture without pixels";
      }
    }
  } else {
    offset = load_le<uint64_t>(at);
    bytes = allocations.bytes_at(offset);
  }
  const std::string shown = escape_bytes(fields_[field].name);
  if (bytes == kUnknownSize) return str_cat("the size of field ", shown, " is not in the table");
  if (!range_fits(offset, bytes, headers_[file].table_offset)) {
    return str_cat("field ", shown, " does not fit into the file");
  }
  *piece = Piece::of_file(file, offset, bytes);
  return {};
}

Status BetonListing::take(uint32_t file, ByteSpan row, const Allocations& allocations,
                          SampleEntry* entry) {
  entry->key = str_cat(entry->ordinal);
  entry->mtime_ns = files_.entry_mtime_ns(file);
  entry->numbers.resize(listing_.numbers.size());
  std::vector<Piece> pieces(listing_.blobs.size());
  for (size_t i = 0; i < fields_.size() && entry->reject.empty(); ++i) {
    const uint8_t* const at = row.data() + fields_[i].offset;
    if (i == label_) {
      const auto bits = load_le<uint64_t>(at);
      entry->reject = fields_[i].type == BetonType::kInt
                          ? labels_.set_ints({static_cast<int64_t>(bits)}, entry)
                          : labels_.set_floats({std::bit_cast<double>(bits)}, entry);
    }
    if (uses_[i].to == Use::To::kNumber) {
      entry->numbers[uses_[i].index] = NumericValues{load_le<uint64_t>(at)};
    } else if (uses_[i].to == Use::To::kBlob) {
      entry->reject = take_blob(file, i, at, allocations, &pieces[uses_[i].index], entry);
    }
  }
  if (!entry->reject.empty()) return {};
  entry->size_bytes = 0;
  for (const Piece& piece : pieces) {
    if (pieces.size() > 1) entry->blob_bytes.push_back(piece.bytes);
    entry->size_bytes += piece.bytes;
  }
  entry->path = encode_pieces(pieces);
  return {};
}

Status BetonListing::list_file(uint32_t file, uint32_t split, const Source::Sink& sink) {
  const BetonHeader& header = headers_[file];
  SPK_ASSIGN(const auto allocations, Allocations::open(files_, file, header, options_));
  SPK_ASSIGN(const auto reader, files_.read(file, kDataWindowBytes, false));
  for (uint64_t i = 0; i < header.samples; ++i) {
    SPK_TRY(allocations->move_to(i));
    SPK_ASSIGN(const ByteSpan row,
               reader->at(header.rows_offset + i * header.row_bytes, header.row_bytes));
    if (row.size() < header.row_bytes) return damaged("the file is cut within its rows");
    SampleEntry entry;
    entry.ordinal = ordinal_++;
    entry.split = split;
    SPK_TRY(take(file, row, *allocations, &entry));
    SPK_TRY(sink(std::move(entry)));
  }
  return {};
}

Result<Listing> BetonListing::run(const Source::Sink& sink) {
  listing_.source_kind = "beton";
  listing_.ordered = true;
  SPK_ASSIGN(features_, SourceFeatures::parse(options_.features));
  SPK_TRY(read_headers());
  SPK_TRY(choose());
  SPK_TRY(count_modes());
  std::vector<std::string> paths;
  for (uint32_t file = 0; file < files_.count(); ++file) paths.push_back(files_.path(file));
  const ShardSplits splits = splits_of_files(paths, options_.splits);
  listing_.splits = splits.names;
  for (uint32_t file = 0; file < files_.count(); ++file) {
    SPK_TRY(list_file(file, splits.of_file[file], sink));
  }
  labels_.finish(&listing_);
  if (label_ == kNone && options_.labels != LabelMode::kNone) {
    listing_.warnings.add("no labels", "--features label=NAME names the field that holds them");
  }
  return std::move(listing_);
}

class BetonSource : public ContainerSource {
 public:
  explicit BetonSource(std::unique_ptr<ContainerSet> files) : ContainerSource(std::move(files)) {}
  Result<Listing> list(const PackOptions& options, const Sink& sink) override {
    return BetonListing(options, files()).run(sink);
  }
};

}  // namespace

SourceKind beton_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    return holds_container(look, false, is_beton);
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    SPK_ASSIGN(FoundContainers found, find_containers(look.files, look.is_folder, false, false,
                                                      is_beton, "a .beton file of version 2"));
    if (found.paths.empty()) {
      return Status(Code::kNotThisFormat, "a folder without .beton files")
          .at_path(escape_bytes(look.path));
    }
    const std::vector<Packing> packings(found.paths.size(), Packing::kNone);
    SPK_ASSIGN(auto files,
               ContainerSet::open_as(std::move(found.paths), packings, std::move(spool)));
    return std::unique_ptr<Source>(std::make_unique<BetonSource>(std::move(files)));
  };
  return {"beton", "an FFCV .beton file", recognises, open};
}

}  // namespace spk
