#include "commands/extract.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "commands/extract_run.h"
#include "commands/named_file.h"
#include "commands/options.h"
#include "sinks/folder_writer.h"
#include "sinks/sample_text.h"
#include "ui/signals.h"

namespace spk {

namespace {

class ExtractCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("extract", "Write samples back to files, under their keys");
    sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
    sub_->add_option("DIR", target_, "The folder to write to; it is made where there is none")
        ->required();
    add_filter_options(*sub_, &filter_);
    sub_->add_option("--field", field_, "The field; by default `image`")->type_name("NAME");
    sub_->add_option("--manifest", manifest_, "Also write a list of paths and labels (TSV)")
        ->type_name("FILE");
    sub_->add_flag("--force", force_, "Replace files that exist");
    add_jobs_option(*sub_, &jobs_);
    add_progress_option(*sub_, &progress_);
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }
  bool deals_to_ranks() const override { return true; }

  int run(Ui& ui) override {
    Result<std::vector<NamedPack>> packs = open_packs(path_);
    const Status opened = agree(team(), packs.status(), "").status();
    if (!opened.ok()) return ui.fail(opened);
    const Status status = extract_all(*packs, ui);
    if (!status.ok()) {
      // What stopped it concerns files; exit codes for other packs and options do not apply.
      const bool usage = status.code() == Code::kInvalidArgument;
      const bool stopped = status.code() == Code::kCancelled;
      return ui.fail(status, usage || stopped ? exit_code_of(status) : kExitFailed);
    }
    summarize(ui);
    if (totals_.existing > 0) {
      return ui.fail(
          Status(Code::kExists, str_cat(count_of(totals_.existing, "file was", "files were"),
                                        " in the way and kept"))
              .at_path(target_)
              .with_hint("--force replaces files; links and folders it leaves"));
    }
    if (totals_.damaged > 0) {
      return ui.fail(damaged(str_cat(count_of(totals_.damaged, "sample"), " could not be read"))
                         .at_path(path_),
                     kExitNo);
    }
    if (chosen_ == 0 && !filter_.all()) {
      return ui.fail(Status(Code::kNotFound, "no sample matches").at_path(path_), kExitNo);
    }
    return kExitDone;
  }

 private:
  Status plan_all(const std::vector<NamedPack>& packs,
                  std::vector<std::unique_ptr<ExtractRun>>* runs) {
    // All that can be wrong with the options shows before a file is written.
    for (const NamedPack& named : packs) {
      ExtractSettings settings;
      settings.replace = force_;
      settings.jobs = resolve_jobs(jobs_);
      settings.rank = team().rank();
      settings.ranks = team().size();
      settings.stop = &team().stop_flag();
      SPK_ASSIGN(settings.field, find_blob_field(named.pack->schema(), field_));
      SPK_ASSIGN(const SampleFilter filter, SampleFilter::make(filter_, *named.pack, named.split));
      SPK_ASSIGN(auto run, ExtractRun::plan(*named.pack, filter, settings));
      chosen_ += run->chosen_samples();
      runs->push_back(std::move(run));
    }
    return {};
  }

  Status extract_all(const std::vector<NamedPack>& packs, Ui& ui) {
    std::vector<std::unique_ptr<ExtractRun>> runs;
    SPK_TRY(agree(team(), plan_all(packs, &runs), "").status());
    if (chosen_ == 0 && !filter_.all()) return {};
    std::vector<Directory> roots;
    std::optional<NamedFile> manifest;  // found now, for it may lie in the target
    // The first rank makes the folders; the others find them.
    for (const bool turn : {true, false}) {
      Status made;
      if (team().first() == turn) made = make_roots(packs, runs, &roots, &manifest);
      SPK_TRY(agree(team(), made, "").status());
    }
    for (size_t i = 0; i < packs.size(); ++i) SPK_TRY(extract(packs[i], *runs[i], roots[i], ui));
    Status listed;
    if (manifest) listed = write_manifest(packs, runs, *manifest);
    return agree(team(), listed, "").status();
  }

