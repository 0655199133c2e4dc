// OUT.partial/plans.json: which plans the parts of a job build from. It is there once all plans
// are, so that parts which wait for it find what they need; the part that publishes removes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/directory.h"

namespace spk {

inline constexpr char kPlansName[] = "plans.json";
// Why planning failed, for parts that wait: a line that differs each time, then the message.
inline constexpr char kPlanFailedName[] = "plan-failed";

// The words of a command line that shape bytes: option (or "SRC") and values, sorted.
using PackRequest = std::vector<std::pair<std::string, std::string>>;
// "--seed: 3 before, 4 now; ..."; empty where they are equal.
std::string request_difference(const PackRequest& before, const PackRequest& now);

struct PlansFile {
  struct Split {
    std::string name;  // "" where there are none
    std::string plan_id;
    uint32_t shard_count = 0;
  };
  std::string command;  // as typed, with what shapes no byte
  std::string source;
  std::string made;    // when
  uint32_t parts = 1;  // that the job has
  PackRequest request;
  std::vector<Split> splits;
};

Status write_plans_file(const Directory& partial, const PlansFile& plans);
// kNotFound where there is none.
Result<PlansFile> read_plans_file(const Directory& partial);

// The request as run.json keeps it. Of no run.json, or one without: kNotFound.
Result<PackRequest> read_run_request(const Directory& pack);

}  // namespace spk
