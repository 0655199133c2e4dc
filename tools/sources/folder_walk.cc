#include "sources/folder_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "sources/file_sample.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr size_t kBatchNames = 256;
constexpr char kNotPicture[] = "not a picture name";
constexpr char kLoop[] = "folder loop";
constexpr char kDangling[] = "dangling link";

// An open stream of names.
class NameStream {
 public:
  explicit NameStream(int fd) : dir_(fdopendir(fd)) {}  // takes the descriptor over
  ~NameStream() {
    if (dir_ != nullptr) closedir(dir_);
  }
  NameStream(const NameStream&) = delete;
  NameStream& operator=(const NameStream&) = delete;
  bool is_open() const noexcept { return dir_ != nullptr; }
  int fd() const noexcept { return dirfd(dir_); }
  // Null at the end (errno 0) or on an error.
  const dirent* next() noexcept {
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(dir_);
      if (entry == nullptr) return nullptr;
      const std::string_view name(entry->d_name);
      if (name != "." && name != "..") return entry;
    }
  }

 private:
  DIR* dir_;
};

// Null where a name is to be looked at, else why it is left out.
const char* why_ignored(std::string_view name, bool at_root) noexcept {
  if (name.starts_with('.')) return "hidden";
  if (name == "__MACOSX") return "__MACOSX";
  if (at_root && name == "lost+found") return "lost+found";
  return nullptr;
}

std::string shown_path(const Directory& root, std::string_view path) {
  std::string shown = escape_bytes(root.path());
  if (!path.empty()) shown += str_cat(shown.ends_with('/') ? "" : "/", escape_bytes(path));
  return shown;
}

// A Status for a folder that cannot be opened or read; ok for one that is a loop of links.
Status folder_error(int os_errno, const Directory& root, std::string_view path) {
  if (os_errno == ELOOP) return {};
  if (os_errno == ENOENT || os_errno == ENOTDIR) {
    return Status(Code::kMismatch, "the folder vanished while it was being listed")
        .at_path(shown_path(root, path))
        .with_hint("run again once nothing is written to the source");
  }
  Status status = io_error(os_errno, "cannot read the folder", "");
  if (os_errno == EACCES || os_errno == EPERM) {
    status = std::move(status).with_hint(
        "how many pictures it holds cannot be told; make it readable, or move it elsewhere");
  }
  return std::move(status).at_path(shown_path(root, path));
}

}  // namespace

bool is_among(const Ancestor* chain, dev_t device, ino_t inode) noexcept {
  for (; chain != nullptr; chain = chain->parent.get()) {
    if (chain->device == device && chain->inode == inode) return true;
  }
  return false;
}

Result<std::shared_ptr<const Ancestor>> ancestors_of(const Directory& root) {
  // From the root of the walk upwards, as far as the user may look.
  std::vector<Ancestor> upwards;
  std::string path = ".";
  for (;;) {
    struct stat info;
    if (stat_below(root.fd(), path, &info) != 0) {
      if (upwards.empty()) return Status::from_errno(errno, "cannot look at").at_path(root.path());
      break;
    }
    if (!upwards.empty() && upwards.back().device == info.st_dev &&
        upwards.back().inode == info.st_ino) {
      break;
    }
    upwards.push_back({info.st_dev, info.st_ino, nullptr});
    path = path == "." ? ".." : path + "/..";
  }
  std::shared_ptr<const Ancestor> chain;
  for (auto folder = upwards.rbegin(); folder != upwards.rend(); ++folder) {
    chain = std::make_shared<const Ancestor>(Ancestor{folder->device, folder->inode, chain});
  }
  return chain;
}

