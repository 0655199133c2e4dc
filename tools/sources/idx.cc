#include "sources/idx.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "sources/idx_pairs.h"
#include "sources/numbered_key.h"
#include "sources/pieces.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr uint64_t kMostSizes = 4;
constexpr size_t kFilesLookedAt = 64;

bool is_idx(ByteSpan head) {
  const auto header = parse_idx_header(head);
  return header.ok() || header.status().code() != Code::kNotThisFormat;
}

uint64_t element_bytes_of(uint8_t type) {
  switch (type) {
    case kIdxUint8:
    case kIdxInt8: return 1;
    case kIdxInt16: return 2;
    case kIdxInt32:
    case kIdxFloat32: return 4;
    case kIdxFloat64: return 8;
    default: return 0;
  }
}

int64_t label_at(uint8_t type, const uint8_t* at) {
  switch (type) {
    case kIdxUint8: return at[0];
    case kIdxInt8: return static_cast<int8_t>(at[0]);
    case kIdxInt16: return static_cast<int16_t>(load_be<uint16_t>(at));
    default: return static_cast<int32_t>(load_be<uint32_t>(at));
  }
}

Result<PixelDimensions> pixels_of(const IdxHeader& header, uint64_t max_pixels) {
  const auto& sizes = header.sizes;
  if (header.type != kIdxUint8) {
    return unsupported("pictures whose elements are not unsigned bytes")
        .with_hint("scale them to bytes first: what their values stand for is not said");
  }
  if (sizes.size() < 3) return unsupported("elements that are no pictures");
  if (std::any_of(sizes.begin() + 1, sizes.end(), [](uint64_t size) { return size == 0; })) {
    return invalid_argument("pictures without pixels");
  }
  const uint64_t channels = sizes.size() == 4 ? sizes[3] : 1;
  if (channels > 4) {
    return unsupported(str_cat("pictures of ", channels, " channels, if the last size is theirs"));
  }
  if (sizes[1] * sizes[2] > max_pixels) {
    return invalid_argument(str_cat("pictures of ", sizes[1], " x ", sizes[2], " pixels"))
        .with_hint("--max-pixels allows more");
  }
  return PixelDimensions{static_cast<uint32_t>(sizes[1]), static_cast<uint32_t>(sizes[2]),
                         static_cast<uint32_t>(channels)};
}

// Whether one of the first files is one, plain or packed.
Result<bool> look_for_idx(const SourceLook& look) {
  if (look.is_folder && look.has_folders) return false;
  for (size_t i = 0; i < std::min(look.files.size(), kFilesLookedAt); ++i) {
    const auto file = File::open_read(look.files[i]);
    if (!file.ok()) continue;
    std::vector<uint8_t> head(SourceLook::kHeadBytes);
    const auto got = file->read_some(0, head);
    if (!got.ok()) continue;
    head.resize(*got);
    if (is_idx(head)) return true;
    const Packing packing = packing_of(head, false);
    if (packing == Packing::kNone || !check_can_unpack(packing).ok()) continue;
    if (is_idx(unpack_head(head, packing, kIdxMostHeadBytes))) return true;
  }
  return false;
}

// The file's header; REQUIRES that nothing was read yet.
Result<IdxHeader> read_header(ForwardReader& reader) {
  SPK_ASSIGN(const ByteSpan head, reader.at(0, kIdxMostHeadBytes));
  auto header = parse_idx_header(head);
  if (!header.ok()) return std::move(header).status().at_path(escape_bytes(reader.path()));
  return header;
}

}  // namespace

Result<IdxHeader> parse_idx_header(ByteSpan head) {
  IdxHeader header;
  const auto other = [] { return Status(Code::kNotThisFormat, "not an IDX file"); };
  if (head.size() < 4 || head[0] != 0 || head[1] != 0) return other();
  header.type = head[2];
  header.element_bytes = element_bytes_of(header.type);
  const uint64_t sizes = head[3];
  if (header.element_bytes == 0 || sizes == 0 || sizes > kMostSizes) return other();
  header.head_bytes = 4 + 4 * sizes;
  if (head.size() < header.head_bytes) {
    return damaged("truncated within the header of an IDX file").at_offset(head.size());
  }
  header.data_bytes = header.element_bytes;
  for (uint64_t i = 0; i < sizes; ++i) {
    header.sizes.push_back(load_be<uint32_t>(head.data() + 4 + 4 * i));
    if (!checked_mul(header.data_bytes, header.sizes.back(), &header.data_bytes)) {
      return damaged("the sizes in the header of an IDX file multiply to more than 2^64")
          .at_offset(4);
    }
  }
  return header;
}