  // One for each pack.
  Status make_roots(const std::vector<NamedPack>& packs,
                    const std::vector<std::unique_ptr<ExtractRun>>& runs,
                    std::vector<Directory>* roots, std::optional<NamedFile>* manifest) {
    SPK_ASSIGN(const Directory target, open_target());
    if (sub_->count("--manifest") > 0 && team().first()) {
      SPK_ASSIGN(*manifest, NamedFile::find(manifest_, "--manifest"));
    }
    for (const NamedPack& named : packs) {
      Directory root;
      if (named.split.empty()) {
        SPK_ASSIGN(root, Directory::open(target.path()));
      } else {
        SPK_ASSIGN(root, open_or_make_folder_at(target, named.split));
      }
      roots->push_back(std::move(root));
    }
    if (!team().first()) return {};
    if (*manifest && (*manifest)->replaces()) SPK_TRY(refuse_sample(**manifest, runs, *roots));
    for (size_t i = 0; filter_.all() && i < packs.size(); ++i) {
      SPK_TRY(make_class_folders(*packs[i].pack, (*roots)[i]));
    }
    return {};
  }

  Status refuse_sample(const NamedFile& manifest,
                       const std::vector<std::unique_ptr<ExtractRun>>& runs,
                       const std::vector<Directory>& roots) const {
    for (size_t i = 0; i < runs.size(); ++i) {
      const std::string path = manifest.path_below(roots[i]);
      if (path.empty() || !runs[i]->names().takes(path)) continue;
      return invalid_argument("--manifest: a sample is extracted to this path")
          .at_path(manifest_)
          .with_hint("choose another name, for example list.tsv");
    }
    return {};
  }

  Result<Directory> open_target() const {
    SPK_TRY(refuse_inside_pack(target_));
    SPK_ASSIGN(Directory target, open_or_make_folder(target_));
    SPK_ASSIGN(const bool is_pack, is_pack_directory(target));
    if (is_pack) return invalid_argument("is a pack itself").at_path(target_);
    return target;
  }

  Status extract(const NamedPack& named, ExtractRun& run, const Directory& root, Ui& ui) {
    Status status;
    {
      Progress progress(ui, progress_);
      const uint64_t ranks = team().size();
      progress.stage(named.split.empty() ? "extracting" : str_cat("extracting ", named.split),
                     {run.chosen_samples() / ranks, run.chosen_bytes() / ranks, 0, 0});
      status = run.write(root, progress);
    }
    if (team().size() > 1) {
      if (!status.ok()) team().tell_stop();
      SPK_ASSIGN(const std::vector<std::string> told, agree(team(), status, run.outcome()));
      for (uint32_t rank = 0; rank < told.size(); ++rank) {
        if (rank != team().rank() && !run.merge(told[rank])) {
          return internal_error("a rank sent what no rank sends");
        }
      }
    }
    totals_.written += run.counts().written;
    totals_.bytes += run.counts().bytes;
    totals_.damaged += run.counts().damaged;
    totals_.existing += run.counts().existing;
    renamed_ += run.names().renamed().size();
    report(named, run, ui);
    return status;
  }

