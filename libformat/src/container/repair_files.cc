#include "container/repair_files.h"

#include <sys/file.h>

#include <cerrno>
#include <vector>

#include "base/text.h"
#include "container/pack.h"
#include "container/pack_facts.h"

namespace spk {

namespace {

constexpr std::string_view kShardSuffix = ".repair.tmp";
constexpr int kMostNames = 1000;

bool is_leftover(std::string_view name) {
  if (name == kManifestAsideName || name.ends_with(kShardSuffix)) return true;
  for (const std::string_view sealed : {kIndexName, kRejectsName, kManifestName}) {
    if (name.starts_with(str_cat(sealed, ".tmp-"))) return true;  // as PendingFile calls them
  }
  return false;
}

}  // namespace

std::string repair_temporary_name(uint32_t shard) {
  return str_cat(shard_file_name(shard), kShardSuffix);
}

Status lock_for_repair(const Directory& dir) {
  if (::flock(dir.fd(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  return Status(Code::kBusy, "another repair of this pack is running").at_path(dir.path());
}

Status refuse_folders(const Directory& dir) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kDirectory) continue;
    if (entry.name != kIndexName && entry.name != kManifestName && entry.name != kRejectsName &&
        !shard_number(entry.name)) {
      continue;
    }
    return Status(Code::kExists, "a folder stands where a file of the pack belongs")
        .at_path(dir.path_of(entry.name))
        .with_hint("nothing was changed; move the folder away, then repair again");
  }
  return {};
}

Result<std::string> put_aside_foreign(const Directory& dir, const std::string& name) {
  std::string away = name + ".foreign";
  for (int number = 2;; ++number) {
    Status status = dir.rename_no_replace(name, away);
    if (status.ok()) return away;
    if (status.code() != Code::kExists || number > kMostNames) return status;
    away = str_cat(name, ".foreign-", number);
  }
}

Status remove_repair_leftovers(const Directory& dir) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type == EntryType::kRegular && is_leftover(entry.name)) {
      SPK_TRY(dir.unlink(entry.name));
    }
  }
  return {};
}

}  // namespace spk
