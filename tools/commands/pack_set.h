// What a user names as a pack: one pack, or a folder of splits that is one pack each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "container/pack.h"

namespace spk {

struct NamedPack {
  std::string split;  // empty where PATH is a pack itself
  std::string path;
  std::shared_ptr<Pack> pack;
};

// Whether DIRECTORY holds a manifest of its own.
Result<bool> is_pack_directory(const Directory& directory);

// Whether it holds a manifest and an index: what other programs keep may have one of the names.
Result<bool> holds_whole_pack(const Directory& directory);

// kInvalidArgument where PATH, which need not be there, lies inside a pack: packs hold nothing but
// their own files. A pack itself is no such place.
Status refuse_inside_pack(const std::string& path);

// The names of a folder's splits, in byte order: the directories in it (links to such as well) that
// are packs, even such as lost their manifest. Empty where there is none. Unfinished packs
// ("train.partial") do not count.
Result<std::vector<std::string>> list_splits(const Directory& directory);

// Opens the pack at PATH, or every split of it. kNotThisFormat where it is neither.
Result<std::vector<NamedPack>> open_packs(const std::string& path, const OpenOptions& options = {});

// "train/a.jpg" in messages and listings: the key, after its split where there are splits.
std::string with_split(const std::string& split, std::string_view key);

}  // namespace spk
