// The kinds of sources, and how each is recognised. A new one is a file pair of its own and a row
// in source_kinds().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/directory.h"
#include "sources/source.h"

namespace spk {

// What lies at SRC, looked at once for all kinds.
struct SourceLook {
  std::string path;  // as typed
  // Regular files: SRC itself, or what its braces ("{000..099}") and wildcards stand for, in that
  // order; where SRC is a folder, the regular files directly in it, by the bytes of their names.
  // Hidden ones are left out.
  std::vector<std::string> files;
  bool is_folder = false;
  bool has_folders = false;   // the folder has folders in it
  std::vector<uint8_t> head;  // the first bytes of files[0], at most kHeadBytes

  static constexpr size_t kHeadBytes = 4096;
  bool has_file(std::string_view name) const;  // of a folder
};

struct SourceKind {
  const char* name;  // --source NAME, and Listing::source_kind
  const char* what;  // "an HDF5 file": for messages and help
  // By content alone, never by name. An error is one of the machine.
  Result<bool> (*recognises)(const SourceLook& look);
  // kNotThisFormat where it is something else after all.
  Result<std::unique_ptr<Source>> (*open)(const PackOptions& options, const SourceLook& look,
                                          std::shared_ptr<Spool> spool);
};

// All kinds, in the order in which they are asked; folder and manifest, which take most things,
// last.
std::span<const SourceKind> source_kinds();

// kNotFound where nothing is there, or no file matches.
Result<SourceLook> look_at_source(const std::string& path);
// "{000..099}", "{a,b}" in TEXT written out; {TEXT} where there are none. kInvalidArgument where
// there are too many.
Result<std::vector<std::string>> expand_braces(const std::string& text);

// Of each kind's own file.
SourceKind lmdb_kind();
SourceKind cifar_kind();
SourceKind idx_kind();
SourceKind hdf5_kind();
SourceKind tar_kind();
SourceKind webdataset_kind();
SourceKind tfrecord_kind();
SourceKind recordio_kind();
SourceKind zip_kind();
SourceKind pack_kind();
SourceKind mds_kind();
SourceKind beton_kind();
SourceKind folder_kind();
SourceKind manifest_kind();

}  // namespace spk
