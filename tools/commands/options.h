// Options that several subcommands share, so that they read alike everywhere.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Error.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ui/progress.h"

namespace spk {

// --json. main reads it (and sets the Ui's mode) before the command runs.
void add_json_option(CLI::App& sub);
// --progress auto|always|never
void add_progress_option(CLI::App& sub, ProgressMode* mode);
// --jobs N: threads for CPU work; 0 (the default) stands for allowed_cpus(). main limits TBB to it.
void add_jobs_option(CLI::App& sub, uint32_t* jobs);
// The number behind `jobs`: itself, or what this machine allows.
uint32_t resolve_jobs(uint32_t jobs);
// A size such as 4MiB (base/text.h, parse_size), not 0. A wrong one is CLI11's error and names the
// option.
CLI::Option* add_size_option(CLI::App& sub, const std::string& name, uint64_t* bytes,
                             const std::string& help);
// A whole number from `least` to `most`. A wrong one ("-1", "0x10", "1e6") is CLI11's error and
// names the option; CLI11 by itself would take "-1" for the largest number there is.
CLI::Option* add_count_option(CLI::App& sub, const std::string& name, uint64_t* count,
                              const std::string& help, uint64_t least = 0,
                              uint64_t most = UINT64_MAX);
// The same for threads, of which nobody has more than 4096. `names`: as CLI11 takes them, the long
// one first ("--jobs,-j").
CLI::Option* add_thread_count_option(CLI::App& sub, const std::string& names, uint32_t* count,
                                     const std::string& help, uint32_t least);

// One of several words, each of which stands for a value. Anything else is CLI11's error and lists
// them.
template <typename T>
CLI::Option* add_choice_option(CLI::App& sub, const std::string& name, T* value,
                               std::vector<std::pair<std::string, T>> choices,
                               const std::string& help) {
  std::string words;
  for (const auto& choice : choices) words += (words.empty() ? "" : "|") + choice.first;
  const auto take = [=](const std::string& word) {
    for (const auto& [known, meaning] : choices) {
      if (known != word) continue;
      *value = meaning;
      return;
    }
    throw CLI::ValidationError(name, "'" + word + "' is not one of " + words);
  };
  return sub.add_option_function<std::string>(name, take, help)->type_name(words);
}

}  // namespace spk
