#include "commands/options.h"

#include <charconv>
#include <map>

#include "base/text.h"
#include "ui/cpus.h"

namespace spk {

namespace {

constexpr uint32_t kMostThreads = 4096;

// Throws CLI11's error, which names the option.
uint64_t parse_count(const std::string& name, const std::string& text, uint64_t least,
                     uint64_t most) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  throw CLI::ValidationError(
      name, str_cat("'", escape_bytes(text), "' is not a whole number from ", least, " to ", most));
}

}  // namespace

void add_json_option(CLI::App& sub) {
  const std::string help = "Print one JSON object a line, errors as well (on stderr)";
  sub.add_flag("--json", help);
}

void add_progress_option(CLI::App& sub, ProgressMode* mode) {
  static const std::map<std::string, ProgressMode> kModes = {{"auto", ProgressMode::kAuto},
                                                             {"always", ProgressMode::kAlways},
                                                             {"never", ProgressMode::kNever}};
  sub.add_option_function<std::string>(
         "--progress", [mode](const std::string& text) { *mode = kModes.at(text); },
         "Progress on stderr: auto (a live line on a terminal, elsewhere a line every 30 s), "
         "always (a live line), never")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->type_name("auto|always|never");
}

void add_jobs_option(CLI::App& sub, uint32_t* jobs) {
  add_thread_count_option(
      sub, "--jobs,-j", jobs,
      "Threads for CPU work; 0, the default: as many as affinity and cgroup allow", 0);
}

uint32_t resolve_jobs(uint32_t jobs) { return jobs > 0 ? jobs : allowed_cpus(); }

CLI::Option* add_size_option(CLI::App& sub, const std::string& name, uint64_t* bytes,
                             const std::string& help) {
  const auto read = [name, bytes](const std::string& text) {
    const Result<uint64_t> size = parse_size(text);
    if (!size.ok()) throw CLI::ValidationError(name, size.status().to_string());
    if (*size == 0) throw CLI::ValidationError(name, "must not be 0");
    *bytes = *size;
  };
  return sub.add_option_function<std::string>(name, read, help)->type_name("SIZE");
}

CLI::Option* add_count_option(CLI::App& sub, const std::string& name, uint64_t* count,
                              const std::string& help, uint64_t least, uint64_t most) {
  const auto read = [=](const std::string& text) { *count = parse_count(name, text, least, most); };
  return sub.add_option_function<std::string>(name, read, help)->type_name("N");
}

CLI::Option* add_thread_count_option(CLI::App& sub, const std::string& names, uint32_t* count,
                                     const std::string& help, uint32_t least) {
  const std::string shown = names.substr(0, names.find(','));
  const auto read = [=](const std::string& text) {
    *count = static_cast<uint32_t>(parse_count(shown, text, least, kMostThreads));
  };
  return sub.add_option_function<std::string>(names, read, help)->type_name("N");
}

}  // namespace spk
