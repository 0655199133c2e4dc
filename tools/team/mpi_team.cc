#include "team/mpi_team.h"

#include <algorithm>
#include <chrono>
#include <climits>

#include "base/text.h"

namespace spk {

namespace {
constexpr std::chrono::milliseconds kLookInterval{50};
constexpr std::chrono::microseconds kLeastPause{50};
constexpr std::chrono::microseconds kMostPause{20'000};
}  // namespace

Result<std::unique_ptr<Team>> MpiTeam::start(const SpkTeamPlugin& plugin, const Launch& launch) {
  auto team = std::unique_ptr<MpiTeam>(new MpiTeam(plugin));
  SPK_TRY(team->check(plugin.start(&team->rank_, &team->size_)));
  if (team->size() != launch.size) {
    char library[256] = {};
    plugin.library(library, sizeof library);
    // Its ranks do not find each other: it is another MPI's launcher.
    return unsupported(str_cat("started ", launch.size, " times by ", launch.by, ", but '", library,
                               "' sees ", count_of(team->size(), "rank")))
        .with_hint(
            "start it with that MPI's own mpirun (mpirun.mpich, mpirun.openmpi), or srun "
            "--mpi=pmix for Open MPI, --mpi=pmi2 for MPICH");
  }
  team->watcher_ = std::thread([raw = team.get()] { raw->watch(); });
  return std::unique_ptr<Team>(std::move(team));
}

MpiTeam::~MpiTeam() {
  ending_ = true;
  if (watcher_.joinable()) watcher_.join();
}

Status MpiTeam::check(int error) const {
  if (error == 0) return {};
  char text[512] = {};
  plugin_.error_text(error, text, sizeof text);
  return Status(Code::kIo, str_cat("MPI: ", text));
}

Status MpiTeam::look_for_stops() {
  const std::lock_guard lock(mutex_);
  if (wants_stop_ && !sent_) {
    sent_ = true;
    SPK_TRY(check(plugin_.send_stop()));
  }
  for (int came = 1; came != 0;) {
    came = 0;
    SPK_TRY(check(plugin_.receive_stop(&came)));
    received_ += came != 0 ? 1 : 0;
    if (came != 0) told_ = true;
  }
  return {};
}

void MpiTeam::watch() {
  while (!ending_) {
    // A signal reaches one rank, or some.
    if (cancel_flag()) wants_stop_ = told_ = true;
    // Trouble shows where the ranks meet next.
    (void)look_for_stops();
    std::this_thread::sleep_for(kLookInterval);
  }
}

// MPI's own waiting would take a whole CPU from those who still work.
Status MpiTeam::wait_for_gather() {
  std::chrono::microseconds pause = kLeastPause;
  for (;;) {
    int done = 0;
    {
      const std::lock_guard lock(mutex_);
      SPK_TRY(check(plugin_.test_gather(&done)));
    }
    if (done != 0) return {};
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kMostPause);
  }
}

Result<std::vector<std::string>> MpiTeam::all_gather(const std::string& mine) {
  const uint64_t bytes = mine.size();
  std::vector<uint64_t> sizes(size());
  {
    const std::lock_guard lock(mutex_);
    SPK_TRY(check(plugin_.begin_gather(&bytes, sizeof bytes, sizes.data())));
  }
  SPK_TRY(wait_for_gather());
  std::vector<int> counts, places;
  uint64_t total = 0;
  for (const uint64_t one : sizes) {
    if (one > INT_MAX - total) {
      return Status(Code::kNoMemory, "the ranks have more to tell each other than MPI can send");
    }
    counts.push_back(static_cast<int>(one));
    places.push_back(static_cast<int>(total));
    total += one;
  }
  std::string all(total, '\0');
  {
    const std::lock_guard lock(mutex_);
    SPK_TRY(
        check(plugin_.begin_gather_each(mine.data(), counts.data(), places.data(), all.data())));
  }
  SPK_TRY(wait_for_gather());
  std::vector<std::string> messages;
  for (size_t i = 0; i < sizes.size(); ++i) {
    messages.push_back(all.substr(static_cast<size_t>(places[i]), sizes[i]));
  }
  return messages;
}

Status MpiTeam::leave() {
  ending_ = true;
  if (watcher_.joinable()) watcher_.join();
  SPK_ASSIGN(const std::vector<std::string> sent, all_gather(sent_ ? "1" : ""));
  uint32_t expected = sent_ ? UINT32_MAX : 0;  // its own does not count
  for (const std::string& one : sent) expected += one.empty() ? 0 : 1;
  wants_stop_ = false;
  while (received_ < expected) {
    SPK_TRY(look_for_stops());
    std::this_thread::sleep_for(kLeastPause);
  }
  return check(plugin_.finish());
}

}  // namespace spk
