#include "sources/kind_options.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "io/file.h"
#include "sources/source_features.h"

namespace spk {

namespace {

struct KindOption {
  const char* name;
  bool (*is_given)(const PackOptions& options);
  std::vector<std::string_view> kinds;
  const char* what;  // those kinds, for messages
  const char* hint;
};

const std::vector<KindOption>& kind_options() {
  using Options = const PackOptions&;
  static constexpr char kWrongKind[] =
      "--source says what SRC is, where it is taken for something else";
  static const std::vector<KindOption> kOptions = {
      {"--root",
       [](Options o) { return !o.root.empty(); },
       {"manifest"},
       "a list of samples",
       "paths of other sources are never relative to something else"},
      {"--accept",
       [](Options o) { return o.accept_any; },
       {"folder", "manifest"},
       "a folder or a list of files",
       kWrongKind},
      {"--field",
       [](Options o) { return !o.side_fields.empty(); },
       {"folder", "manifest"},
       "a folder or a list of files",
       "--features names the parts of other sources' samples"},
      {"--require-fields",
       [](Options o) { return o.require_fields; },
       {"folder", "manifest"},
       "a folder or a list of files",
       kWrongKind},
      {"--db",
       [](Options o) { return !o.database.empty(); },
       {"lmdb"},
       "an LMDB environment",
       kWrongKind},
      {"--label-from",
       [](Options o) { return o.label_from != LabelFrom::kAuto; },
       {"lmdb"},
       "an LMDB environment of pictures",
       "a label that a foreign sample holds is named by --features label=NAME"},
      {"--images",
       [](Options o) { return !o.images_name.empty(); },
       {"hdf5"},
       "an HDF5 file",
       "--features image=NAME names the picture of other sources' samples"},
      {"--labels-name",
       [](Options o) { return !o.labels_name.empty(); },
       {"hdf5"},
       "an HDF5 file",
       "--features label=NAME names the label of other sources' samples"},
      {"--array-layout",
       [](Options o) { return !o.array_layout.empty(); },
       {"hdf5"},
       "an HDF5 file",
       kWrongKind},
      {"--array-scale",
       [](Options o) { return o.array_scale != ArrayScale::kUnsaid; },
       {"hdf5"},
       "an HDF5 file",
       kWrongKind},
      {"--features",
       [](Options o) { return !o.features.empty(); },
       {"lmdb", "tar", "webdataset", "zip", "tfrecord", "recordio", "mds", "beton"},
       "sources whose samples have named parts (LMDB, archives, TFRecord, RecordIO, MDS, .beton)",
       "of a folder or list, --field adds files; of HDF5, --images and --labels-name name "
       "datasets"},
      {"--salvage",
       [](Options o) { return o.salvage; },
       {"lmdb", "idx", "tar", "webdataset", "zip", "tfrecord", "recordio"},
       "sources of which a part can be whole (LMDB, IDX, archives, TFRecord, RecordIO)",
       "--max-rejects lets single samples be left out"},
      {"--labels words",
       [](Options o) { return o.labels == LabelMode::kWords; },
       {"tar", "webdataset", "zip"},
       "archives (tar, zip)",
       "--join takes labels that are words from a table"},
      {"--select",
       [](Options o) { return !o.select.empty(); },
       {"pack"},
       "packs",
       "pack all of it, then select with `stripepack repack`"},
  };
  return kOptions;
}

// Kinds whose --features can only be one thing.
struct OneFeature {
  std::string_view kind;
  std::string_view features;
  const char* what;
};
constexpr OneFeature kOneFeature[] = {{"lmdb", "key=name", "LMDB"},
                                      {"recordio", "key=lst", "RecordIO"}};

struct Suffix {
  std::string_view suffix;
  const char* what;
};
constexpr Suffix kSuffixes[] = {
    {".mdb", "an LMDB environment"},
    {".h5", "an HDF5 file"},
    {".hdf5", "an HDF5 file"},
    {".tar", "a tar archive"},
    {".zip", "a zip archive"},
    {".tfrecord", "a TFRecord file"},
    {".tfrecords", "a TFRecord file"},
    {".rec", "an MXNet RecordIO file"},
    {".mds", "a shard of an MDS dataset"},
    {".beton", "an FFCV .beton file"},
};

}  // namespace

Status check_kind_options(const PackOptions& options, const SourceKind& kind) {
  for (const KindOption& option : kind_options()) {
    if (!option.is_given(options)) continue;
    if (std::count(option.kinds.begin(), option.kinds.end(), kind.name) != 0) continue;
    return invalid_argument(
               str_cat(option.name, " goes with ", option.what, ", and SRC is ", kind.what))
        .at_path(escape_bytes(options.source))
        .with_hint(option.hint);
  }
  Status status = SourceFeatures::parse(options.features).status();
  for (const OneFeature& one : kOneFeature) {
    if (kind.name != one.kind || options.features.empty() || options.features == one.features) {
      continue;
    }
    status =
        invalid_argument(str_cat("--features: of ", one.what, " there is only ", one.features));
  }
  return std::move(status).at_path(escape_bytes(options.source));
}

Status check_not_empty(const SourceLook& look, const SourceKind* kind) {
  std::string path = look.path;
  const std::string_view asked = kind == nullptr ? "" : kind->name;
  if (look.is_folder) {
    if (!look.has_file("data.mdb") || (kind != nullptr && asked != "lmdb")) return {};
    path += "/data.mdb";
  } else if (look.files.size() == 1) {
    path = look.files[0];
  } else {
    return {};
  }
  SPK_ASSIGN(const File file, File::open_read(path));
  SPK_ASSIGN(const uint64_t bytes, file.size());
  if (bytes != 0) return {};
  const char* what = nullptr;
  const char* why = "its name promises ";
  for (const Suffix& one : kSuffixes) {
    if (path.ends_with(one.suffix)) what = one.what;
  }
  if (kind != nullptr) {
    what = kind->what;
    why = "--source promises ";
  }
  if (what == nullptr || asked == "manifest" || asked == "folder" || asked == "pack") return {};
  return damaged(str_cat("the file is empty (0 bytes), where ", why, what))
      .at_path(escape_bytes(path))
      .with_hint("whoever wrote or copied it did not get to the end; fetch or make it again");
}

}  // namespace spk
