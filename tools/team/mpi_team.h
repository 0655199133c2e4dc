// A team over MPI, through a plugin. A thread of its own looks for stops while the ranks work.
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "team/launch.h"
#include "team/plugin_api.h"
#include "team/team.h"

namespace spk {

class MpiTeam : public Team {
 public:
  // PLUGIN must stay loaded.
  static Result<std::unique_ptr<Team>> start(const SpkTeamPlugin& plugin, const Launch& launch);
  ~MpiTeam() override;

  uint32_t rank() const override { return static_cast<uint32_t>(rank_); }
  uint32_t size() const override { return static_cast<uint32_t>(size_); }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override;
  void tell_stop() override { wants_stop_ = true; }
  const std::atomic<bool>& stop_flag() const override { return told_; }
  // Every rank calls it, as its last.
  Status leave();

 private:
  explicit MpiTeam(const SpkTeamPlugin& plugin) : plugin_(plugin) {}
  void watch();
  Status look_for_stops();
  Status wait_for_gather();
  Status check(int error) const;

  const SpkTeamPlugin& plugin_;
  int rank_ = 0;
  int size_ = 1;
  std::mutex mutex_;  // held for each call of the plugin
  std::atomic<bool> wants_stop_{false};
  std::atomic<bool> told_{false};
  std::atomic<bool> ending_{false};
  bool sent_ = false;      // under mutex_, as is what follows
  uint32_t received_ = 0;  // stops
  std::thread watcher_;
};

}  // namespace spk
