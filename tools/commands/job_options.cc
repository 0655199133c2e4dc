#include "commands/job_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "commands/options.h"

namespace spk {

namespace {

constexpr char kGroup[] = "Several processes";

// These say how to go about it, not what the pack is: parts may differ in them. Whatever is not
// named here is compared.
constexpr std::array<std::string_view, 22> kShapesNothing = {
    "--help",     "--jobs",        "--io-threads",   "--memory",       "--max-rejects", "--expect",
    "--dry-run",  "--force",       "--restart",      "--sha256",       "--report",      "--json",
    "--progress", "--part",        "--wait",         "--print-sbatch", "--nodes",       "--time",
    "--stripe",   "--stripe-size", "--stripe-count", "--pool"};

PackRequest typed_request(const CLI::App& sub, const PackOptions& options) {
  std::string sources = options.source;
  for (const std::string& more : options.more_sources) sources += " " + more;
  PackRequest request = {{"SRC", sources}};
  for (const CLI::Option* option : sub.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::find(kShapesNothing.begin(), kShapesNothing.end(), name) != kShapesNothing.end()) {
      continue;
    }
    std::string values;
    for (const std::string& value : option->results()) {
      values += (values.empty() ? "" : " ") + value;
    }
    request.emplace_back(name, values);
  }
  std::sort(request.begin(), request.end());
  return request;
}

std::string quoted(const std::string& word) {
  const bool plain =
      !word.empty() && word.find_first_of(" \t\n'\"\\$&;|<>()*?[]#~`!{}") == word.npos;
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string program_path() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "stripepack";
}

std::string working_directory() {
  char path[PATH_MAX] = {};
  return getcwd(path, sizeof path) == nullptr ? "." : path;
}

}  // namespace

void add_job_options(CLI::App& sub, JobOptions* job) {
  sub.add_option("--part", job->part,
                 "Build part I (from 0) of N; slurm: as the tasks of srun or the jobs of an array "
                 "are numbered. Part 0 plans, the last one to end publishes")
      ->type_name("I/N|slurm")
      ->group(kGroup);
  add_count_option(sub, "--wait", &job->wait_seconds,
                   "Seconds that a part waits for the plan of part 0; without it as long as it may")
      ->type_name("SECONDS")
      ->needs("--part")
      ->group(kGroup);
  CLI::Option* print = sub.add_flag("--print-sbatch", job->print_sbatch,
                                    "Print a script for Slurm's sbatch that packs on --nodes N; "
                                    "do nothing")
                           ->group(kGroup);
  print->excludes("--part");
  add_count_option(sub, "--nodes", &job->nodes, "Of the script: nodes, a part on each", 1,
                   1'000'000)
      ->needs(print)
      ->group(kGroup);
  sub.add_option("--time", job->time, "Of the script: limit as sbatch takes it, such as 1:00:00")
      ->type_name("TIME")
      ->needs(print)
      ->group(kGroup);
}

Status take_job_options(const CLI::App& sub, const JobOptions& job, PackOptions* options) {
  options->request = typed_request(sub, *options);
  if (sub.count("--wait") > 0) options->wait_seconds = job.wait_seconds;
  if (sub.count("--part") == 0) return {};
  SPK_ASSIGN(options->part, parse_part(job.part, [](const char* name) { return getenv(name); }));
  // A job that is requeued would do so again, under the feet of its other parts.
  for (const char* option : {"--force", "--restart"}) {
    if (sub.count(option) == 0) continue;
    return invalid_argument(str_cat(option, " does not go with --part"))
        .with_hint(std::string_view(option) == "--force"
                       ? "move the pack at OUT away before the job starts"
                       : "remove OUT.partial before the job starts");
  }
  return {};
}

std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string raw((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> words;
  for (size_t begin = 0; begin < raw.size();) {
    const size_t end = std::min(raw.find('\0', begin), raw.size());
    words.push_back(raw.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string command_line() {
  std::string text;
  for (const std::string& word : typed_words()) text += (text.empty() ? "" : " ") + quoted(word);
  return text;
}

std::string sbatch_script(const JobOptions& job, const std::vector<std::string>& words) {
  std::string command = quoted(program_path());
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--print-sbatch" || word.starts_with("--nodes=") || word.starts_with("--time=")) {
      continue;
    }
    if (word == "--nodes" || word == "--time") {
      ++i;
      continue;
    }
    command += " " + quoted(word);
  }
  std::string text = "#!/bin/bash\n#SBATCH --job-name=stripepack\n";
  text += str_cat("#SBATCH --array=0-", job.nodes - 1, "\n");
  text += "#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --exclusive\n";
  if (!job.time.empty()) text += str_cat("#SBATCH --time=", job.time, "\n");
  text +=
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --signal=B:USR1@60\n"
      "#SBATCH --output=stripepack-%A_%a.log\n"
      "\n"
      "# Each job of the array builds its part of the pack; the last one to end publishes it. "
      "What\n"
      "# ends early continues where it was: when it is requeued, or submitted once more.\n"
      "part=\n"
      "trap 'kill -USR1 $part' USR1\n"
      "trap 'kill -TERM $part' TERM\n";
  text += str_cat("cd ", quoted(working_directory()), " || exit\n", command, " --part slurm &\n");
  text +=
      "part=$!\n"
      "wait $part\n"
      "code=$?\n"
      "while kill -0 $part 2>/dev/null; do  # a signal ended the waiting only\n"
      "  wait $part\n"
      "  code=$?\n"
      "done\n"
      "if [ $code = 138 ]; then  # the time is nearly up\n"
      "  trap - USR1 TERM\n"
      "  scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" &&\n"
      "    sleep 600  # until Slurm ends this script, as it does to requeue it\n"
      "fi\n"
      "exit $code\n";
  return text;
}

}  // namespace spk
