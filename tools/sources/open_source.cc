#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/file.h"
#include "sources/folder.h"
#include "sources/manifest.h"
#include "sources/source.h"

namespace spk {

namespace {

struct Magic {
  size_t offset;
  std::string_view bytes;
  const char* name;
};

// What people point us at that is no list. Told by content, never by name.
constexpr std::array kMagics = {
    Magic{257, "ustar", "a tar archive"},
    Magic{0, {"\x1f\x8b", 2}, "gzip data"},
    Magic{0, {"PK\x03\x04", 4}, "a zip archive"},
    Magic{0, {"\x28\xb5\x2f\xfd", 4}, "zstd data"},
    Magic{0, {"\x89HDF\r\n\x1a\n", 8}, "an HDF5 file"},
    Magic{0, "hsqs", "a SquashFS image"},
    Magic{0, {"\x0a\x23\xd7\xce", 4}, "an MXNet RecordIO file"},
    Magic{0, {"\x93NUMPY", 6}, "a NumPy array"},
    Magic{0, {"\xff\xd8\xff", 3}, "a JPEG picture"},
    Magic{0, {"\x89PNG\r\n\x1a\n", 8}, "a PNG picture"},
    Magic{0, {"\xff\xfe", 2}, "UTF-16 text"},
    Magic{0, {"\xfe\xff", 2}, "UTF-16 text"},
    Magic{0, "PAR1", "a Parquet file"},
};

Status check_is_text(const std::string& path) {
  SPK_ASSIGN(const File file, File::open_read(path));
  std::vector<uint8_t> head(4096);
  SPK_ASSIGN(const uint64_t got, file.read_some(0, head));
  const std::string_view text = as_text(ByteSpan(head).first(got));
  constexpr char kHint[] =
      "SRC is a folder of pictures, or a text list of them (UTF-8, one sample a line)";
  for (const Magic& magic : kMagics) {
    if (text.size() > magic.offset && text.substr(magic.offset).starts_with(magic.bytes)) {
      return Status(Code::kNotThisFormat, str_cat("found ", magic.name, ", not a list of samples"))
          .at_path(path)
          .with_hint(kHint);
    }
  }
  if (text.find('\0') != std::string_view::npos) {
    return Status(Code::kNotThisFormat, "found binary data, not a list of samples")
        .at_path(path)
        .with_hint(kHint);
  }
  return {};
}

Status check_is_no_store(const Directory& folder) {
  const std::array<std::pair<const char*, const char*>, 2> stores = {
      std::pair{"index.spki", "a pack already"}, std::pair{"data.mdb", "an LMDB environment"}};
  for (const auto& [name, what] : stores) {
    SPK_ASSIGN(const bool there, folder.exists(name));
    if (!there) continue;
    return Status(Code::kNotThisFormat,
                  str_cat("found ", what, " ('", name, "'), not a folder of pictures"))
        .at_path(folder.path());
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Source>> open_source(const PackOptions& options) {
  const std::string& path = options.source;
  const std::string& kind = options.source_kind;
  if (!kind.empty() && kind != "folder" && kind != "manifest") {
    return invalid_argument(str_cat("no kind of source is called '", escape_bytes(kind),
                                    "'; there are folder and manifest"));
  }
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return Status::from_errno(errno, "cannot read the source").at_path(escape_bytes(path));
  }
  const bool is_folder = S_ISDIR(info.st_mode);
  if (kind == "folder" && !is_folder) {
    return Status(Code::kNotThisFormat, "not a folder").at_path(escape_bytes(path));
  }
  if (kind == "manifest" && is_folder) {
    return Status(Code::kNotThisFormat, "a folder, not a list of samples")
        .at_path(escape_bytes(path));
  }
  if (is_folder) {
    if (!options.root.empty()) {
      return invalid_argument("--root goes with a list of samples, but SRC is a folder")
          .at_path(escape_bytes(path));
    }
    SPK_ASSIGN(const Directory folder, Directory::open(path));
    SPK_TRY(check_is_no_store(folder));
    return FolderSource::open_root(path);
  }
  if (!S_ISREG(info.st_mode)) {
    return Status(Code::kNotThisFormat, "neither a folder nor a regular file")
        .at_path(escape_bytes(path))
        .with_hint("a list is read twice: write it to a file first");
  }
  SPK_TRY(check_is_text(path));
  return ManifestSource::open_list(path, options.root);
}

}  // namespace spk
