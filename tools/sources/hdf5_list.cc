#include "sources/hdf5_list.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "sources/hdf5.h"
#include "sources/hdf5_choose.h"
#include "sources/hdf5_heap.h"
#include "sources/hdf5_labels.h"
#include "sources/numbered_key.h"
#include "sources/picture_bytes.h"

namespace spk {

namespace {

constexpr uint64_t kBytesADataset = 1024;                 // that a description takes at most, or so
constexpr uint64_t kMostConverted = uint64_t{256} << 20;  // bytes of a picture that is converted
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

// The spool's file while it is filled. Offsets are the same whether it is there already or not.
class Spooled {
 public:
  Spooled(Spool* spool, std::string name) : spool_(spool), name_(std::move(name)) {}
  Status append(ByteSpan bytes) {
    bytes_ += bytes.size();
    if (spool_ == nullptr) return {};
    if (!asked_) {
      asked_ = true;
      SPK_ASSIGN(const bool is_there, spool_->holds(name_));
      if (!is_there) {
        SPK_ASSIGN(Spool::Writer writer, spool_->create(name_));
        writer_.emplace(std::move(writer));
      }
    }
    return writer_ ? writer_->append(bytes) : Status();
  }
  uint64_t bytes() const noexcept { return bytes_; }
  // Nothing need be read that only fills it.
  bool is_needed() const noexcept { return spool_ != nullptr && (!asked_ || writer_); }
  void skip(uint64_t bytes) { bytes_ += bytes; }
  Status finish() { return writer_ ? writer_->finish() : Status(); }

 private:
  Spool* spool_;
  std::string name_;
  bool asked_ = false;
  std::optional<Spool::Writer> writer_;
  uint64_t bytes_ = 0;
};

class Hdf5Lister {
 public:
  Hdf5Lister(const PackOptions& options, const std::string& path, Spool* spool,
             const std::string& spooled_name, const Source::Sink& sink)
      : options_(options), path_(path), spooled_(spool, spooled_name), sink_(sink) {}

  Result<Listing> run();

 private:
  // A dataset and what reads it.
  struct Opened {
    ArrayStorage storage;
    std::optional<ArrayReader> reader;
  };
  Status open(const Hdf5Dataset& dataset, Opened* opened);
  Status list_dense();
  Status list_rows();
  Status list_flat();
  Status list_many();
  Status list_one(const Hdf5Dataset& dataset, bool as_files, SampleEntry* entry);
  Status check_first(const Hdf5Dataset& images, ArrayReader& reader, uint64_t row_bytes) const;
  Status set_pixels(const Hdf5Dataset& images, const ArrayLayout& layout, Piece piece,
                    SampleEntry* entry) const;
  void set_file(Piece piece, SampleEntry* entry) const;
  Status copy_rows(ArrayReader& reader, uint64_t first, uint64_t rows, uint64_t row_bytes,
                   Piece* piece);
  Status finish_entry(uint64_t number, SampleEntry&& entry);
  Status at_file(Status status) const { return std::move(status).at_path(escape_bytes(path_)); }