Result<std::vector<std::string>> list_folders(const Directory& root, const std::string& path,
                                              const Ancestor* chain, bool every_file,
                                              bool* has_pictures) {
  std::vector<std::string> folders;
  const int fd = open_below(root.fd(), path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) {
    const int os_errno = errno;
    SPK_TRY(folder_error(os_errno, root, path));
    return folders;
  }
  NameStream names(fd);
  struct stat self;
  if (!names.is_open() || fstat(fd, &self) != 0) {
    return Status::from_errno(errno, "cannot read the folder").at_path(shown_path(root, path));
  }
  while (const dirent* entry = names.next()) {
    const std::string name(entry->d_name);
    if (why_ignored(name, path.empty()) != nullptr) continue;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat info;
      // What cannot be looked at is reported by the walk.
      is_folder = fstatat(names.fd(), name.c_str(), &info, 0) == 0 && S_ISDIR(info.st_mode) &&
                  !is_among(chain, info.st_dev, info.st_ino) &&
                  (info.st_dev != self.st_dev || info.st_ino != self.st_ino);
    }
    if (!is_folder) {
      if (every_file || is_picture_name(name)) *has_pictures = true;
      continue;
    }
    if (folders.size() == kMostClasses) {
      return invalid_argument(str_cat("more than ", format_count(kMostClasses), " folders"))
          .at_path(shown_path(root, path))
          .with_hint("--labels none does without class names");
    }
    folders.push_back(name);
  }
  if (errno != 0) {
    return Status::from_errno(errno, "cannot read the folder").at_path(shown_path(root, path));
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

struct FolderWalk::OpenFolder {
  Folder folder;
  std::shared_ptr<const Ancestor> self;
  std::unique_ptr<NameStream> names;
};

FolderWalk::FolderWalk(const Directory& root, std::shared_ptr<const Ancestor> ancestors, Plan plan,
                       const Source::Sink& sink)
    : root_(root), ancestors_(std::move(ancestors)), plan_(std::move(plan)), sink_(sink) {
  for (const Split& split : plan_.splits) {
    class_counts_.emplace_back(split.unlabelled ? 0 : plan_.classes.size());
  }
  Folder top;
  top.parent = ancestors_->parent;
  top.level = plan_.root_holds_splits ? Level::kRootOfSplits : Level::kTop;
  folders_.push_back(std::move(top));
}

std::vector<std::vector<uint64_t>> FolderWalk::class_counts() const {
  std::vector<std::vector<uint64_t>> counts;
  for (const auto& split : class_counts_) counts.emplace_back(split.begin(), split.end());
  return counts;
}

void FolderWalk::ignore(const char* reason) {
  const std::lock_guard lock(mutex_);
  ++ignored_[reason];
}

void FolderWalk::warn(const char* kind, const std::string& path) {
  const std::lock_guard lock(mutex_);
  warnings_.add(kind, escape_bytes(path));
}

void FolderWalk::fail(Status status) {
  const std::lock_guard lock(mutex_);
  if (error_.ok()) error_ = std::move(status);
  stop_ = true;
  changed_.notify_all();
}

Status FolderWalk::run(unsigned threads) {
  most_batches_ = size_t{4} * threads;
  std::vector<std::thread> workers;
  try {
    for (unsigned i = 1; i < threads; ++i) workers.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // No more threads to be had; those that are there do the work.
  }
  work();
  for (std::thread& worker : workers) worker.join();
  return error_;
}

void FolderWalk::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock,
                  [this] { return stop_ || busy_ == 0 || !batches_.empty() || !folders_.empty(); });
    if (stop_ || (batches_.empty() && folders_.empty())) {
      changed_.notify_all();
      return;
    }
    ++busy_;
    Status status;
    if (!batches_.empty()) {
      const Batch batch = std::move(batches_.back());
      batches_.pop_back();
      lock.unlock();
      status = look_at_batch(batch);
    } else {
      Folder folder = std::move(folders_.back());
      folders_.pop_back();
      lock.unlock();
      status = walk_folder(std::move(folder));
    }
    if (!status.ok()) fail(std::move(status));
    lock.lock();
    if (--busy_ == 0) changed_.notify_all();
  }
}

Status FolderWalk::walk_folder(Folder folder) {
  const int fd = open_below(root_.fd(), folder.path, O_RDONLY | O_DIRECTORY);
  if (fd < 0) {
    const int os_errno = errno;
    SPK_TRY(folder_error(os_errno, root_, folder.path));
    warn(kLoop, folder.path);
    return {};
  }
  auto opened = std::make_shared<OpenFolder>();
  opened->names = std::make_unique<NameStream>(fd);
  struct stat info;
  if (!opened->names->is_open() || fstat(fd, &info) != 0) {
    return Status::from_errno(errno, "cannot read the folder")
        .at_path(shown_path(root_, folder.path));
  }
  if (is_among(folder.parent.get(), info.st_dev, info.st_ino)) {
    warn(kLoop, folder.path);
    return {};
  }
  if (folder.level == Level::kNested && folder.label == kNoClass && !plan_.classes.empty()) {
    return folder_error(ENOENT, root_, folder.path);  // came into being after the classes were read
  }
  opened->self =
      std::make_shared<const Ancestor>(Ancestor{info.st_dev, info.st_ino, folder.parent});
  opened->folder = std::move(folder);
  return read_names(opened);
}

