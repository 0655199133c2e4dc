// How verify and repair tell of damage.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "container/damage.h"
#include "ui/ui.h"

namespace spk {

struct PackPath {
  std::string split;  // empty where PATH is a pack itself
  std::string path;
};

// PATH itself, or each split in it. Opens nothing: what is damaged must be found as well. Where
// PATH holds neither a manifest nor splits it is taken for a pack, and verifying says what it is.
Result<std::vector<PackPath>> pack_paths(const std::string& path);

// One damage: a line (file, place, key, what) or an object {"type": "damage", ...}.
void show_damage(Ui& ui, const std::string& split, const Damage& damage);

}  // namespace spk
