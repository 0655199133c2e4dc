#include "commands/pack_set.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace spk {

Result<bool> is_pack_directory(const Directory& directory) {
  return directory.exists(kManifestName);
}

Result<bool> holds_whole_pack(const Directory& directory) {
  SPK_ASSIGN(const bool has_manifest, directory.exists(kManifestName));
  if (!has_manifest) return false;
  return directory.exists(kIndexName);
}

Status refuse_inside_pack(const std::string& path) {
  std::error_code failed;
  std::filesystem::path folder =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path), failed);
  if (failed) return {};  // who opens it is told why
  if (!folder.has_filename()) folder = folder.parent_path();
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    const Result<Directory> opened = Directory::open(folder.string());
    if (!opened.ok()) continue;
    SPK_ASSIGN(const bool is_pack, holds_whole_pack(*opened));
    if (!is_pack) continue;
    return invalid_argument("this is inside a pack, which holds nothing but its own files")
        .at_path(path)
        .with_hint("choose another folder");
  }
  return {};
}

namespace {

// A split that lost its manifest must be told, not passed over.
Result<bool> is_split(const Directory& directory, std::string_view name) {
  SPK_ASSIGN(const bool is_pack, is_pack_directory(directory));
  if (is_pack || name.ends_with(".partial")) return is_pack;
  SPK_ASSIGN(const bool has_index, directory.exists(kIndexName));
  if (has_index) return true;
  return directory.exists(shard_file_name(0));
}

}  // namespace

Result<std::vector<std::string>> list_splits(const Directory& directory) {
  std::vector<std::string> names;
  Status unreadable;
  SPK_ASSIGN(const auto entries, directory.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kDirectory && entry.type != EntryType::kSymlink) continue;
    Result<Directory> inner = Directory::open(directory.path_of(entry.name));
    Result<bool> is_pack = inner.ok() ? is_split(*inner, entry.name) : Result<bool>(inner.status());
    if (is_pack.ok()) {
      if (*is_pack) names.push_back(entry.name);
      continue;
    }
    const Code code = is_pack.status().code();
    // A link that leads nowhere or to a file is no split; a folder out of reach may be one.
    if (code == Code::kNotFound || code == Code::kNotThisFormat) continue;
    if (unreadable.ok()) unreadable = std::move(is_pack).status();
  }
  if (!names.empty() && !unreadable.ok()) return unreadable;
  return names;
}

Result<std::vector<NamedPack>> open_packs(const std::string& path, const OpenOptions& options) {
  std::vector<NamedPack> packs;
  SPK_ASSIGN(const Directory directory, Directory::open(path));
  SPK_ASSIGN(const bool is_pack, is_pack_directory(directory));
  std::vector<std::string> splits;
  if (!is_pack) {
    SPK_ASSIGN(splits, list_splits(directory));
  }
  if (splits.empty()) {  // whatever else it is, this says so best
    SPK_ASSIGN(auto pack, Pack::open(path, options));
    packs.push_back({"", path, std::move(pack)});
    return packs;
  }
  for (const std::string& split : splits) {
    const std::string split_path = directory.path_of(split);
    SPK_ASSIGN(auto pack, Pack::open(split_path, options));
    packs.push_back({split, split_path, std::move(pack)});
  }
  return packs;
}

std::string with_split(const std::string& split, std::string_view key) {
  return split.empty() ? std::string(key) : str_cat(split, '/', key);
}

}  // namespace spk
