#include "team/launch.h"

#include <dlfcn.h>
#include <unistd.h>

#include <charconv>
#include <climits>

#include "base/text.h"
#include "team/mpi_team.h"

namespace spk {

namespace {

bool number_of(const Environment& environment, const char* name, uint32_t* number) {
  const char* text = environment(name);
  if (text == nullptr) return false;
  const std::string_view word(text);
  const auto read = std::from_chars(word.data(), word.data() + word.size(), *number);
  return !word.empty() && read.ec == std::errc() && read.ptr == word.data() + word.size();
}

// Where plugins lie: beside the program as it is built, or in the folder that it is installed with.
std::vector<std::string> plugin_folders() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return {};
  const std::string program(path, static_cast<size_t>(length));
  const std::string folder = program.substr(0, program.rfind('/'));
  return {folder + "/plugins", str_cat(folder, "/", SPK_PLUGIN_FOLDER)};
}

// Its symbols are seen by what it loads itself, as Open MPI's parts need.
void* load_plugin(const std::string& path, std::string* why) {
  if (access(path.c_str(), F_OK) != 0) return nullptr;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) *why = dlerror();
  return library;
}

Status no_plugin(const Launch& launch, const std::string& why) {
  std::string message =
      str_cat("started ", launch.size, " times by ", launch.by, ", but ",
              launch.plugins.empty() ? "without MPI" : "this build has no part for that MPI");
  if (!why.empty()) message += str_cat(" that can be loaded (", why, ")");
  return unsupported(message).with_hint(
      launch.plugins.empty()
          ? "srun --mpi=pmix or --mpi=pmi2 starts MPI programs (srun --mpi=list); without MPI "
            "`stripepack pack --part slurm` does its part"
          : "install stripepack-mpi, or build with libmpich-dev or libopenmpi-dev; without MPI "
            "`stripepack pack --part I/N` does its part");
}

}  // namespace

Launch detect_launch(const Environment& environment) {
  Launch launch;
  const auto found = [&](const char* rank, const char* size) {
    Launch one;
    if (!number_of(environment, rank, &one.rank) || !number_of(environment, size, &one.size)) {
      return false;
    }
    if (one.size <= 1 || one.rank >= one.size) return false;
    launch = one;
    return true;
  };
  if (found("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
    launch.by = "Open MPI's mpirun";
    launch.plugins = {"openmpi", "mpi"};
  } else if (found("PMI_RANK", "PMI_SIZE")) {
    launch.by = environment("SLURM_STEP_ID") != nullptr ? "srun for MPICH" : "MPICH's mpirun";
    launch.plugins = {"mpich", "mpi"};
  } else if (environment("SLURM_STEP_ID") != nullptr &&
             found("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")) {
    launch.by = "srun";
    if (environment("PMIX_RANK") != nullptr) launch.plugins = {"openmpi", "mpich", "mpi"};
  }
  return launch;
}

Result<std::unique_ptr<Team>> make_team(const Launch& launch) {
  if (launch.size == 1) return std::unique_ptr<Team>(std::make_unique<SoloTeam>());
  std::string why;
  for (const std::string& name : launch.plugins) {
    for (const std::string& folder : plugin_folders()) {
      void* library = load_plugin(str_cat(folder, "/stripepack-", name, ".so"), &why);
      if (library == nullptr) continue;
      const auto function =
          reinterpret_cast<SpkTeamPluginFunction>(dlsym(library, SPK_TEAM_PLUGIN_SYMBOL));
      const SpkTeamPlugin* plugin = function == nullptr ? nullptr : function();
      if (plugin == nullptr || plugin->version != SPK_TEAM_PLUGIN_VERSION) {
        why = str_cat(name, " is of another version");
        dlclose(library);
        continue;
      }
      return MpiTeam::start(*plugin, launch);  // stays loaded until the process ends
    }
  }
  return no_plugin(launch, why);
}

Status leave_team(Team& team) {
  auto* mpi = dynamic_cast<MpiTeam*>(&team);
  return mpi == nullptr ? Status() : mpi->leave();
}

}  // namespace spk
