#include "sources/hdf5.h"

#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "base/varint.h"
#include "sources/hdf5_list.h"
#include "sources/planar.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

std::vector<std::string> files_of(const std::string& path, const Spool* spool,
                                  const std::string& name) {
  if (spool == nullptr) return {path};
  return {path, spool->path_of(name)};
}

}  // namespace

std::string encode_place(const Hdf5Place& place) {
  std::string text;
  append_varint(text, static_cast<uint64_t>(place.element.kind));
  append_varint(text, place.element.bytes);
  append_varint(text, place.element.big_endian ? 1 : 0);
  append_varint(text, static_cast<uint64_t>(place.scale));
  append_string(text, place.order);
  return text + encode_pieces(place.pieces);
}

Result<Hdf5Place> decode_place(std::string_view text) {
  ByteSpan bytes = as_bytes(text);
  uint64_t kind = 0, element_bytes = 0, big_endian = 0, scale = 0;
  std::string_view order;
  if (!take_varint(&bytes, &kind) || !take_varint(&bytes, &element_bytes) ||
      !take_varint(&bytes, &big_endian) || !take_varint(&bytes, &scale) ||
      !take_string(&bytes, &order) || kind > 2 || element_bytes > 8 ||
      scale > static_cast<uint64_t>(ArrayScale::kWord)) {
    return damaged("the place of a sample in its source is not whole");
  }
  Hdf5Place place;
  place.element = {static_cast<ArrayElement::Kind>(kind), static_cast<uint32_t>(element_bytes),
                   big_endian != 0};
  place.scale = static_cast<ArrayScale>(scale);
  place.order = order;
  SPK_ASSIGN(place.pieces, decode_pieces(as_text(bytes)));
  return place;
}

Hdf5Source::Hdf5Source(std::string path, std::string spooled_name, std::shared_ptr<Spool> spool)
    : path_(std::move(path)),
      spooled_name_(std::move(spooled_name)),
      spool_(std::move(spool)),
      files_(files_of(path_, spool_.get(), spooled_name_)) {}

// What is in the spool depends on the options that choose datasets as well as on the file.
Result<std::unique_ptr<Source>> Hdf5Source::open_file(const PackOptions& options, std::string path,
                                                      std::shared_ptr<Spool> spool) {
  SPK_ASSIGN(const File file, File::open_read(path));
  SPK_ASSIGN(const EntryInfo info, file.info());
  std::string text = "hdf5";
  append_string(text, path);
  append_be64(text, info.size_bytes);
  append_be64(text, static_cast<uint64_t>(info.mtime_ns));
  append_string(text, options.images_name);
  append_string(text, options.labels_name);
  append_string(text, options.array_layout);
  append_varint(text, static_cast<uint64_t>(options.labels));
  append_varint(text, options.max_pixels);
  return std::unique_ptr<Source>(
      new Hdf5Source(std::move(path), xxh3_128(as_bytes(text)).to_hex(), std::move(spool)));
}

Result<Listing> Hdf5Source::list(const PackOptions& options, const Sink& sink) {
  return list_hdf5(options, path_, spool_.get(), spooled_name_, sink);
}

Result<std::unique_ptr<SampleHandle>> Hdf5Source::open(const SampleEntry& entry) const {
  SPK_ASSIGN(Hdf5Place place, decode_place(entry.path));
  SampleEntry pieces = entry;
  pieces.path = encode_pieces(place.pieces);
  auto handle = open_pieces(files_, pieces);
  if (!handle.ok()) {
    const Code code = handle.status().code();
    if (code != Code::kNotFound && code != Code::kDenied) return handle;
    // The file of all samples is no matter of one of them.
    return Status(Code::kMismatch, handle.status().message()).at_path(escape_bytes(path_));
  }
  const bool is_byte = place.element.is_byte() && place.scale != ArrayScale::kUnit &&
                       place.scale != ArrayScale::kWord;
  if (place.order.empty() || (is_byte && (place.order == "hw" || place.order == "hwc"))) {
    return handle;
  }
  if (is_byte && place.order == "chw") {
    return interleave_planes(std::move(*handle), entry.pixels, false);
  }
  SPK_ASSIGN(const std::vector<uint8_t> raw, read_all(**handle));
  const ArrayLayout layout{place.order, entry.pixels};
  if (raw.size() != layout.elements() * place.element.bytes ||
      entry.size_bytes != layout.elements()) {
    return damaged("the place of a sample in its source is not whole");
  }
  std::vector<uint8_t> pixels(entry.size_bytes);
  to_pixels(raw, place.element, layout, place.scale, pixels);
  return std::unique_ptr<SampleHandle>(std::make_unique<BytesHandle>(std::move(pixels)));
}

SourceKind hdf5_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    return !look.is_folder && look.files.size() == 1 && is_hdf5_head(look.head);
  };
  const auto open = [](const PackOptions& options, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    if (look.is_folder || look.files.size() != 1 || !is_hdf5_head(look.head)) {
      return Status(Code::kNotThisFormat, "not one HDF5 file").at_path(escape_bytes(look.path));
    }
    SPK_TRY(Hdf5File::open(look.files[0]).status());
    return Hdf5Source::open_file(options, look.files[0], std::move(spool));
  };
  return {"hdf5", "an HDF5 file", recognises, open};
}

}  // namespace spk
