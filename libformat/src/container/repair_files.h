// The files that a repair works with beside those of the pack, and what becomes of those that a
// killed one left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/directory.h"

namespace spk {

// Where the manifest waits while the pack is neither what it was nor what it will be.
inline constexpr std::string_view kManifestAsideName = "manifest.json.before-repair";

// Where a shard is written before it takes its place.
std::string repair_temporary_name(uint32_t shard);

// Readers take no locks; this one keeps two repairs apart, as long as `dir` is open. kBusy where
// another one is at work. Where the file system has no locks, it is left to the user.
Status lock_for_repair(const Directory& dir);

// kExists where a folder stands in the place of a file of the pack: a file cannot take its place,
// and what is in it is not repair's to remove.
Status refuse_folders(const Directory& dir);

// Renames a file that is no part of the pack to a name that is free; that name.
Result<std::string> put_aside_foreign(const Directory& dir, const std::string& name);

// What killed repairs left. `dir` must be locked.
Status remove_repair_leftovers(const Directory& dir);

}  // namespace spk
