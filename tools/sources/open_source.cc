#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "sources/folder.h"
#include "sources/join.h"
#include "sources/kind_options.h"
#include "sources/manifest.h"
#include "sources/side_fields.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* name;
};

// What people point us at that is no list. Told by content, never by name.
constexpr std::array kMagics = {
    Magic{0, {"\x1f\x8b", 2}, "gzip data"},
    Magic{0, {"\x28\xb5\x2f\xfd", 4}, "zstd data"},
    Magic{0, "hsqs", "a SquashFS image"},
    Magic{0, {"\x93NUMPY", 6}, "a NumPy array"},
    Magic{0, {"\xff\xd8\xff", 3}, "a JPEG picture"},
    Magic{0, {"\x89PNG\r\n\x1a\n", 8}, "a PNG picture"},
    Magic{0, {"\xff\xfe", 2}, "UTF-16 text"},
    Magic{0, {"\xfe\xff", 2}, "UTF-16 text"},
    Magic{0, "PAR1", "a Parquet file"},
};

// Where nothing knew the file: what it is, if that can be told.
Status check_is_text(const SourceLook& look) {
  const std::string_view text = as_text(look.head);
  constexpr char kHint[] =
      "SRC is a folder of pictures, or a text list of them (UTF-8, one sample a line)";
  for (const Magic& magic : kMagics) {
    if (text.size() > magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return Status(Code::kNotThisFormat, str_cat("found ", magic.name, ", not a list of samples"))
          .at_path(look.files[0])
          .with_hint(kHint);
    }
  }
  if (text.find('\0') != std::string_view::npos) {
    return Status(Code::kNotThisFormat, "found binary data, not a list of samples")
        .at_path(look.files[0])
        .with_hint(kHint);
  }
  return {};
}

Status check_is_no_pack(const SourceLook& look) {
  if (!look.has_file("index.spki")) return {};
  return Status(Code::kNotThisFormat,
                "found a pack's index.spki, but no manifest.json: neither a pack nor pictures")
      .at_path(look.path)
      .with_hint("`stripepack repair` makes a lost manifest anew");
}

const SourceKind* find_kind(std::string_view name) {
  for (const SourceKind& kind : source_kinds()) {
    if (kind.name == name) return &kind;
  }
  return nullptr;
}

}  // namespace

SourceKind folder_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> { return look.is_folder; };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool>) -> Result<std::unique_ptr<Source>> {
    if (!look.is_folder) {
      return Status(Code::kNotThisFormat, "not a folder").at_path(escape_bytes(look.path));
    }
    SPK_TRY(check_is_no_pack(look));
    return FolderSource::open_root(look.path);
  };
  return {"folder", "a folder of pictures", recognises, open};
}

SourceKind manifest_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> { return !look.is_folder; };
  const auto open = [](const PackOptions& options, const SourceLook& look,
                       std::shared_ptr<Spool>) -> Result<std::unique_ptr<Source>> {
    if (look.is_folder) {
      return Status(Code::kNotThisFormat, "a folder, not a list of samples")
          .at_path(escape_bytes(look.path));
    }
    if (look.files.size() != 1) {
      return invalid_argument(str_cat("stands for ", look.files.size(), " lists; give one"))
          .at_path(escape_bytes(look.path));
    }
    SPK_TRY(check_is_text(look));
    return ManifestSource::open_list(look.files[0], options.root);
  };
  return {"manifest", "a list of pictures", recognises, open};
}

std::span<const SourceKind> source_kinds() {
  static const std::array kKinds = {
      lmdb_kind(),       cifar_kind(),    idx_kind(),      hdf5_kind(),     tar_kind(),
      webdataset_kind(), tfrecord_kind(), recordio_kind(), zip_kind(),      pack_kind(),
      mds_kind(),        beton_kind(),    folder_kind(),   manifest_kind(),
  };
  return kKinds;
}

namespace {

// A folder or a list with what --accept and --field add; KIND is what was asked for, if anything.
Result<std::unique_ptr<Source>> open_files(const PackOptions& options, const SourceLook& look,
                                           const SourceKind* kind, std::shared_ptr<Spool> spool) {
  // Whatever the files are: a list of archives is taken as a list.
  if (kind == nullptr) kind = find_kind(look.is_folder ? "folder" : "manifest");
  SPK_TRY(check_kind_options(options, *kind));
  if (options.require_fields && options.side_fields.empty()) {
    return invalid_argument("--require-fields goes with --field");
  }
  SPK_ASSIGN(auto source, kind->open(options, look, std::move(spool)));
  return SideFieldSource::around(std::move(source), options);
}

// What lies at SRC, without what --join adds.
Result<std::unique_ptr<Source>> open_alone(const PackOptions& options,
                                           std::shared_ptr<Spool> spool) {
  const SourceKind* kind = nullptr;
  if (!options.source_kind.empty()) {
    kind = find_kind(options.source_kind);
    if (kind == nullptr) {
      std::string names;
      for (const SourceKind& one : source_kinds()) {
        names += str_cat(names.empty() ? "" : ", ", one.name);
      }
      return invalid_argument(str_cat("no kind of source is called '",
                                      escape_bytes(options.source_kind), "'; there are ", names));
    }
  }
  SPK_ASSIGN(const SourceLook look, look_at_source(options.source));
  SPK_TRY(check_not_empty(look, kind));
  if (options.accept_any || !options.side_fields.empty() || options.require_fields) {
    return open_files(options, look, kind, std::move(spool));
  }
  for (const SourceKind& one : source_kinds()) {
    if (kind != nullptr) break;
    SPK_ASSIGN(const bool recognised, one.recognises(look));
    if (recognised) kind = &one;
  }
  if (kind == nullptr) {
    return internal_error("no kind of source takes what is neither a folder nor a file");
  }
  SPK_TRY(check_kind_options(options, *kind));
  return kind->open(options, look, std::move(spool));
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const PackOptions& options,
                                            std::shared_ptr<Spool> spool) {
  if (options.join.empty()) {
    for (const auto& [name, value] : {std::pair("--join-key", &options.join_key),
                                      std::pair("--join-columns", &options.join_columns),
                                      std::pair("--join-missing", &options.join_missing)}) {
      if (!value->empty()) return invalid_argument(str_cat(name, " goes with --join"));
    }
    if (options.join_ignore_extra) return invalid_argument("--join-extra goes with --join");
    return open_alone(options, std::move(spool));
  }
  SPK_ASSIGN(auto source, open_alone(options, spool));
  return JoinSource::around(std::move(source), options, std::move(spool));
}

}  // namespace spk