Result<std::unique_ptr<Source>> IdxSource::open_files(const std::vector<std::string>& paths,
                                                      bool is_folder,
                                                      std::shared_ptr<Spool> spool) {
  SPK_ASSIGN(FoundContainers found,
             find_containers(paths, is_folder, false, false, is_idx, "an IDX file"));
  if (found.paths.empty()) return Status(Code::kNotThisFormat, "no IDX file");
  SPK_ASSIGN(auto set, ContainerSet::open(std::move(found.paths), std::move(spool), false, is_idx));
  std::vector<IdxFile> files;
  for (uint32_t file = 0; file < set->count(); ++file) {
    SPK_ASSIGN(const File opened, File::open_read(set->path(file)));
    std::vector<uint8_t> head(SourceLook::kHeadBytes);
    SPK_ASSIGN(const uint64_t got, opened.read_some(0, head));
    head.resize(got);
    if (set->packing(file) != Packing::kNone) {
      head = unpack_head(head, set->packing(file), kIdxMostHeadBytes);
    }
    auto header = parse_idx_header(head);
    if (!header.ok()) return std::move(header).status().at_path(escape_bytes(set->path(file)));
    files.push_back({set->path(file), header->sizes.size() == 1});
  }
  SPK_ASSIGN(std::vector<Pair> pairs, pair_idx_files(files));
  return std::unique_ptr<Source>(new IdxSource(std::move(set), std::move(pairs)));
}

// Pictures and labels are read side by side; of the pictures only the header, unless they have to
// be unpacked.
Status IdxSource::list_pair(const Pair& pair, const PackOptions& options, Listing* listing,
                            uint64_t* ordinal, const Sink& sink) const {
  const bool packed = set_->packing(pair.images) != Packing::kNone;
  SPK_ASSIGN(
      const auto images,
      set_->read(pair.images, packed ? kDataWindowBytes : kHeaderWindowBytes, options.salvage));
  SPK_ASSIGN(const IdxHeader header, read_header(*images));
  auto pixels = pixels_of(header, options.max_pixels);
  if (!pixels.ok()) return std::move(pixels).status().at_path(escape_bytes(images->path()));
  const uint64_t picture_bytes = uint64_t{pixels->height} * pixels->width * pixels->channels;
  const auto cut = [&](const ForwardReader& reader, const IdxHeader& of, uint64_t end) {
    return damaged(str_cat("truncated: the header tells of ", of.head_bytes + of.data_bytes,
                           " bytes, the file ",
                           reader.path() == images->path() && packed ? "unpacked has " : "has ",
                           end))
        .at_path(escape_bytes(reader.path()))
        .at_offset(end)
        .with_hint("--salvage takes what is whole");
  };
  uint64_t count = header.sizes[0];

  std::unique_ptr<ForwardReader> labels;
  IdxHeader label_header;
  if (pair.labels != Pair::kNone && options.labels != LabelMode::kNone) {
    SPK_ASSIGN(labels, set_->read(pair.labels, kDataWindowBytes, options.salvage));
    SPK_ASSIGN(label_header, read_header(*labels));
    if (label_header.type == kIdxFloat32 || label_header.type == kIdxFloat64) {
      return unsupported("labels that are floats").at_path(escape_bytes(labels->path()));
    }
    if (label_header.sizes[0] != count) {
      return Status(Code::kMismatch, str_cat(count, " pictures, but ", label_header.sizes[0],
                                             " labels in ", escape_bytes(labels->path())))
          .at_path(escape_bytes(images->path()));
    }
  }
  // What an unpacked file holds is known at its end only, so a plain one is checked likewise:
  // before the last of its samples is given.
  uint64_t end = set_->size_bytes(pair.images);
  if (!packed && end < header.head_bytes + header.data_bytes) {
    if (!options.salvage) return cut(*images, header, end);
    listing->warnings.add("truncated", escape_bytes(images->path()));
    count = std::min(count, (end - std::min(end, header.head_bytes)) / picture_bytes);
  }
  if (!packed && end > header.head_bytes + header.data_bytes) {
    listing->warnings.add("bytes after the end", escape_bytes(images->path()));
  }
  const uint32_t lies_in = packed ? set_->spooled_number(pair.images) : pair.images;
  uint32_t split = 0;
  while (listing->splits.size() > 1 && listing->splits[split] != pair.split) ++split;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t start = header.head_bytes + i * picture_bytes;
    if (packed) {
      SPK_ASSIGN(const ByteSpan last, images->at(start + picture_bytes - 1, 1));
      if (last.empty()) {
        SPK_ASSIGN(end, images->end());
        if (!options.salvage) return cut(*images, header, end);
        listing->warnings.add("truncated", escape_bytes(images->path()));
        break;
      }
    }
    SampleEntry entry;
    if (labels != nullptr) {
      const uint64_t at = label_header.head_bytes + i * label_header.element_bytes;
      SPK_ASSIGN(const ByteSpan bytes, labels->at(at, label_header.element_bytes));
      if (bytes.size() < label_header.element_bytes) {
        if (!options.salvage) return cut(*labels, label_header, at + bytes.size());
        listing->warnings.add("truncated", escape_bytes(labels->path()));
        break;
      }
      entry.int_labels = {label_at(label_header.type, bytes.data())};
    }
    entry.key = numbered_key(i);
    entry.ordinal = (*ordinal)++;
    entry.split = split;
    entry.mtime_ns = set_->entry_mtime_ns(pair.images);
    entry.size_bytes = picture_bytes;
    entry.pixels = *pixels;
    entry.path = encode_pieces({Piece::of_file(lies_in, start, picture_bytes)});
    SPK_TRY(sink(std::move(entry)));
  }
  if (labels != nullptr) SPK_TRY(labels->finish());
  return packed ? images->finish() : Status();
}

