// How a launcher (mpirun, srun) started this process, told by what it leaves in the environment;
// and the team that it makes with the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "team/team.h"

namespace spk {

using Environment = std::function<const char*(const char*)>;  // null: unset

struct Launch {
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string by;                    // "mpirun of Open MPI": for messages
  std::vector<std::string> plugins;  // those that may fit, best first: "openmpi"
};
Launch detect_launch(const Environment& environment);

// A team of one where the launcher started one. kUnsupported where it started several and no plugin
// fits: they must not do the same work each for itself.
Result<std::unique_ptr<Team>> make_team(const Launch& launch);

// Ends a team in order, with the others; without it a launcher that sees a rank end ends all.
Status leave_team(Team& team);

}  // namespace spk
