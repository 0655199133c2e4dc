#include "pipeline/stage_plan.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/text.h"
#include "container/pack_facts.h"
#include "pipeline/pack_files.h"
#include "pipeline/staged_file.h"

namespace spk {

namespace {

// Of the files beside the shards, as the pack has them.
Result<uint64_t> companion_bytes(const Directory& pack) {
  uint64_t bytes = 0;
  std::vector<std::string> names = stage_companions();
  names.emplace_back(kManifestName);
  for (const std::string& name : names) {
    const auto info = pack.stat(name);
    if (!info.ok() && info.status().code() == Code::kNotFound) continue;
    if (!info.ok()) return info.status();
    bytes += info->size_bytes;
  }
  return bytes;
}

// Nothing where the file is that shard; otherwise what it is instead.
Result<std::optional<std::string>> differs_from_shard(const Directory& dir, const std::string& name,
                                                      uint32_t shard, const ShardRow& row) {
  auto file = File::open_read(dir, name);
  Status status = file.ok() ? check_shard_file(*file, shard, row) : file.status();
  if (status.ok()) return std::optional<std::string>();
  const Code code = status.code();
  if (code == Code::kNotThisFormat) return std::optional<std::string>("is not a regular file");
  if (code == Code::kNotFound) return std::optional<std::string>("is a link that leads nowhere");
  if (code == Code::kMismatch || code == Code::kDamaged) {
    return std::optional<std::string>(status.message());
  }
  return status;
}

// Nothing where DIR is a pack with this content; otherwise what it is instead.
std::optional<std::string> differs_from_pack(const StageTask& task) {
  const auto other = Pack::open(task.directory);
  if (!other.ok()) return str_cat("is of a pack that cannot be opened: ", other.status().message());
  if ((*other)->content_id() == task.pack->content_id()) return std::nullopt;
  return str_cat("is of the pack with content id ", (*other)->content_id().to_hex());
}

}  // namespace

std::vector<std::string> stage_companions() {
  return {std::string(kIndexName), std::string(kRejectsName), std::string(kLayoutName),
          std::string(kRunName), std::string(kSha256Name)};
}

void choose_shards(const StageRequest& request, std::vector<StageTask>& tasks) {
  uint64_t before = 0;
  uint64_t left = request.at_most_bytes.value_or(UINT64_MAX);
  bool full = false;
  for (StageTask& task : tasks) {
    const std::vector<ShardRow>& rows = task.pack->shards();
    for (uint32_t shard = 0; shard < rows.size() && !full; ++shard) {
      if (request.node && !request.node->builds(before + shard)) continue;
      full = rows[shard].file_bytes > left;
      if (full) break;
      left -= rows[shard].file_bytes;
      task.shards.push_back(shard);
      task.wanted_bytes += rows[shard].file_bytes;
    }
    task.whole = !request.node && task.shards.size() == rows.size();
    before += rows.size();
  }
}

Status look_at_place(StageTask& task) {
  task.missing.clear();
  task.in_the_way.clear();
  task.is_pack = false;
  task.there_bytes = task.unfinished_bytes = task.other_bytes = 0;
  const std::vector<ShardRow>& rows = task.pack->shards();
  std::vector<bool> there(rows.size(), false);
  const auto dir = Directory::open(task.directory);
  if (!dir.ok() && dir.status().code() == Code::kNotThisFormat) {
    return Status(Code::kExists, "this is no directory").at_path(task.directory);
  }
  if (!dir.ok() && dir.status().code() != Code::kNotFound) return dir.status();
  if (dir.ok()) {
    SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir->list());
    for (const DirectoryEntry& entry : entries) {
      if (is_staging_name(entry.name)) {
        const auto info = dir->stat(entry.name);
        if (info.ok()) task.unfinished_bytes += info->size_bytes;
        continue;
      }
      const auto put_in_the_way = [&](std::string what) {
        const auto info = dir->stat(entry.name);
        task.in_the_way.push_back({entry.name, std::move(what), info.ok() ? info->size_bytes : 0});
      };
      if (entry.name == kManifestName) {
        auto differs = differs_from_pack(task);
        task.is_pack = !differs;
        if (differs) put_in_the_way(std::move(*differs));
        continue;
      }
      const std::optional<uint32_t> shard = shard_number(entry.name);
      if (!shard) continue;
      if (*shard >= rows.size()) {
        put_in_the_way(str_cat("is no shard of this pack, which has ", rows.size()));
        continue;
      }
      SPK_ASSIGN(auto differs, differs_from_shard(*dir, entry.name, *shard, rows[*shard]));
      there[*shard] = !differs;
      if (differs) put_in_the_way(std::move(*differs));
    }
  }
  for (const uint32_t shard : task.shards) {
    if (there[shard]) {
      task.there_bytes += rows[shard].file_bytes;
    } else {
      task.missing.push_back(shard);
    }
  }
  if (task.whole && !task.is_pack) {
    SPK_ASSIGN(task.other_bytes, companion_bytes(task.pack->directory()));
  }
  return {};
}

bool StageRoom::fits() const noexcept {
  return needed_bytes <= free_bytes.value_or(UINT64_MAX) &&
         needed_bytes <= quota.bytes.value_or(UINT64_MAX);
}

StageRoom find_room(const std::string& directory, const std::vector<StageTask>& tasks) {
  StageRoom room;
  uint64_t freed = 0;
  for (const StageTask& task : tasks) {
    room.needed_bytes += task.missing_bytes() + task.other_bytes;
    // They are written over, or are parts of these very shards that another run is writing.
    freed += task.unfinished_bytes;
    for (const StageTask::InTheWay& other : task.in_the_way) freed += other.bytes;
  }
  room.needed_bytes -= std::min(room.needed_bytes, freed);
  std::error_code failed;
  std::filesystem::path folder = std::filesystem::absolute(directory, failed);
  auto opened = Directory::open(folder.string());
  while (!opened.ok() && folder.has_relative_path()) {
    folder = folder.parent_path();
    opened = Directory::open(folder.string());
  }
  if (!opened.ok()) return room;
  if (const auto space = opened->space(); space.ok()) room.free_bytes = space->available_bytes;
  room.quota = quota_left(opened->fd());
  return room;
}

Status refuse_place_in_pack(const std::string& pack, const std::string& directory) {
  std::error_code failed;
  const std::filesystem::path from = std::filesystem::canonical(pack, failed);
  if (failed) return Status::from_errno(failed.value(), "cannot resolve the path").at_path(pack);
  std::filesystem::path into = std::filesystem::weakly_canonical(directory, failed);
  if (failed) {
    return Status::from_errno(failed.value(), "cannot resolve the path").at_path(directory);
  }
  if (!into.has_filename()) into = into.parent_path();
  const auto end = std::mismatch(from.begin(), from.end(), into.begin(), into.end()).first;
  if (end != from.end()) return {};
  return invalid_argument(from == into ? "this is the pack itself"
                                       : "this lies within the pack, which is never changed")
      .at_path(directory)
      .with_hint("name a directory on the node's own disk");
}

}  // namespace spk
