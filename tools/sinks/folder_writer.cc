#include "sinks/folder_writer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "io/atomic_file.h"
#include "sinks/folder_names.h"

namespace spk {

namespace {
constexpr size_t kMostOpenFolders = 512;
}  // namespace

Result<Directory> open_or_make_folder(const std::string& path) {
  Result<Directory> made = Directory::create(path);
  if (made.ok() || made.status().code() != Code::kExists) return made;
  return Directory::open(path);
}

Result<Directory> open_or_make_folder_at(const Directory& parent, std::string_view name) {
  Result<Directory> folder = Directory::open_at(parent, name);
  if (!folder.ok() && folder.status().code() == Code::kNotFound) {
    folder = Directory::create_at(parent, name);
    // Another thread was quicker.
    if (!folder.ok() && folder.status().code() == Code::kExists) {
      folder = Directory::open_at(parent, name);
    }
  }
  if (folder.ok() || folder.status().code() != Code::kNotThisFormat) return folder;
  return Status(Code::kExists, "is no folder, or a link to one; links are not followed")
      .at_path(parent.path_of(name));
}

size_t open_folders_of_each(uint32_t threads) {
  rlimit limit{};
  const rlim_t all = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 4 : 0;
  const auto shared = static_cast<size_t>(std::min<rlim_t>(all, kMostOpenFolders));
  return std::max<size_t>(1, shared / std::max(1u, threads));
}

FolderWriter::FolderWriter(const Directory& root, bool replace, size_t most_open_folders)
    : root_(root),
      replace_(replace),
      most_open_folders_(most_open_folders),
      temporary_name_(str_cat(kTemporaryPrefix, unique_token(), ".tmp")) {}

Result<const Directory*> FolderWriter::folder(std::string_view path) {
  if (path.empty()) return &root_;
  const auto found = folders_.find(std::string(path));
  if (found != folders_.end()) return found->second.get();
  if (folders_.size() >= most_open_folders_) folders_.clear();
  auto current = std::make_unique<Directory>();
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = path.find('/', at);
    const std::string_view name = path.substr(at, slash == path.npos ? slash : slash - at);
    SPK_ASSIGN(Directory next, open_or_make_folder_at(at == 0 ? root_ : *current, name));
    *current = std::move(next);
    if (slash == path.npos) break;
    at = slash + 1;
  }
  return folders_.emplace(std::string(path), std::move(current)).first->second.get();
}

Result<FolderWriter::Begun> FolderWriter::begin(std::string_view folder_path) {
  SPK_ASSIGN(const Directory* directory, folder(folder_path));
  SPK_ASSIGN(File file, File::create(*directory, temporary_name_));
  return Begun{directory, std::move(file)};
}

Status FolderWriter::write(std::string_view path, const std::function<Status(const File&)>& fill) {
  const size_t slash = path.rfind('/');
  const std::string_view folder_path = slash == path.npos ? "" : path.substr(0, slash);
  const std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  Result<Begun> begun = begin(folder_path);
  const int os_errno = begun.ok() ? 0 : begun.status().os_errno();
  if ((os_errno == EMFILE || os_errno == ENFILE) && !folders_.empty()) {
    folders_.clear();
    begun = begin(folder_path);
  }
  SPK_TRY(begun.status());
  const Directory* directory = begun->folder;
  Status status = fill(begun->file);
  Status closed = begun->file.close();
  if (status.ok()) status = std::move(closed);
  if (status.ok() && replace_) {
    // A file or link is replaced; a folder is not, whatever errno the file system has for it.
    const Result<EntryInfo> there = directory->stat(name);
    if (there.ok() && there->type == EntryType::kDirectory) {
      status = Status(Code::kExists, "is a folder").at_path(directory->path_of(name));
    } else {
      status = directory->rename(temporary_name_, name);
    }
  } else if (status.ok()) {
    status = directory->rename_no_replace(temporary_name_, name);
    if (status.code() == Code::kExists) {
      status = Status(Code::kExists, "is there already").at_path(directory->path_of(name));
    }
  }
  if (!status.ok()) (void)directory->unlink(temporary_name_);
  return status;
}

}  // namespace spk