Status FolderWalk::read_names(const std::shared_ptr<const OpenFolder>& folder) {
  Batch batch{folder, {}};
  const bool at_root = folder->folder.path.empty();
  while (const dirent* entry = folder->names->next()) {
    const std::string name(entry->d_name);
    if (const char* reason = why_ignored(name, at_root)) {
      ignore(reason);
      continue;
    }
    if (entry->d_type == DT_DIR) {
      SPK_TRY(enter(*folder, name));
      continue;
    }
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN && !is_wanted(name)) {
      ignore(kNotPicture);
      continue;
    }
    batch.names.push_back(name);
    if (batch.names.size() == kBatchNames) {
      SPK_TRY(hand_out(std::move(batch)));
      batch = {folder, {}};
    }
  }
  if (errno != 0) {
    return Status::from_errno(errno, "cannot read the folder")
        .at_path(shown_path(root_, folder->folder.path));
  }
  return look_at_batch(batch);
}

// To another thread, if not all have enough to do already.
Status FolderWalk::hand_out(Batch batch) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return {};
    if (batches_.size() < most_batches_) {
      batches_.push_back(std::move(batch));
      changed_.notify_one();
      return {};
    }
  }
  return look_at_batch(batch);
}

Status FolderWalk::look_at_batch(const Batch& batch) {
  for (const std::string& name : batch.names) SPK_TRY(look_at(*batch.folder, name));
  return {};
}

bool FolderWalk::is_wanted(std::string_view name) const noexcept {
  return plan_.every_file || is_picture_name(name);
}

Status FolderWalk::look_at(const OpenFolder& folder, const std::string& name) {
  const bool picture = is_wanted(name);
  const int fd = folder.names->fd();
  struct stat info;
  if (fstatat(fd, name.c_str(), &info, 0) != 0) {
    const int os_errno = errno;
    const char* reject = reject_of_errno(os_errno);
    // A link out of reach without a picture's name may be to a folder of any size: an error.
    if (reject == nullptr || (!picture && reject != kRejectNotFound)) {
      return Status::from_errno(os_errno, "cannot look at")
          .at_path(shown_path(root_, folder.folder.path) + "/" + escape_bytes(name));
    }
    if (picture) return deliver(folder, name, kUnknownSize, kUnknownMtime, reject);
    warn(os_errno == ELOOP ? kLoop : kDangling, folder.folder.path + "/" + name);
    ignore(kDangling);
    return {};
  }
  if (S_ISDIR(info.st_mode)) return enter(folder, name);
  if (!picture) {
    ignore(kNotPicture);
    return {};
  }
  if (!S_ISREG(info.st_mode)) {
    return deliver(folder, name, kUnknownSize, kUnknownMtime, kRejectNotRegular);
  }
  return deliver(folder, name, static_cast<uint64_t>(info.st_size), mtime_ns_of(info), "");
}

Status FolderWalk::enter(const OpenFolder& folder, const std::string& name) {
  const Folder& from = folder.folder;
  Folder next;
  next.path = from.path.empty() ? name : str_cat(from.path, "/", name);
  next.parent = folder.self;
  next.split = from.split;
  next.label = from.label;
  if (from.level == Level::kRootOfSplits) {
    const auto& names = plan_.split_names;
    const auto split = std::find(names.begin(), names.end(), name);
    if (split == names.end()) {
      // Not there when the splits were read, or a loop: the walk tells which.
      next.level = Level::kNested;
    } else {
      next.level = Level::kTop;
      next.split = static_cast<uint32_t>(split - names.begin());
    }
  } else if (from.level == Level::kTop) {
    const auto& classes = plan_.classes;
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found != classes.end() && *found == name) {
      next.label = static_cast<uint32_t>(found - classes.begin());
    }
  }
  const std::lock_guard lock(mutex_);
  folders_.push_back(std::move(next));
  changed_.notify_one();
  return {};
}

Status FolderWalk::deliver(const OpenFolder& folder, const std::string& name, uint64_t size_bytes,
                           int64_t mtime_ns, std::string reject) {
  const Folder& from = folder.folder;
  SampleEntry entry;
  entry.path = from.path.empty() ? name : str_cat(from.path, "/", name);
  entry.split = from.split;
  entry.size_bytes = size_bytes;
  entry.mtime_ns = mtime_ns;
  entry.reject = std::move(reject);
  const std::string& prefix = plan_.splits[from.split].prefix;
  if (from.level == Level::kRootOfSplits) {
    entry.key = "../" + entry.path;  // seen from the split that has to report it
  } else if (!prefix.empty()) {
    entry.key = entry.path.substr(prefix.size());
  } else {
    entry.key.swap(entry.path);  // no path: it is the key
  }
  const bool wants_label = !plan_.classes.empty() && !plan_.splits[from.split].unlabelled;
  if (from.label != kNoClass) {
    entry.int_labels.push_back(from.label);
    class_counts_[from.split][from.label].fetch_add(1, std::memory_order_relaxed);
  } else if ((wants_label || from.level == Level::kRootOfSplits) && entry.reject.empty()) {
    entry.reject = kRejectNoClass;
  }
  return sink_(std::move(entry));
}

}  // namespace spk
