// The program `stripepack`: parses the command line, runs a command, prints the final error.

#include <fcntl.h>
#include <malloc.h>
#include <oneapi/tbb/global_control.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "commands/command.h"
#include "commands/options.h"
#include "team/launch.h"
#include "ui/signals.h"
#include "ui/ui.h"
#include "ui/version.h"

namespace spk {
namespace {

// A descriptor that was closed by the caller would be taken by the first file that is opened, and
// messages would be written into that. Opened the wrong way round, so that using it still fails.
void occupy_standard_descriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

// Each thread that waits for a disk would otherwise get a heap of its own, and what is freed in one
// heap is of no use to another: with a hundred of them that is more than what is in use.
// And large blocks go back to the system when they are freed. Left to itself the allocator keeps
// such of up to 32 MiB once it has seen them, and --memory would not hold.
void set_heap_rules(uint32_t jobs) {
#ifdef M_ARENA_MAX
  constexpr int kLargeBlockBytes = 512 << 10;
  constexpr int kKeptBytes = 8 << 20;
  (void)mallopt(M_ARENA_MAX, static_cast<int>(std::clamp<uint32_t>(jobs, 1, 8)));
  (void)mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
  (void)mallopt(M_TRIM_THRESHOLD, kKeptBytes);
#else
  (void)jobs;
#endif
}

// For errors that come before the parser knows: was --json typed?
bool json_typed(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return false;
    if (word == "--json") return true;
  }
  return false;
}

uint32_t typed_jobs(const CLI::App& sub) {
  const CLI::Option* option = sub.get_option_no_throw("--jobs");
  return option != nullptr && option->count() > 0 ? option->as<uint32_t>() : 0;
}

const char* environment(const char* name) { return std::getenv(name); }

int usage_error(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv, Ui& ui) {
  std::string name;
  for (const CLI::App* sub : app.get_subcommands()) name = sub->get_name();
  ui.set_command(name);
  if (detect_launch(environment).rank != 0) ui.mute();
  std::string message = error.what();
  // The parser would only say that a subcommand is missing.
  if (name.empty() && argc > 1 && argv[1][0] != '-') {
    message = str_cat("there is no subcommand '", escape_bytes(argv[1]), "'");
  }
  return ui.fail(invalid_argument(message).with_hint("see `stripepack " +
                                                     (name.empty() ? "" : name + " ") + "--help`"),
                 kExitUsage);
}

int run_in_team(Command& command, Ui& ui) {
  SoloTeam solo;
  std::unique_ptr<Team> ranks;
  command.set_team(&solo);
  if (command.deals_to_ranks()) {
    const Launch launch = detect_launch(environment);
    if (launch.rank != 0) ui.mute();  // one message, not one of each
    auto made = make_team(launch);
    if (!made.ok()) return ui.fail(made.status(), kExitUsage);
    ranks = std::move(made).value();
    command.set_team(ranks.get());
  }
  int code = command.run(ui);
  const Status written = ui.finish();
  if (code == kExitDone && !written.ok()) code = ui.fail(written);
  if (!ranks) return code;
  // What a rank could not write is no other one's trouble; it is told, and its code is the run's.
  const Status left = leave_team(*ranks);
  return code == kExitDone && !left.ok() ? ui.fail(left) : code;
}

int run_chosen(std::vector<std::unique_ptr<Command>>& commands, const CLI::App& app, Ui& ui) {
  for (const auto& command : commands) {
    if (!command->chosen()) continue;
    const CLI::App& sub = *app.get_subcommands().front();
    ui.set_command(sub.get_name());
    ui.set_json(sub.get_option_no_throw("--json") != nullptr && sub.count("--json") > 0);
    const uint32_t jobs = resolve_jobs(typed_jobs(sub));
    set_heap_rules(jobs);
    const oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism,
                                            jobs);
    return run_in_team(*command, ui);
  }
  return ui.fail(internal_error("no subcommand was chosen"));
}

// `help pack` as `pack --help`, `help` as `--help`.
int show_help(const CLI::App& app, const std::string& topic, Ui& ui) {
  ui.set_command("help");
  const std::string name = app.get_name();
  const auto named =
      app.get_subcommands([&](const CLI::App* one) { return one->get_name() == topic; });
  if (topic.empty()) {
    (void)ui.write(app.get_formatter()->make_help(&app, name, CLI::AppFormatMode::Normal));
  } else if (!named.empty()) {
    (void)ui.write(named.front()->help(name));
  } else {
    return ui.fail(invalid_argument(str_cat("there is no subcommand '", escape_bytes(topic), "'"))
                       .with_hint("`stripepack help` lists them"),
                   kExitUsage);
  }
  const Status written = ui.finish();
  return written.ok() ? kExitDone : ui.fail(written);
}

int run_program(int argc, char** argv, Ui& ui) {
  ui.set_json(json_typed(argc, argv));
  CLI::App app("Packs image datasets into stripe-aligned shards, proves, shows and extracts them.",
               "stripepack");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text(), "Print version and build features, then exit");
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("TEXT", "");
  app.get_formatter()->label("REQUIRED", "");
  app.get_formatter()->label("Excludes", "not with");
  auto commands = make_commands();
  for (const auto& command : commands) command->add_to(app);
  std::string topic;
  CLI::App* help = app.add_subcommand("help", "Show this, or the options of a command");
  help->add_option("COMMAND", topic, "The command");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    (void)ui.write(app.help());
    const Status written = ui.finish();
    return written.ok() ? kExitDone : ui.fail(written);
  } catch (const CLI::CallForVersion& version) {
    (void)ui.out(version.what());
    const Status written = ui.finish();
    return written.ok() ? kExitDone : ui.fail(written);
  } catch (const CLI::ParseError& error) {
    return usage_error(error, app, argc, argv, ui);
  }
  if (help->parsed()) return show_help(app, topic, ui);
  return run_chosen(commands, app, ui);
}

}  // namespace
}  // namespace spk

int main(int argc, char** argv) {
  spk::occupy_standard_descriptors();
  spk::install_signal_handlers();
  spk::Ui ui;
  try {
    return spk::run_program(argc, argv, ui);
  } catch (const std::bad_alloc&) {
    return ui.fail(spk::Status(spk::Code::kNoMemory, "out of memory"));
  } catch (const std::system_error& error) {
    // Only starting a thread throws this.
    return ui.fail(
        spk::Status::from_errno(error.code().value(), "cannot start a thread")
            .with_hint("give less with --jobs, or raise the limit of processes (ulimit -u)"));
  } catch (const std::exception& error) {
    return ui.fail(spk::internal_error(std::string("unexpected: ") + error.what()));
  } catch (...) {
    return ui.fail(spk::internal_error("unexpected exception"));
  }
}
