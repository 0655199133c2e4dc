// The parallel walk of a folder of pictures, used by FolderSource.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "io/directory.h"
#include "sources/source.h"

namespace spk {

// A folder on the way from the top of the file system to the one being walked. Meeting one of them
// again below is a loop.
struct Ancestor {
  dev_t device = 0;
  ino_t inode = 0;
  std::shared_ptr<const Ancestor> parent;
};
bool is_among(const Ancestor* chain, dev_t device, ino_t inode) noexcept;
// `root` and all folders that contain it.
Result<std::shared_ptr<const Ancestor>> ancestors_of(const Directory& root);

// The names of the folders directly in `path` (relative to root), in byte order; symlinks to
// folders count, loops do not. *has_pictures: whether files with a picture's name (or EVERY_FILE
// counts) lie there, too.
Result<std::vector<std::string>> list_folders(const Directory& root, const std::string& path,
                                              const Ancestor* chain, bool every_file,
                                              bool* has_pictures);

class FolderWalk {
 public:
  static constexpr uint32_t kNoClass = UINT32_MAX;

  struct Split {
    std::string prefix;       // "train/", or empty
    bool unlabelled = false;  // pictures directly in it are samples
  };
  struct Plan {
    bool root_holds_splits = false;
    std::vector<Split> splits;
    std::vector<std::string> split_names;  // as in Listing::splits
    std::vector<std::string> classes;      // empty: no labels at all
    bool every_file = false;               // not only those with a picture's name
  };

  FolderWalk(const Directory& root, std::shared_ptr<const Ancestor> ancestors, Plan plan,
             const Source::Sink& sink);

  // Returns when all is walked, or with the first error.
  Status run(unsigned threads);

  // After run(): pictures of each class, by split.
  std::vector<std::vector<uint64_t>> class_counts() const;
  const std::map<std::string, uint64_t>& ignored() const { return ignored_; }
  const Warnings& warnings() const { return warnings_; }

 private:
  bool is_wanted(std::string_view name) const noexcept;
  enum class Level { kRootOfSplits, kTop, kNested };
  struct Folder {
    std::string path;  // relative to root; empty: the root itself
    std::shared_ptr<const Ancestor> parent;
    uint32_t split = 0;
    uint32_t label = kNoClass;
    Level level = Level::kNested;
  };
  struct OpenFolder;
  struct Batch {
    std::shared_ptr<const OpenFolder> folder;
    std::vector<std::string> names;
  };

  void work();
  void fail(Status status);
  Status walk_folder(Folder folder);
  Status read_names(const std::shared_ptr<const OpenFolder>& folder);
  Status look_at_batch(const Batch& batch);
  Status look_at(const OpenFolder& folder, const std::string& name);
  Status hand_out(Batch batch);
  Status enter(const OpenFolder& folder, const std::string& name);
  Status deliver(const OpenFolder& folder, const std::string& name, uint64_t size_bytes,
                 int64_t mtime_ns, std::string reject);
  void ignore(const char* reason);
  void warn(const char* kind, const std::string& path);

  const Directory& root_;
  std::shared_ptr<const Ancestor> ancestors_;
  Plan plan_;
  const Source::Sink& sink_;
  std::vector<std::vector<std::atomic<uint64_t>>> class_counts_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<Folder> folders_;  // a stack, so that few are open at once
  std::vector<Batch> batches_;
  size_t most_batches_ = 0;
  size_t busy_ = 0;
  bool stop_ = false;
  Status error_;
  std::map<std::string, uint64_t> ignored_;
  Warnings warnings_;
};

}  // namespace spk
