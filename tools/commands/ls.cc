#include "commands/ls.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/sample_filter.h"
#include "ui/signals.h"

namespace spk {

namespace {

struct Totals {
  uint64_t samples = 0;
  uint64_t bytes = 0;
};

class LsCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("ls", "List samples: number, key, label, size, dimensions");
    sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
    add_filter_options(*sub_, &filter_);
    sub_->add_option("--sort", sort_, "By storage order (id) or by place in the source (ordinal)")
        ->check(CLI::IsMember({"id", "ordinal"}).description(""))
        ->type_name("id|ordinal");
    auto* keys = sub_->add_flag("--keys", keys_, "Only the keys, one a line");
    auto* keys0 = sub_->add_flag("--keys0", keys0_, "Only the keys, raw, a NUL after each");
    add_json_option(*sub_);
    keys->excludes(keys0);
    keys0->excludes("--json");
    keys->excludes("--json");
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    Result<std::vector<NamedPack>> packs = open_packs(path_);
    if (!packs.ok()) return ui.fail(packs.status());
    // What is wrong with the options shows before the first line.
    std::vector<SampleFilter> filters;
    for (const NamedPack& named : *packs) {
      Result<SampleFilter> filter = SampleFilter::make(filter_, *named.pack, named.split);
      if (!filter.ok()) return ui.fail(filter.status());
      filters.push_back(std::move(*filter));
    }
    if (!ui.json_mode() && !keys_ && !keys0_) {
      (void)ui.out("#sample\tordinal\tbytes\tsize\tlabel\tclass\tkey");
    }
    Totals totals;
    for (size_t i = 0; i < packs->size(); ++i) {
      const Status status = list((*packs)[i], filters[i], ui, &totals);
      if (!status.ok()) return ui.fail(status);
    }
    if (ui.json_mode()) {
      JsonWriter json = json_line("summary");
      json.member("samples", totals.samples).member("bytes", totals.bytes);
      (void)ui.json(json.end_object());
    }
    return kExitDone;
  }

 private:
  Status list(const NamedPack& named, const SampleFilter& filter, Ui& ui, Totals* totals) const {
    const FactReader reader(*named.pack);
    const bool by_ordinal = sort_ == "ordinal";
    std::vector<std::pair<uint64_t, uint64_t>> found;  // ordinal, sample
    for (uint64_t sample = filter.begin(); sample < filter.end(); ++sample) {
      if (cancel_flag()) return cancel_status();
      SPK_ASSIGN(const SampleFacts facts, reader.read(sample));
      if (!filter.matches(facts)) continue;
      if (by_ordinal) {
        found.emplace_back(facts.ordinal, sample);
        continue;
      }
      SPK_ASSIGN(const bool more, print(named, reader, facts, ui, totals));
      if (!more) return {};
    }
    std::sort(found.begin(), found.end());
    for (const auto& [ordinal, sample] : found) {
      if (cancel_flag()) return cancel_status();
      SPK_ASSIGN(const SampleFacts facts, reader.read(sample));
      SPK_ASSIGN(const bool more, print(named, reader, facts, ui, totals));
      if (!more) return {};
    }
    return {};
  }

  // False once nobody reads any more.
  Result<bool> print(const NamedPack& named, const FactReader& reader, const SampleFacts& facts,
                     Ui& ui, Totals* totals) const {
    ++totals->samples;
    totals->bytes += facts.bytes.value_or(0);
    if (ui.json_mode()) return print_json(named, reader, facts, ui);
    const std::string key = with_split(named.split, facts.key);
    if (keys0_) return ui.out(key, '\0');
    if (keys_) return ui.out(escape_bytes(key));
    const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
    const std::string* name = reader.class_name(facts);
    return ui.out(str_cat(facts.sample, '\t', facts.ordinal, '\t',
                          facts.bytes ? str_cat(*facts.bytes) : "-", '\t',
                          or_dash(dimensions_text(facts)), '\t', or_dash(labels_text(facts)), '\t',
                          name != nullptr ? escape_bytes(*name) : "-", '\t', escape_bytes(key)));
  }

  static Result<bool> print_json(const NamedPack& named, const FactReader& reader,
                                 const SampleFacts& facts, Ui& ui) {
    JsonWriter json = json_line("sample");
    if (!named.split.empty()) json.member_bytes("split", named.split);
    json.member("sample", facts.sample).member("ordinal", facts.ordinal);
    json.member_bytes("key", facts.key);
    json.key("labels").begin_array();
    for (const int64_t label : facts.int_labels) json.value(label);
    for (const double label : facts.float_labels) json.value(label);
    json.end_array();
    if (const std::string* name = reader.class_name(facts)) json.member_bytes("class", *name);
    if (facts.width) json.member("width", *facts.width);
    if (facts.height) json.member("height", *facts.height);
    if (facts.channels) json.member("channels", *facts.channels);
    if (facts.bytes) {
      SPK_ASSIGN(const SampleLocation place,
                 named.pack->locate(facts.sample, main_blob_field(named.pack->schema())));
      json.member("bytes", *facts.bytes).member("checksum", to_hex(facts.checksum));
      json.member("shard", place.shard).member("offset", place.offset);
    }
    return ui.json(json.end_object());
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  SampleFilterOptions filter_;
  std::string sort_ = "id";
  bool keys_ = false;
  bool keys0_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ls_command() { return std::make_unique<LsCommand>(); }

}  // namespace spk