  const PackOptions& options_;
  std::string path_;
  Spooled spooled_;
  const Source::Sink& sink_;
  std::unique_ptr<Hdf5File> library_;
  File file_;
  EntryInfo info_;
  Hdf5Choice choice_;
  Listing listing_;
  std::optional<Hdf5Labels> labels_;
  std::unique_ptr<Hdf5Texts> keys_;
};

Status Hdf5Lister::open(const Hdf5Dataset& dataset, Opened* opened) {
  SPK_ASSIGN(opened->storage, library_->storage_of(dataset));
  const uint64_t memory = options_.memory_bytes / 8;
  Status status = check_storage(opened->storage, info_.size_bytes, memory);
  if (!status.ok()) {
    return std::move(status).at_path(str_cat(escape_bytes(path_), ":", escape_bytes(dataset.path)));
  }
  opened->reader.emplace(file_, opened->storage, memory);
  return {};
}

// The rest of an entry that has its place.
Status Hdf5Lister::finish_entry(uint64_t number, SampleEntry&& entry) {
  entry.ordinal = number;
  if (entry.key.empty()) entry.key = numbered_key(number);
  if (keys_) {
    SPK_ASSIGN(std::string key, keys_->next());
    if (!key.empty()) entry.key = std::move(key);
  }
  if (labels_) SPK_TRY(labels_->next(&entry));
  return sink_(std::move(entry));
}

void Hdf5Lister::set_file(Piece piece, SampleEntry* entry) const {
  entry->size_bytes = piece.bytes;
  entry->mtime_ns = piece.file == 0 ? info_.mtime_ns : kUnknownMtime;
  Hdf5Place place;
  place.pieces = {std::move(piece)};
  entry->path = encode_place(place);
}

Status Hdf5Lister::set_pixels(const Hdf5Dataset& images, const ArrayLayout& layout, Piece piece,
                              SampleEntry* entry) const {
  entry->size_bytes = layout.elements();
  entry->pixels = layout.pixels;
  entry->mtime_ns = piece.file == 0 ? info_.mtime_ns : kUnknownMtime;
  Hdf5Place place;
  place.element = images.element;
  place.order = layout.order;
  place.scale = options_.array_scale;
  place.pieces = {std::move(piece)};
  entry->path = encode_place(place);
  return {};
}

// Rows of the file into the spool.
Status Hdf5Lister::copy_rows(ArrayReader& reader, uint64_t first, uint64_t rows, uint64_t row_bytes,
                             Piece* piece) {
  *piece = Piece::of_file(1, spooled_.bytes(), rows * row_bytes);
  if (!spooled_.is_needed()) {
    spooled_.skip(rows * row_bytes);
    return {};
  }
  const uint64_t at_once = std::max<uint64_t>(kCopyBytes / std::max<uint64_t>(row_bytes, 1), 1);
  std::vector<uint8_t> bytes;
  for (uint64_t done = 0; done < rows;) {
    const uint64_t now = std::min(at_once, rows - done);
    bytes.resize(now * row_bytes);
    SPK_TRY(reader.read(first + done, bytes));
    SPK_TRY(spooled_.append(bytes));
    done += now;
  }
  return {};
}

// Whether the first picture is what --array-scale says.
Status Hdf5Lister::check_first(const Hdf5Dataset& images, ArrayReader& reader,
                               uint64_t row_bytes) const {
  if (options_.array_scale == ArrayScale::kUnsaid || choice_.count == 0) return {};
  std::vector<uint8_t> raw(row_bytes);
  SPK_TRY(reader.read(0, raw));
  if (fits_scale(raw, images.element, options_.array_scale)) return {};
  return at_file(invalid_argument(str_cat("the first picture has values that --array-scale ",
                                          scale_name(options_.array_scale), " does not allow"))
                     .with_hint("unit is 0 to 1, byte 0 to 255, word 0 to 65535"));
}

Status Hdf5Lister::list_dense() {
  const Hdf5Dataset& images = choice_.images;
  const std::vector<uint64_t> sizes(images.sizes.begin() + 1, images.sizes.end());
  auto layout = resolve_layout(sizes, options_.array_layout);
  if (!layout.ok()) return at_file(std::move(layout).status());
  Status scale = check_scale(images.element, options_.array_scale);
  if (!scale.ok()) return at_file(std::move(scale));
  Opened opened;
  SPK_TRY(open(images, &opened));
  const uint64_t row_bytes = opened.storage.row_bytes();
  const uint64_t area = uint64_t{layout->pixels.height} * layout->pixels.width;
  const bool as_it_is =
      images.element.is_byte() && layout->order.starts_with("h") && layout->order.find('w') == 1;
  if (area > options_.max_pixels || (!as_it_is && row_bytes > kMostConverted)) {
    return at_file(invalid_argument(str_cat("pictures of ", layout->pixels.height, " x ",
                                            layout->pixels.width, " x ", layout->pixels.channels))
                       .with_hint("--max-pixels allows more"));
  }
  SPK_TRY(check_first(images, *opened.reader, row_bytes));
  listing_.blobs = {{"image", BlobContent::kPixels}};
  listing_.decisions.emplace_back("array_layout", str_cat("n", layout->order));
  if (options_.array_scale != ArrayScale::kUnsaid) {
    listing_.decisions.emplace_back("array_scale", scale_name(options_.array_scale));
  }
  listing_.decisions.emplace_back("pixels", "uint8 hwc");
  for (uint64_t row = 0; row < choice_.count; ++row) {
    Piece piece = Piece::of_file(0, 0, row_bytes);
    SPK_ASSIGN(const bool lies_there, opened.reader->place_of(row, 1, &piece.offset));
    if (!lies_there) SPK_TRY(copy_rows(*opened.reader, row, 1, row_bytes, &piece));
    SampleEntry entry;
    SPK_TRY(set_pixels(images, *layout, std::move(piece), &entry));
    SPK_TRY(finish_entry(row, std::move(entry)));
  }
  return {};
}

Status Hdf5Lister::list_rows() {
  Opened opened;
  SPK_TRY(open(choice_.images, &opened));
  SPK_ASSIGN(Hdf5Heap heap, Hdf5Heap::open(file_));
  for (uint64_t row = 0; row < choice_.count; ++row) {
    uint8_t place[kHeapPlaceBytes];
    SPK_TRY(opened.reader->read(row, place));
    SPK_ASSIGN(const Hdf5Heap::Row found, heap.find(place));
    SampleEntry entry;
    set_file(Piece::of_file(0, found.offset, found.bytes), &entry);
    SPK_TRY(finish_entry(row, std::move(entry)));
  }
  return {};
}

Status Hdf5Lister::list_flat() {
  Opened bytes, borders;
  SPK_TRY(open(choice_.images, &bytes));
  SPK_TRY(open(*choice_.offsets, &borders));
  Hdf5Numbers offsets(*choice_.offsets, &*borders.reader);
  const uint64_t total = bytes.storage.rows();
  uint64_t begin = 0;
  for (uint64_t row = 0; row <= choice_.count && choice_.offsets->sizes[0] != 0; ++row) {
    SPK_ASSIGN(const std::vector<int64_t>* border, offsets.next_ints());
    const auto end = static_cast<uint64_t>((*border)[0]);
    if ((*border)[0] < 0 || end > total || (row != 0 && end < begin)) {
      return at_file(
          damaged(str_cat("offset ", row, " of '", escape_bytes(choice_.offsets->path), "' is ",
                          (*border)[0], ", behind one of ", begin, " and of ", total, " bytes")));
    }
    if (row != 0) {
      Piece piece = Piece::of_file(0, 0, end - begin);
      if (end != begin) {
        SPK_ASSIGN(const bool lies_there,
                   bytes.reader->place_of(begin, end - begin, &piece.offset));
        if (!lies_there) SPK_TRY(copy_rows(*bytes.reader, begin, end - begin, 1, &piece));
      }
      SampleEntry entry;
      set_file(std::move(piece), &entry);
      SPK_TRY(finish_entry(row - 1, std::move(entry)));
    }
    begin = end;
  }
  return {};
}

// A dataset of its own for a picture: its file, or its pixels.
Status Hdf5Lister::list_one(const Hdf5Dataset& dataset, bool as_files, SampleEntry* entry) {
  const bool is_file = dataset.kind == Hdf5Dataset::Kind::kOpaque || dataset.sizes.size() == 1;
  entry->key = dataset.path;
  if (is_file != as_files) {
    entry->reject = as_files ? "pixels, but the first picture is a file"
                             : "a file, but the first picture is pixels";
    return {};
  }
  uint64_t elements = 1;
  for (const uint64_t size : dataset.sizes) {
    if (!checked_mul(elements, size, &elements)) return damaged("a dataset of impossible sizes");
  }
  ArrayLayout layout;
  if (!as_files) {
    auto resolved = resolve_layout(dataset.sizes, options_.array_layout);
    if (!resolved.ok()) {
      return std::move(resolved).status().at_path(
          str_cat(escape_bytes(path_), ":", escape_bytes(dataset.path)));
    }
    layout = *resolved;
    if (uint64_t{layout.pixels.height} * layout.pixels.width > options_.max_pixels) {
      entry->reject = "too many pixels";
      return {};
    }
  }
  Piece piece = Piece::of_file(0, 0, elements * dataset.element_bytes);
  SPK_ASSIGN(const auto compact, library_->compact_bytes(dataset));
  if (compact) {
    piece = Piece::of_file(1, spooled_.bytes(), compact->size());
    SPK_TRY(spooled_.append(*compact));
  } else if (elements != 0) {
    Opened opened;
    SPK_TRY(open(dataset, &opened));
    const uint64_t rows = opened.storage.rows();
    SPK_ASSIGN(const bool lies_there, opened.reader->place_of(0, rows, &piece.offset));
    if (!lies_there) {
      SPK_TRY(copy_rows(*opened.reader, 0, rows, opened.storage.row_bytes(), &piece));
    }
  }
  if (as_files) {
    set_file(std::move(piece), entry);
    return {};
  }
  return set_pixels(dataset, layout, std::move(piece), entry);
}

Status Hdf5Lister::list_many() {
  std::string prefix = options_.images_name;
  while (prefix.starts_with('/')) prefix.erase(0, 1);
  const auto class_of = [&](const std::string& path) {
    size_t begin = path.starts_with(prefix) ? prefix.size() : 0;
    while (begin < path.size() && path[begin] == '/') ++begin;
    const size_t slash = path.find('/', begin);
    return slash == path.npos ? std::string() : path.substr(begin, slash - begin);
  };
  std::set<std::string> classes;
  bool all_have_classes = true;
  for (const Hdf5Dataset& one : choice_.many) {
    const std::string name = class_of(one.path);
    if (name.empty()) all_have_classes = false;
    if (!name.empty()) classes.insert(name);
  }
  if (options_.labels != LabelMode::kNone) {
    if (all_have_classes) {
      listing_.classes.assign(classes.begin(), classes.end());
      listing_.label_kind = LabelKind::kInt;
    } else {
      listing_.warnings.add("no labels", "not every picture lies in a group");
    }
  }
  const Hdf5Dataset& first = choice_.many.front();
  const bool as_files = first.kind == Hdf5Dataset::Kind::kOpaque || first.sizes.size() == 1;
  if (!as_files) {
    listing_.blobs = {{"image", BlobContent::kPixels}};
    listing_.decisions.emplace_back("pixels", "uint8 hwc");
  }
  uint64_t number = 0;
  for (const Hdf5Dataset& one : choice_.many) {
    SampleEntry entry;
    if (listing_.label_kind == LabelKind::kInt) {
      const std::vector<std::string>& names = listing_.classes;  // in byte order
      entry.int_labels = {std::lower_bound(names.begin(), names.end(), class_of(one.path)) -
                          names.begin()};
    }
    SPK_TRY(list_one(one, as_files, &entry));
    SPK_TRY(finish_entry(number++, std::move(entry)));
  }
  return {};
}

Result<Listing> Hdf5Lister::run() {
  SPK_ASSIGN(library_, Hdf5File::open(path_));
  SPK_ASSIGN(file_, File::open_read(path_));
  SPK_ASSIGN(info_, file_.info());
  SPK_ASSIGN(const auto datasets, library_->list(options_.memory_bytes / kBytesADataset));
  auto choice = choose_datasets(datasets, options_);
  if (!choice.ok()) return at_file(std::move(choice).status());
  choice_ = std::move(*choice);
  listing_.source_kind = "hdf5";
  listing_.form = hdf5_form_name(choice_.form);
  listing_.ordered = true;
  listing_.splits = {""};
  if (choice_.form != Hdf5Form::kMany) {
    listing_.decisions.emplace_back("images", escape_bytes(choice_.images.path));
  }
  if (choice_.others != 0) listing_.ignored["other dataset"] = choice_.others;
  Opened opened_labels;
  if (choice_.labels) {
    SPK_ASSIGN(auto compact, library_->compact_bytes(*choice_.labels));
    if (!compact) SPK_TRY(open(*choice_.labels, &opened_labels));
    labels_.emplace(*choice_.labels, options_.labels, compact ? nullptr : &*opened_labels.reader,
                    compact ? std::move(*compact) : std::vector<uint8_t>(), escape_bytes(path_));
    listing_.decisions.emplace_back("labels_name", escape_bytes(choice_.labels->path));
  } else if (choice_.form != Hdf5Form::kMany && options_.labels != LabelMode::kNone) {
    listing_.warnings.add("no labels", "no dataset of the file holds any");
  }
  const uint64_t memory = options_.memory_bytes / 8;
  if (choice_.keys) {
    SPK_ASSIGN(keys_, Hdf5Texts::open(*library_, file_, memory, *choice_.keys));
  }
  if (choice_.classes && labels_) {
    SPK_ASSIGN(auto texts, Hdf5Texts::open(*library_, file_, memory, *choice_.classes));
    for (uint64_t i = 0; i < choice_.classes->sizes[0]; ++i) {
      SPK_ASSIGN(std::string name, texts->next());
      listing_.classes.push_back(std::move(name));
    }
  }
  switch (choice_.form) {
    case Hdf5Form::kDense: SPK_TRY(list_dense()); break;
    case Hdf5Form::kRows: SPK_TRY(list_rows()); break;
    case Hdf5Form::kFlat: SPK_TRY(list_flat()); break;
    case Hdf5Form::kMany: SPK_TRY(list_many()); break;
  }
  if (labels_) labels_->finish(&listing_);
  SPK_TRY(spooled_.finish());
  return std::move(listing_);
}

}  // namespace

Result<Listing> list_hdf5(const PackOptions& options, const std::string& path, Spool* spool,
                          const std::string& spooled_name, const Source::Sink& sink) {
  return Hdf5Lister(options, path, spool, spooled_name, sink).run();
}

}  // namespace spk
