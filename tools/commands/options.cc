#include "commands/options.h"

#include <charconv>
#include <map>

#include "base/text.h"
#include "ui/cpus.h"

namespace spk {

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
  sub.add_option("--jobs,-j", *jobs,
                 "Threads for CPU work; 0, the default: as many as affinity and cgroup allow")
      ->check(CLI::Range(uint32_t{0}, uint32_t{4096}).description(""))
      ->type_name("N");
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
  const auto read = [=](const std::string& text) {
    uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value < least || value > most) {
      throw CLI::ValidationError(
          name,
          str_cat("'", escape_bytes(text), "' is not a whole number from ", least, " to ", most));
    }
    *count = value;
  };
  return sub.add_option_function<std::string>(name, read, help)->type_name("N");
}

}  // namespace spk
