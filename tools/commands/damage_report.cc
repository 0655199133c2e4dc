#include "commands/damage_report.h"

#include "base/text.h"
#include "commands/pack_set.h"

namespace spk {

Result<std::vector<PackPath>> pack_paths(const std::string& path) {
  SPK_ASSIGN(const Directory directory, Directory::open(path));
  SPK_ASSIGN(const bool is_pack, is_pack_directory(directory));
  std::vector<PackPath> paths;
  if (!is_pack) {
    SPK_ASSIGN(const std::vector<std::string> splits, list_splits(directory));
    for (const std::string& split : splits) paths.push_back({split, directory.path_of(split)});
  }
  if (paths.empty()) paths.push_back({"", path});
  return paths;
}

void show_damage(Ui& ui, const std::string& split, const Damage& damage) {
  if (ui.json_mode()) {
    JsonWriter json = json_line("damage");
    if (!split.empty()) json.member_bytes("split", split);
    json.member("kind", damage_kind_name(damage.kind)).member("code", code_name(damage.code));
    json.member_bytes("file", damage.file);
    if (damage.shard != Status::kNoShard) json.member("shard", damage.shard);
    if (damage.chunk >= 0) json.member("chunk", damage.chunk);
    if (damage.sample != Damage::kNoSample) json.member("sample_in_shard", damage.sample);
    if (!damage.key.empty()) json.member_bytes("key", damage.key);
    if (damage.offset != Status::kNoOffset) json.member("offset", damage.offset);
    json.member_bytes("what", damage.what).member("samples_lost", damage.samples_lost);
    (void)ui.json(json.end_object());
    return;
  }
  std::string line = escape_bytes(with_split(split, damage.file));
  if (damage.offset != Status::kNoOffset) line += str_cat(" @", damage.offset);
  if (damage.chunk >= 0) line += str_cat(" chunk ", damage.chunk);
  if (!damage.key.empty()) line += str_cat(" key '", escape_bytes(damage.key), "'");
  line += ": " + escape_bytes(damage.what);
  if (damage.samples_lost > 1 || (damage.samples_lost == 1 && damage.key.empty())) {
    line += str_cat(" (samples lost: ", format_count(damage.samples_lost), ")");
  }
  (void)ui.out(line);
}

}  // namespace spk
