#include "commands/layout.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/stripe_text.h"
#include "container/layout_record.h"
#include "pipeline/claim.h"

namespace spk {

namespace {

// How many chunks the targets serve.
struct Load {
  uint32_t targets = 0;
  uint64_t least = 0;
  uint64_t most = 0;
  double mean = 0;
};

Load load_of(const std::vector<uint32_t>& targets) {
  Load load;
  if (targets.empty()) return load;
  std::vector<uint64_t> chunks(1 + *std::max_element(targets.begin(), targets.end()), 0);
  for (const uint32_t target : targets) chunks[target] += 1;
  load.targets = static_cast<uint32_t>(chunks.size());
  const auto [least, most] = std::minmax_element(chunks.begin(), chunks.end());
  load.least = *least;
  load.most = *most;
  load.mean = static_cast<double>(targets.size()) / static_cast<double>(chunks.size());
  return load;
}

// The layouts of the shards without their targets, and how many have each.
std::map<std::string, uint64_t> kinds_of(const LayoutMap& map) {
  std::map<std::string, uint64_t> kinds;
  for (StripeLayout layout : map.shards) {
    for (StripeComponent& component : layout.components) component.targets.clear();
    kinds[stripe_text(layout)] += 1;
  }
  return kinds;
}

class LayoutCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("layout", "Show how a pack's shards are striped, or record it anew");
    sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
    sub_->add_flag("--refresh", refresh_,
                   "Look at the files; where they lie otherwise than is recorded, add that");
    sub_->add_flag("--shards", shards_, "Each shard's layout and targets");
    CLI::Option* targets = sub_->add_flag(
        "--targets", targets_, "Only the target of each chunk by the current map, one a line");
    add_json_option(*sub_);
    targets->excludes("--json")->excludes("--shards");
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    Result<std::vector<NamedPack>> packs = open_packs(path_);
    if (!packs.ok()) return ui.fail(packs.status());
    for (const NamedPack& named : *packs) {
      if (refresh_) {
        const Status status = refresh(*named.pack, ui);
        if (!status.ok()) return ui.fail(status);
      }
      const Status status = show(named, ui);
      if (!status.ok()) return ui.fail(status);
    }
    return kExitDone;
  }

 private:
  Status refresh(const Pack& pack, Ui& ui) const {
    SPK_ASSIGN(LayoutRecord record, read_layout_record(pack.directory()));
    SPK_ASSIGN(LayoutMap map, look_at_layout(pack));
    map.made = utc_now();
    map.asked = "looked at afterwards";
    const LayoutMap* now = record.current();
    if (now != nullptr && now->digest == map.digest && now->shards == map.shards &&
        now->file_system == map.file_system) {
      ui.note(str_cat(pack.path(), ": the shards lie as is recorded"));
      return {};
    }
    record.chunk_bytes = pack.identity().chunk_bytes();
    record.maps.push_back(std::move(map));
    return write_layout_record(pack.directory(), record);
  }

  Status show(const NamedPack& named, Ui& ui) const {
    SPK_ASSIGN(const LayoutRecord record, read_layout_record(named.pack->directory()));
    SPK_ASSIGN(const std::vector<ChunkPlace> places, chunk_places(*named.pack));
    if (targets_) {
      if (record.current() == nullptr) return {};
      for (const uint32_t target : chunk_targets(record.current()->shards, places)) {
        (void)ui.out(std::to_string(target));
      }
      return {};
    }
    if (!ui.json_mode()) {
      if (!named.split.empty()) (void)ui.out(str_cat("split ", named.split));
      if (record.maps.empty()) {
        (void)ui.out("nothing is recorded; --refresh looks at the files");
        return {};
      }
    }
    for (const LayoutMap& map : record.maps) {
      const Load load = load_of(chunk_targets(map.shards, places));
      const bool current = &map == record.current();
      ui.json_mode() ? print_json(named, map, current, load, ui)
                     : print_text(map, current, load, ui);
    }
    return {};
  }

  void print_text(const LayoutMap& map, bool current, const Load& load, Ui& ui) const {
    (void)ui.out(str_cat("map ", to_hex(map.digest), " of ", map.made, " on ",
                         escape_bytes(map.file_system), current ? " (current)" : ""));
    (void)ui.out("  asked    " + escape_bytes(map.asked));
    if (!map.refused.empty()) (void)ui.out("  refused  " + escape_bytes(map.refused));
    if (map.shards.empty()) (void)ui.out("  got      not told by the file system");
    for (const auto& [text, count] : kinds_of(map)) {
      (void)ui.out(str_cat("  got      ", count_of(count, "shard"), ": ", text));
    }
    if (load.targets != 0) {
      (void)ui.out(str_cat("  chunks   on ", count_of(load.targets, "target"), ", ", load.least,
                           " to ", load.most, " each, ", format_fixed(load.mean, 1),
                           " on average"));
    } else {
      (void)ui.out("  chunks   their targets are not known; the order does not depend on them");
    }
    if (!shards_) return;
    for (size_t shard = 0; shard < map.shards.size(); ++shard) {
      (void)ui.out(str_cat("  ", shard_file_name(static_cast<uint32_t>(shard)), "  ",
                           stripe_text(map.shards[shard])));
    }
  }

  void print_json(const NamedPack& named, const LayoutMap& map, bool current, const Load& load,
                  Ui& ui) const {
    JsonWriter json = json_line("layout");
    if (!named.split.empty()) json.member_bytes("split", named.split);
    json.member("digest", to_hex(map.digest)).member("current", current).member("made", map.made);
    json.member_bytes("file_system", map.file_system).member_bytes("asked", map.asked);
    json.member_bytes("refused", map.refused).member("targets", load.targets);
    json.member("chunks_least", load.least).member("chunks_most", load.most);
    json.member("chunks_mean", load.mean).key("shards").begin_array();
    for (const StripeLayout& layout : map.shards) write_stripe_layout(json, layout);
    (void)ui.json(json.end_array().end_object());
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  bool refresh_ = false;
  bool shards_ = false;
  bool targets_ = false;
};

}  // namespace

std::unique_ptr<Command> make_layout_command() { return std::make_unique<LayoutCommand>(); }

}  // namespace spk
