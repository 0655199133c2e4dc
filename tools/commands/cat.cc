#include "commands/cat.h"

#include <optional>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/sample_facts.h"
#include "sinks/blob_copy.h"
#include "ui/signals.h"

namespace spk {

namespace {

struct Found {
  const NamedPack* named = nullptr;
  uint64_t sample = 0;
};

// `key` as typed; where nothing has that key and it holds a backslash, as ls prints keys.
Result<uint64_t> find_typed_key(const Pack& pack, const std::string& key) {
  Result<uint64_t> sample = pack.find_key(key);
  if (sample.ok() || sample.status().code() != Code::kNotFound) return sample;
  if (key.find('\\') != std::string::npos) {
    const Result<std::string> raw = unescape_bytes(key);
    if (raw.ok()) sample = pack.find_key(*raw);
    if (sample.ok() || sample.status().code() != Code::kNotFound) return sample;
  }
  return std::move(sample)
      .status()
      .at_path(pack.path())
      .with_hint("`stripepack ls --keys` prints all keys");
}

class CatCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("cat", "Write one sample's bytes to standard output, checked");
    sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
    auto* key = sub_->add_option("KEY", key_, "The sample's key; with splits SPLIT/KEY");
    auto* id = add_count_option(*sub_, "--id", &typed_id_, "The sample's number in storage order")
                   ->excludes(key);
    key->excludes(id);
    sub_->add_option("--field", field_, "The field; by default `image`")->type_name("NAME");
    sub_->add_flag("--force", force_, "Write to a terminal as well");
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    if (sub_->count("--id") > 0) id_ = typed_id_;
    if (sub_->count("KEY") == 0 && !id_) {
      return ui.fail(invalid_argument("name the sample by KEY or --id"));
    }
    if (ui.out_is_terminal() && !force_) {
      return ui.fail(invalid_argument("standard output is a terminal")
                         .with_hint("send it to a file, or use --force"));
    }
    Result<std::vector<NamedPack>> packs = open_packs(path_);
    if (!packs.ok()) return ui.fail(packs.status());
    const Result<Found> found = find(*packs);
    if (!found.ok()) return fail_no(ui, found.status());
    const Pack& pack = *found->named->pack;
    const Result<uint16_t> field = find_blob_field(pack.schema(), field_);
    if (!field.ok()) return ui.fail(field.status());
    const Status status = copy_blob(pack, found->sample, *field, [&](ByteSpan bytes) {
      if (cancel_flag()) return cancel_status();
      // Where nobody reads any more, main knows; the rest is read for nothing.
      (void)ui.write(as_text(bytes));
      return Status();
    });
    return status.ok() ? kExitDone : fail_no(ui, status);
  }

 private:
  // No such sample, no such field in it, or damage: the answer is no.
  static int fail_no(Ui& ui, const Status& status) {
    const bool no = status.code() == Code::kNotFound || status.code() == Code::kDamaged;
    return ui.fail(status, no ? kExitNo : exit_code_of(status));
  }

  Result<Found> find(const std::vector<NamedPack>& packs) const {
    const bool has_splits = !packs.front().split.empty();
    std::string names;
    for (const NamedPack& named : packs) {
      names += str_cat(names.empty() ? "" : ", ", escape_bytes(named.split));
    }
    if (id_) {
      if (has_splits) {
        return invalid_argument("--id: numbers are those of one pack; this is a folder of splits")
            .at_path(path_)
            .with_hint(str_cat("name one of them: ", names));
      }
      const uint64_t count = packs.front().pack->sample_count();
      if (*id_ < count) return Found{&packs.front(), *id_};
      return Status(Code::kNotFound, str_cat("there is no sample ", *id_, " among ", count))
          .at_path(path_);
    }
    if (!has_splits) {
      SPK_ASSIGN(const uint64_t sample, find_typed_key(*packs.front().pack, key_));
      return Found{&packs.front(), sample};
    }
    for (const NamedPack& named : packs) {
      if (!key_.starts_with(named.split + "/")) continue;
      SPK_ASSIGN(const uint64_t sample,
                 find_typed_key(*named.pack, key_.substr(named.split.size() + 1)));
      return Found{&named, sample};
    }
    return Status(Code::kNotFound,
                  str_cat("'", escape_bytes(key_), "' does not begin with a split"))
        .at_path(path_)
        .with_hint(str_cat("write SPLIT/KEY; splits: ", names));
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string key_;
  uint64_t typed_id_ = 0;
  std::optional<uint64_t> id_;
  std::string field_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_cat_command() { return std::make_unique<CatCommand>(); }

}  // namespace spk
