#include "pipeline/export_place.h"

#include <sys/file.h>

#include <cerrno>

#include "base/text.h"
#include "io/atomic_file.h"
#include "sinks/folder_names.h"
#include "sinks/folder_writer.h"

namespace spk {

namespace {

constexpr char kFilesName[] = "files";
constexpr char kOwnName[] = "stripepack-export";
constexpr char kRequestName[] = "request";
constexpr uint64_t kMostRequestBytes = uint64_t{1} << 20;

Status check_destination(const Directory& parent, const OutputPlace& place, bool force) {
  SPK_ASSIGN(const bool there, parent.exists(place.name));
  if (!there || force) return {};
  return Status(Code::kExists, "DEST is there already")
      .at_path(parent.path_of(place.name))
      .with_hint("choose another DEST; --force puts what is there aside");
}

// What an earlier run left: an equal export, or something to be refused, or thrown away.
Status check_unfinished(const Directory& partial, const std::string& request, bool restart) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, partial.list());
  SPK_ASSIGN(const bool known, partial.exists(kOwnName));
  if (!known && !entries.empty()) {
    return Status(Code::kExists, "is no unfinished export; it is left alone")
        .at_path(partial.path())
        .with_hint("an export is built in DEST.partial first: choose another DEST");
  }
  if (!known) return {};
  SPK_ASSIGN(const bool unpublished, partial.exists(kFilesName));
  if (restart || !unpublished) {
    for (const DirectoryEntry& entry : entries) SPK_TRY(partial.remove_tree(entry.name));
    return {};
  }
  SPK_ASSIGN(const Directory own, Directory::open_at(partial, kOwnName));
  const auto old = read_whole_file(own, kRequestName, kMostRequestBytes);
  if (!old.ok() && old.status().code() != Code::kNotFound) return old.status();
  if (!old.ok() || as_text(*old) == request) return {};
  return Status(Code::kMismatch, str_cat("an unfinished export lies here: ", as_text(*old),
                                         "; this one is: ", request))
      .at_path(partial.path())
      .with_hint("repeat its command line, or throw it away with --restart");
}

// What a run that died left under temporary names. No key becomes such a name.
Status remove_temporaries(const Directory& directory) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, directory.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type == EntryType::kDirectory) {
      SPK_ASSIGN(const Directory inner, Directory::open_at(directory, entry.name));
      SPK_TRY(remove_temporaries(inner));
    } else if (std::string_view(entry.name).starts_with(kTemporaryPrefix)) {
      SPK_TRY(directory.unlink(entry.name));
    }
  }
  return {};
}

}  // namespace

Result<ExportPlace> ExportPlace::take(const std::string& dest, const std::string& request,
                                      bool force, bool restart) {
  ExportPlace export_place;
  SPK_ASSIGN(export_place.place_, split_output(dest));
  const OutputPlace& place = export_place.place_;
  SPK_ASSIGN(export_place.parent_, Directory::open(place.parent));
  const Directory& parent = export_place.parent_;
  SPK_TRY(check_destination(parent, place, force));
  auto made = Directory::create_at(parent, place.partial_name());
  const bool joins = !made.ok() && made.status().code() == Code::kExists;
  if (joins) made = Directory::open_at(parent, place.partial_name());
  SPK_ASSIGN(export_place.partial_, std::move(made));
  const Directory& partial = export_place.partial_;
  if (flock(partial.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Status(Code::kBusy, "another export is at work here")
        .at_path(partial.path())
        .with_hint("wait for it, or stop it; then the same command line continues");
  }
  if (joins) SPK_TRY(check_unfinished(partial, request, restart));
  SPK_ASSIGN(export_place.own_, open_or_make_folder_at(partial, kOwnName));
  SPK_TRY(write_file_atomically(export_place.own_, kRequestName, as_bytes(request)));
  SPK_ASSIGN(export_place.files_, open_or_make_folder_at(partial, kFilesName));
  if (joins) SPK_TRY(remove_temporaries(export_place.files_));
  return export_place;
}

Result<ExportPlace> ExportPlace::attach(const std::string& dest) {
  ExportPlace export_place;
  SPK_ASSIGN(export_place.place_, split_output(dest));
  SPK_ASSIGN(export_place.parent_, Directory::open(export_place.place_.parent));
  SPK_ASSIGN(export_place.partial_,
             Directory::open_at(export_place.parent_, export_place.place_.partial_name()));
  SPK_ASSIGN(export_place.own_, Directory::open_at(export_place.partial_, kOwnName));
  SPK_ASSIGN(export_place.files_, Directory::open_at(export_place.partial_, kFilesName));
  return export_place;
}

Result<Directory> ExportPlace::directory_of_split(const std::string& split) const {
  return split.empty() ? Directory::open_at(partial_, kFilesName)
                       : open_or_make_folder_at(files_, split);
}

Result<Directory> ExportPlace::records_of_split(const std::string& split) const {
  return open_or_make_folder_at(own_, split.empty() ? "all" : "of-" + split);
}

Status ExportPlace::publish(std::string* aside) {
  SPK_TRY(files_.sync());
  SPK_ASSIGN(const bool there, parent_.exists(place_.name));
  if (there) {
    const std::string name = str_cat(place_.name, ".old-", unique_token());
    SPK_TRY(parent_.rename_no_replace(place_.name, name));
    *aside = parent_.path_of(name);
  }
  SPK_TRY(partial_.rename_to_no_replace(kFilesName, parent_, place_.name));
  SPK_TRY(parent_.sync());
  return parent_.remove_tree(place_.partial_name());
}

}  // namespace spk