  // Classes without a sample get their folder, so that packing the result gives the same labels.
  static Status make_class_folders(const Pack& pack, const Directory& root) {
    const auto& settings = pack.settings();
    const bool from_folder = std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
      return setting.first == "source_kind" && setting.second == "folder";
    });
    if (!from_folder) return {};
    for (const std::string& name : pack.schema().classes) {
      if (!key_shape(name).is_path || name.find('/') != name.npos) continue;
      const Result<Directory> folder = open_or_make_folder_at(root, name);
      // What is in the way there is told with the first sample of that class.
      if (!folder.ok() && folder.status().code() != Code::kExists) return folder.status();
    }
    return {};
  }

  void report(const NamedPack& named, const ExtractRun& run, Ui& ui) const {
    for (const auto& [sample, failure] : run.failures()) {
      const std::string key = with_split(named.split, failure.key);
      if (!ui.json_mode()) {
        ui.note(str_cat("not extracted: ", escape_bytes(key), ": ", failure.status.to_string()));
        continue;
      }
      JsonWriter json = json_line("failed");
      if (!named.split.empty()) json.member_bytes("split", named.split);
      json.member("sample", sample).member_bytes("key", failure.key);
      json.member("code", code_name(failure.status.code()));
      json.member("message", failure.status.to_string());
      (void)ui.json(json.end_object());
    }
    std::map<uint64_t, std::string> renamed(run.names().renamed().begin(),
                                            run.names().renamed().end());
    size_t told = 0;
    for (const auto& [sample, path] : renamed) {
      if (!run.written(sample)) continue;
      if (!ui.json_mode()) {
        if (++told > ExtractRun::kFailuresKept) break;
        ui.note(str_cat("renamed: ", escape_bytes(with_split(named.split, path))));
        continue;
      }
      JsonWriter json = json_line("renamed");
      if (!named.split.empty()) json.member_bytes("split", named.split);
      json.member("sample", sample).member_bytes("path", path);
      (void)ui.json(json.end_object());
    }
  }

  void summarize(Ui& ui) const {
    if (ui.json_mode()) {
      JsonWriter json = json_line("summary");
      json.member("written", totals_.written).member("bytes", totals_.bytes);
      json.member("damaged", totals_.damaged).member("existing", totals_.existing);
      json.member("renamed", renamed_);
      (void)ui.json(json.end_object());
      return;
    }
    std::string line = str_cat("extracted ", format_count(totals_.written), " of ",
                               count_of(chosen_, "sample"), ", ", format_size(totals_.bytes));
    if (renamed_ > 0) line += str_cat(", ", format_count(renamed_), " renamed");
    (void)ui.out(line);
  }

  // In the order of the source, so that packing by this list gives the order of packing the source.
  Status write_manifest(const std::vector<NamedPack>& packs,
                        const std::vector<std::unique_ptr<ExtractRun>>& runs,
                        const NamedFile& file) const {
    size_t columns = 1;
    for (const NamedPack& named : packs) {
      const Schema& schema = named.pack->schema();
      const uint16_t label = schema.find("label");
      if (label != kNoField) columns = std::max<size_t>(columns, schema.fields[label].length);
    }
    std::string text = "path";
    for (size_t i = 0; i < columns; ++i) text += columns == 1 ? "\tlabel" : str_cat("\tlabel_", i);
    text += '\n';
    for (size_t i = 0; i < packs.size(); ++i) {
      SPK_TRY(append_manifest(packs[i], *runs[i], columns, &text));
    }
    return file.write(as_bytes(text));
  }

  static Status append_manifest(const NamedPack& named, const ExtractRun& run, size_t columns,
                                std::string* text) {
    std::vector<std::pair<uint64_t, uint64_t>> order;  // ordinal, sample
    for (uint64_t sample = 0; sample < named.pack->sample_count(); ++sample) {
      if (!run.written(sample)) continue;
      SPK_ASSIGN(const uint64_t ordinal, named.pack->ordinal(sample));
      order.emplace_back(ordinal, sample);
    }
    std::sort(order.begin(), order.end());
    const FactReader reader(*named.pack);
    for (const auto& [ordinal, sample] : order) {
      SPK_ASSIGN(const SampleFacts facts, reader.read(sample));
      *text += tsv_cell(with_split(named.split, run.names().path_of(sample, facts.key)));
      const size_t count = std::max(facts.int_labels.size(), facts.float_labels.size());
      for (size_t i = 0; i < columns; ++i) {
        *text += '\t';
        if (i >= count) continue;
        SampleFacts one;
        if (!facts.int_labels.empty()) one.int_labels.push_back(facts.int_labels[i]);
        if (!facts.float_labels.empty()) one.float_labels.push_back(facts.float_labels[i]);
        *text += labels_text(one);
      }
      *text += '\n';
    }
    return {};
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string target_;
  SampleFilterOptions filter_;
  std::string field_;
  std::string manifest_;
  bool force_ = false;
  uint32_t jobs_ = 0;
  ProgressMode progress_ = ProgressMode::kAuto;
  ExtractCounts totals_;
  uint64_t chosen_ = 0;
  uint64_t renamed_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_extract_command() { return std::make_unique<ExtractCommand>(); }

}  // namespace spk
