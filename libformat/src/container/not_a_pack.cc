#include "container/not_a_pack.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "container/pack.h"

namespace spk {

namespace {

constexpr std::string_view kPartialSuffix = ".partial";
constexpr size_t kMostNamed = 8;

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_there(const std::string& path) { return Directory::open(path).ok(); }

// "PATH/train, PATH/val" for the directories in it that are packs.
std::string packs_within(const Directory& dir, const std::vector<DirectoryEntry>& entries) {
  std::string names;
  size_t count = 0;
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kDirectory) continue;
    const auto inner = Directory::open_at(dir, entry.name);
    if (!inner.ok()) continue;
    const auto has_manifest = inner->exists(kManifestName);
    if (!has_manifest.ok() || !*has_manifest) continue;
    if (count++ == kMostNamed) return names + ", ...";
    if (!names.empty()) names += ", ";
    names += escape_bytes(dir.path_of(entry.name));
  }
  return names;
}

}  // namespace

Status not_a_directory(const std::string& path, Status status) {
  const std::string_view name = without_slashes(path);
  if (status.code() == Code::kNotFound) {
    const std::string partial = str_cat(name, kPartialSuffix);
    if (is_there(partial)) {
      return std::move(status).with_hint(
          str_cat(escape_bytes(partial),
                  " is unfinished: the `stripepack pack` line that began it continues it"));
    }
    return status;
  }
  if (status.code() == Code::kNotThisFormat) {
    return Status(Code::kNotThisFormat, "this is a file; a pack is a directory")
        .at_path(path)
        .with_hint(base_name(name) == kManifestName || base_name(name) == kIndexName
                       ? "open the directory that it lies in"
                       : "");
  }
  return status;
}

Status not_a_pack(const Directory& dir) {
  const auto refuse = [&](Code code, std::string what, std::string_view hint) {
    return Status(code, std::move(what)).at_path(dir.path()).with_hint(hint);
  };
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  const auto has = [&](std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const DirectoryEntry& entry) { return entry.name == name; });
  };
  const bool has_shards =
      std::any_of(entries.begin(), entries.end(), [](const DirectoryEntry& entry) {
        return entry.name.starts_with("shard-") && entry.name.ends_with(".spks");
      });
  if (base_name(without_slashes(dir.path())).ends_with(kPartialSuffix)) {
    return refuse(Code::kNotThisFormat, "this is an unfinished pack",
                  "the `stripepack pack` line that began it continues it");
  }
  if (has(kManifestName) && has_shards) {
    return refuse(Code::kDamaged, str_cat(kIndexName, " is missing"),
                  "`stripepack repair` rebuilds it from the shards");
  }
  if (has(kIndexName) || has_shards) {
    return refuse(Code::kNotThisFormat,
                  str_cat("this is an unfinished pack, or one that lost its ", kManifestName),
                  "if all its shards are there, `stripepack repair` rebuilds it");
  }
  const std::string packs = packs_within(dir, entries);
  if (!packs.empty()) {
    return refuse(Code::kNotThisFormat, "this is a folder of packs, one for each split",
                  str_cat("open one of ", packs));
  }
  if (entries.empty()) return refuse(Code::kNotThisFormat, "this directory is empty", "");
  return refuse(Code::kNotThisFormat,
                str_cat("not a pack: there is no ", kManifestName, " among its ",
                        count_of(entries.size(), "entry", "entries")),
                str_cat("`stripepack pack ", escape_bytes(dir.path()),
                        " OUT` makes a pack of a folder of pictures"));
}

}  // namespace spk
