#include "commands/diff.h"

#include <map>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_diff.h"
#include "commands/pack_set.h"
#include "commands/sample_facts.h"

namespace spk {

namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

class DiffCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("diff", "Compare two packs sample by sample, matched by key");
    sub_->add_option("A", path_a_, "A pack, or a folder of splits")->required();
    sub_->add_option("B", path_b_, "The other one")->required();
    sub_->add_flag("--summary", summary_, "Only the counts");
    sub_->add_flag("--exact", exact_, "Also differ where only order, geometry or settings do");
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    Result<std::vector<NamedPack>> a = open_packs(path_a_);
    if (!a.ok()) return ui.fail(a.status());
    Result<std::vector<NamedPack>> b = open_packs(path_b_);
    if (!b.ok()) return ui.fail(b.status());
    if (a->front().split.empty() != b->front().split.empty()) {
      const std::string& splits = a->front().split.empty() ? path_b_ : path_a_;
      return ui.fail(Status(Code::kMismatch, "one is a pack, the other a folder of splits")
                         .at_path(splits)
                         .with_hint("name one of its splits"));
    }
    std::map<std::string, std::pair<const NamedPack*, const NamedPack*>> pairs;
    for (const NamedPack& named : *a) pairs[named.split].first = &named;
    for (const NamedPack& named : *b) pairs[named.split].second = &named;
    bool same = true;
    for (const auto& [split, pair] : pairs) {
      if (pair.first == nullptr || pair.second == nullptr) {
        same = false;
        show_lone_split(split, pair.first != nullptr, ui);
        continue;
      }
      const Result<PackDifference> found = diff_packs(*pair.first->pack, *pair.second->pack);
      if (!found.ok()) return ui.fail(found.status());
      const Status shown = show(*pair.first, *pair.second, *found, ui);
      if (!shown.ok()) return ui.fail(shown);
      same = same && found->same_data() && (found->identical || !exact_);
    }
    return same ? kExitDone : kExitNo;
  }

 private:
  static void show_lone_split(const std::string& split, bool in_a, Ui& ui) {
    if (ui.json_mode()) {
      JsonWriter json = json_line("split");
      json.member("kind", in_a ? "removed" : "added").member_bytes("split", split);
      (void)ui.json(json.end_object());
      return;
    }
    (void)ui.out(str_cat("split ", escape_bytes(split), " is only in ", in_a ? "A" : "B"));
  }

  Status show(const NamedPack& a, const NamedPack& b, const PackDifference& found, Ui& ui) const {
    if (!summary_) {
      const FactReader facts_a(*a.pack);
      const FactReader facts_b(*b.pack);
      for (const Difference& difference : found.samples) {
        SampleFacts x;
        SampleFacts y;
        if (difference.in_a != Difference::kNone) {
          SPK_ASSIGN(x, facts_a.read(difference.in_a));
        }
        if (difference.in_b != Difference::kNone) {
          SPK_ASSIGN(y, facts_b.read(difference.in_b));
        }
        const bool more = ui.json_mode() ? show_json(a.split, difference, x, y, ui)
                                         : show_text(a.split, difference, x, y, ui);
        if (!more) return {};
      }
    }
    if (ui.json_mode()) {
      summarize_json(a.split, found, ui);
    } else {
      summarize(a.split, found, ui);
    }
    return {};
  }

  static bool show_text(const std::string& split, const Difference& difference,
                        const SampleFacts& x, const SampleFacts& y, Ui& ui) {
    const bool in_a = difference.in_a != Difference::kNone;
    std::string line = str_cat(difference_name(difference.kind), '\t',
                               escape_bytes(with_split(split, in_a ? x.key : y.key)));
    if (difference.kind == DifferenceKind::kRelabelled) {
      line += str_cat('\t', or_dash(labels_text(x)), " -> ", or_dash(labels_text(y)));
    }
    if (difference.kind == DifferenceKind::kChanged) {
      const auto text = [](const SampleFacts& facts) {
        return facts.bytes ? str_cat(*facts.bytes, " bytes ", to_hex(facts.checksum)) : "-";
      };
      line += str_cat('\t', text(x), " -> ", text(y));
    }
    return ui.out(line);
  }

  static bool show_json(const std::string& split, const Difference& difference,
                        const SampleFacts& x, const SampleFacts& y, Ui& ui) {
    const bool in_a = difference.in_a != Difference::kNone;
    JsonWriter json = json_line("difference");
    json.member("kind", difference_name(difference.kind));
    if (!split.empty()) json.member_bytes("split", split);
    json.member_bytes("key", in_a ? x.key : y.key);
    const auto side = [&](std::string_view name, uint64_t sample, const SampleFacts& facts) {
      if (sample == Difference::kNone) return;
      json.key(name).begin_object().member("sample", sample);
      json.key("labels").begin_array();
      for (const int64_t label : facts.int_labels) json.value(label);
      for (const double label : facts.float_labels) json.value(label);
      json.end_array();
      if (facts.bytes) {
        json.member("bytes", *facts.bytes).member("checksum", to_hex(facts.checksum));
      }
      json.end_object();
    };
    side("a", difference.in_a, x);
    side("b", difference.in_b, y);
    return ui.json(json.end_object());
  }

  static void summarize(const std::string& split, const PackDifference& found, Ui& ui) {
    const std::string start = split.empty() ? "" : str_cat(escape_bytes(split), ": ");
    if (found.identical) {
      (void)ui.out(str_cat(start, "identical: ", count_of(found.same, "sample")));
      return;
    }
    (void)ui.out(str_cat(start, format_count(found.same), " same, ", format_count(found.added),
                         " added, ", format_count(found.removed), " removed, ",
                         format_count(found.relabelled), " relabelled, ",
                         format_count(found.changed), " changed"));
    std::string others;
    const auto add = [&](bool differs, std::string_view what) {
      if (differs) others += str_cat(others.empty() ? "" : ", ", what);
    };
    add(found.fields_differ, "fields");
    add(found.classes_differ, "class names");
    add(found.order_differs, "order");
    add(found.geometry_differs, "geometry (chunks, shards)");
    add(found.settings_differ, "settings");
    if (!others.empty()) (void)ui.out(str_cat(start, "also different: ", others));
  }

  static void summarize_json(const std::string& split, const PackDifference& found, Ui& ui) {
    JsonWriter json = json_line("summary");
    if (!split.empty()) json.member_bytes("split", split);
    json.member("identical", found.identical).member("same_data", found.same_data());
    json.member("same", found.same).member("added", found.added);
    json.member("removed", found.removed).member("relabelled", found.relabelled);
    json.member("changed", found.changed).member("fields_differ", found.fields_differ);
    json.member("classes_differ", found.classes_differ);
    json.member("order_differs", found.order_differs);
    json.member("geometry_differs", found.geometry_differs);
    json.member("settings_differ", found.settings_differ);
    (void)ui.json(json.end_object());
  }

  CLI::App* sub_ = nullptr;
  std::string path_a_;
  std::string path_b_;
  bool summary_ = false;
  bool exact_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff_command() { return std::make_unique<DiffCommand>(); }

}  // namespace spk
