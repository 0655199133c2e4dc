#include "commands/seal.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "commands/job_options.h"
#include "commands/options.h"
#include "commands/pack_report.h"
#include "pipeline/pack_run.h"
#include "pipeline/sha256.h"
#include "ui/signals.h"

namespace spk {

namespace {

class SealCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("seal", "Publish what the parts of a job built");
    sub_->add_option("OUT", options_.output, "As for pack; the parts built it in OUT.partial")
        ->required();
    add_count_option(*sub_, "--max-rejects", &options_.max_rejects,
                     "Publish although so many samples were rejected; default 0");
    sub_->add_flag("--sha256", options_.sha256, "Write SHA256SUMS into the pack");
    add_json_option(*sub_);
    add_progress_option(*sub_, &progress_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    if (options_.sha256 && !sha256_available()) {
      return ui.fail(unsupported("this build has no libcrypto, which --sha256 needs"), kExitUsage);
    }
    Progress progress(ui, progress_);
    PackObserver observer;
    observer.stage = [&](const std::string& name, uint64_t, uint64_t) { progress.stage(name); };
    auto outcome = run_seal(options_, command_line(), cancel_flag(), observer);
    progress.finish();
    if (!outcome.ok()) {
      const int code = exit_code_of(outcome.status());
      return ui.fail(outcome.status(), code == kExitNotAPack ? kExitFailed : code);
    }
    if (outcome->end == PackEnd::kComplete && !ui.json_mode()) {
      (void)ui.out(str_cat("complete: ", escape_bytes(options_.output), " is published"));
      return kExitDone;
    }
    show_outcome(ui, options_, *outcome);
    return outcome->end == PackEnd::kNotPublished ? kExitRejects : kExitDone;
  }

 private:
  CLI::App* sub_ = nullptr;
  PackOptions options_;
  ProgressMode progress_ = ProgressMode::kAuto;
};

}  // namespace

std::unique_ptr<Command> make_seal_command() { return std::make_unique<SealCommand>(); }

}  // namespace spk