Result<Listing> IdxSource::list(const PackOptions& options, const Sink& sink) {
  if (options.labels == LabelMode::kFloat) {
    return invalid_argument("--labels float does not go with IDX files, whose labels are integers");
  }
  Listing listing;
  listing.source_kind = "idx";
  listing.ordered = true;
  listing.blobs = {{"image", BlobContent::kPixels}};
  listing.decisions.emplace_back("pixels", "uint8 hwc");
  const bool all_splits = std::all_of(pairs_.begin(), pairs_.end(),
                                      [](const Pair& pair) { return !pair.split.empty(); });
  if (pairs_.size() > 1 && (!all_splits || options.splits == SplitMode::kNone)) {
    return invalid_argument(str_cat("holds ", pairs_.size(), " files of pictures"))
        .at_path(escape_bytes(options.source))
        .with_hint("give the one to take as SRC");
  }
  if (all_splits && options.splits == SplitMode::kAuto) {
    for (const Pair& pair : pairs_) listing.splits.push_back(pair.split);
  } else {
    listing.splits = {""};
  }
  const auto has_labels = [](const Pair& pair) { return pair.labels != Pair::kNone; };
  if (options.labels != LabelMode::kNone) {
    if (std::any_of(pairs_.begin(), pairs_.end(), has_labels)) {
      listing.label_kind = LabelKind::kInt;
    }
    for (const Pair& pair : pairs_) {
      if (!has_labels(pair)) {
        listing.warnings.add("no file of labels", escape_bytes(set_->path(pair.images)));
      }
    }
  }
  uint64_t ordinal = 0;
  for (const Pair& pair : pairs_) SPK_TRY(list_pair(pair, options, &listing, &ordinal, sink));
  return listing;
}

Result<std::unique_ptr<SampleHandle>> IdxSource::open(const SampleEntry& entry) const {
  return set_->open_sample(entry);
}

SourceKind idx_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> { return look_for_idx(look); };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    std::vector<std::string> files = look.files;
    if (!look.is_folder && files.size() == 1) add_label_file_beside(&files);
    auto source = IdxSource::open_files(files, look.is_folder, std::move(spool));
    if (source.ok()) return source;
    return std::move(source).status().at_path(escape_bytes(look.path));
  };
  return {"idx", "IDX files, as MNIST's", recognises, open};
}

}  // namespace spk
