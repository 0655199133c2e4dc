#include "pipeline/part.h"

#include <charconv>
#include <optional>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kMostParts = 1'000'000;

bool to_number(std::string_view text, uint64_t* number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *number);
  return !text.empty() && read.ec == std::errc() && read.ptr == end;
}

// What is dealt: parts of a job, or the nodes that hold a share each.
struct Dealing {
  std::string_view option;  // "--part"
  std::string_view noun;    // "part"
};
constexpr Dealing kParts = {"--part", "part"};
constexpr Dealing kNodes = {"--node", "node"};

Result<PackPart> checked_part(uint64_t index, uint64_t count, const std::string& from,
                              const Dealing& dealing = kParts) {
  if (count == 0 || count > kMostParts) {
    return invalid_argument(str_cat(dealing.option, " ", from, ": ", count, " ", dealing.noun,
                                    "s; expected 1 to ", kMostParts));
  }
  if (index >= count) {
    return invalid_argument(str_cat(dealing.option, " ", from, ": ", dealing.noun,
                                    "s are numbered from 0 to ", count - 1));
  }
  return PackPart{static_cast<uint32_t>(index), static_cast<uint32_t>(count)};
}

class SlurmVariables {
 public:
  explicit SlurmVariables(const std::function<const char*(const char*)>& environment,
                          const Dealing& dealing = kParts)
      : environment_(environment), dealing_(dealing) {}

  bool has(const char* name) const { return environment_(name) != nullptr; }
  Result<uint64_t> number(const char* name) const {
    const char* text = environment_(name);
    if (text == nullptr) {
      return invalid_argument(str_cat(dealing_.option, " slurm: ", name, " is not set"))
          .with_hint(dealing_.option == kNodes.option
                         ? "the tasks of srun have SLURM_NODEID and SLURM_NNODES"
                         : "an array's jobs have SLURM_ARRAY_TASK_ID, _MIN, _MAX and _STEP or "
                           "_COUNT, the tasks of srun SLURM_PROCID and SLURM_NTASKS");
    }
    uint64_t value = 0;
    if (!to_number(text, &value)) {
      return invalid_argument(str_cat(dealing_.option, " slurm: ", name, " is '",
                                      escape_bytes(text), "', which is no number"));
    }
    return value;
  }
  // Of the jobs of an array: 0-9, 5-20:5 ... Lists with gaps ("1,7,8") are refused, for the
  // variables do not tell which numbers there are.
  Result<PackPart> array() const {
    SPK_ASSIGN(const uint64_t id, number("SLURM_ARRAY_TASK_ID"));
    SPK_ASSIGN(const uint64_t least, number("SLURM_ARRAY_TASK_MIN"));
    SPK_ASSIGN(const uint64_t count, number("SLURM_ARRAY_TASK_COUNT"));
    uint64_t step = 1;
    if (has("SLURM_ARRAY_TASK_STEP")) {
      SPK_ASSIGN(step, number("SLURM_ARRAY_TASK_STEP"));
    }
    const bool regular = step != 0 && id >= least && (id - least) % step == 0;
    if (!regular || (id - least) / step >= count) {
      return invalid_argument(str_cat("--part slurm: the array has ", count, " jobs from ", least,
                                      " in steps of ", step, ", among which ", id, " is none"))
          .with_hint("number the array without gaps, as --array=0-7 does");
    }
    if (has("SLURM_ARRAY_TASK_MAX")) {
      SPK_ASSIGN(const uint64_t most, number("SLURM_ARRAY_TASK_MAX"));
      if (most < least || (most - least) / step + 1 != count) {
        return invalid_argument(str_cat("--part slurm: the array's numbers from ", least, " to ",
                                        most, " have gaps: it has ", count, " jobs"))
            .with_hint("number the array without gaps, as --array=0-7 does");
      }
    }
    return checked_part((id - least) / step, count, "slurm");
  }
  Result<PackPart> tasks() const {
    SPK_ASSIGN(const auto found, in_step("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
                                         "--part", "tasks", "start stripepack with srun"));
    return checked_part(found.first, found.second, "slurm");
  }
  Result<PackPart> node() const {
    SPK_ASSIGN(const auto found,
               in_step("SLURM_NODEID", "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "--node", "nodes",
                       "start stripepack with srun, one task on each node"));
    return checked_part(found.first, found.second, "slurm", kNodes);
  }
  // Number and count of the step, which may be less than the job that OF_JOB tells of, and which
  // OF_JOB stands for outside of srun.
  Result<std::pair<uint64_t, uint64_t>> in_step(const char* id_name, const char* of_step,
                                                const char* of_job, const char* option,
                                                const char* things, const char* hint) const {
    SPK_ASSIGN(const uint64_t id, number(id_name));
    SPK_ASSIGN(const uint64_t count, number(has(of_step) ? of_step : of_job));
    if (count > 1 && !has("SLURM_STEP_ID")) {
      return invalid_argument(str_cat(option, " slurm: this is the script of a job of ", count, " ",
                                      things, ", not one of its tasks"))
          .with_hint(hint);
    }
    return std::pair(id, count);
  }

 private:
  const std::function<const char*(const char*)>& environment_;
  const Dealing& dealing_;
};

Result<PackPart> slurm_part(const std::function<const char*(const char*)>& environment) {
  const SlurmVariables variables(environment);
  // A batch script itself is no task of srun, though it has the variables of the job's tasks.
  const bool in_step = variables.has("SLURM_STEP_NUM_TASKS");
  const bool in_array = variables.has("SLURM_ARRAY_TASK_ID");
  if (!in_array) return variables.tasks();
  SPK_ASSIGN(const PackPart job, variables.array());
  if (!in_step) return job;
  SPK_ASSIGN(const PackPart task, variables.tasks());
  return checked_part(uint64_t{job.index} * task.count + task.index,
                      uint64_t{job.count} * task.count, "slurm");
}

Result<PackPart> parse_numbers(const std::string& word, const Dealing& dealing) {
  const size_t slash = word.find('/');
  uint64_t index = 0;
  uint64_t count = 0;
  if (slash == std::string::npos || !to_number(std::string_view(word).substr(0, slash), &index) ||
      !to_number(std::string_view(word).substr(slash + 1), &count)) {
    return invalid_argument(
               str_cat(dealing.option, " '", escape_bytes(word), "' is neither I/N nor slurm"))
        .with_hint(str_cat("the first of four ", dealing.noun, "s is ", dealing.option, " 0/4"));
  }
  return checked_part(index, count, word, dealing);
}

}  // namespace

Result<PackPart> parse_part(const std::string& word,
                            const std::function<const char*(const char*)>& environment) {
  return word == "slurm" ? slurm_part(environment) : parse_numbers(word, kParts);
}

Result<PackPart> parse_node(const std::string& word,
                            const std::function<const char*(const char*)>& environment) {
  return word == "slurm" ? SlurmVariables(environment, kNodes).node() : parse_numbers(word, kNodes);
}

std::string to_text(const PackPart& part) { return str_cat(part.index, "/", part.count); }

uint64_t first_shard_of(const PackPart& part, uint64_t before) noexcept {
  // The least that makes before + it leave the index; count - 1 stands for -1.
  return (part.index + (part.count - 1) * (before % part.count)) % part.count;
}

}  // namespace spk
