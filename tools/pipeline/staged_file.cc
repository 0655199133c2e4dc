#include "pipeline/staged_file.h"

#include <sys/file.h>

#include <cerrno>

#include "base/text.h"
#include "io/atomic_file.h"

namespace spk {

namespace {

constexpr std::string_view kMark = ".staging";

enum class Lock { kMine, kOthers, kNone };

Lock lock(const File& file) {
  if (::flock(file.fd(), LOCK_EX | LOCK_NB) == 0) return Lock::kMine;
  return errno == EWOULDBLOCK ? Lock::kOthers : Lock::kNone;
}

Result<File> open_or_create(const Directory& dir, const std::string& name) {
  auto file = File::create(dir, name);
  if (file.ok() || file.status().code() != Code::kExists) return file;
  return File::open_write(dir, name);
}

// That FILE is what has this name now: it may have been published or removed before it was locked.
Result<bool> has_name(const Directory& dir, const std::string& name, const File& file) {
  SPK_ASSIGN(const EntryInfo mine, file.info());
  const auto named = dir.stat(name);
  if (!named.ok() && named.status().code() == Code::kNotFound) return false;
  if (!named.ok()) return named.status();
  return named->device == mine.device && named->inode == mine.inode;
}

}  // namespace

Result<std::optional<StagedFile>> StagedFile::claim(const Directory& dir, std::string_view name) {
  const std::string temporary = str_cat(name, kMark);
  for (;;) {
    auto file = open_or_create(dir, temporary);
    // It was published or removed between the two ways to open it.
    if (!file.ok() && file.status().code() == Code::kNotFound) {
      SPK_TRY(dir.exists(temporary).status());
      continue;
    }
    if (!file.ok()) return file.status();
    switch (lock(*file)) {
      case Lock::kOthers: return std::optional<StagedFile>();
      case Lock::kNone: {
        const std::string own = str_cat(temporary, "-", unique_token());
        Status renamed = dir.rename(temporary, own);
        if (renamed.code() == Code::kNotFound) continue;  // another one has done so
        SPK_TRY(std::move(renamed));
        StagedFile claimed(dir, std::string(name), own, std::move(*file));
        SPK_TRY(claimed.file_.truncate(0));
        return std::optional(std::move(claimed));
      }
      case Lock::kMine: break;
    }
    SPK_ASSIGN(const bool is_named, has_name(dir, temporary, *file));
    if (!is_named) continue;
    StagedFile claimed(dir, std::string(name), temporary, std::move(*file));
    SPK_TRY(claimed.file_.truncate(0));
    return std::optional(std::move(claimed));
  }
}

StagedFile::~StagedFile() {
  // Before the lock goes with the descriptor.
  if (file_.is_open()) (void)dir_->unlink(temporary_);
}

Status StagedFile::publish() {
  SPK_TRY(file_.sync());
  SPK_TRY(dir_->rename(temporary_, name_));
  SPK_TRY(dir_->sync());
  return file_.close();
}

bool is_staging_name(std::string_view name) noexcept {
  return name.ends_with(kMark) || name.find(str_cat(kMark, "-")) != name.npos;
}

Status remove_staging_leftovers(const Directory& dir) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kRegular || !entry.name.ends_with(kMark)) continue;
    auto file = File::open_write(dir, entry.name);
    if (!file.ok() && file.status().code() == Code::kNotFound) continue;
    if (!file.ok()) return file.status();
    if (lock(*file) != Lock::kMine) continue;
    SPK_ASSIGN(const bool is_named, has_name(dir, entry.name, *file));
    if (is_named) SPK_TRY(dir.unlink(entry.name));
  }
  return {};
}

}  // namespace spk
