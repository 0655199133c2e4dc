// The ranks of one run: processes of one MPI program that build a pack, prove one, export one. Each
// does the same steps on its own shards; between steps they exchange what they know, so that all go
// on, or all end, with the same status. A run of one process is a team of one.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ui/signals.h"

namespace spk {

class Team {
 public:
  virtual ~Team() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  bool first() const { return rank() == 0; }
  // Every rank gives bytes and gets those of all, in order of rank. Every rank must call it as
  // often as the others. Waits without taking a CPU. From one thread.
  virtual Result<std::vector<std::string>> all_gather(const std::string& mine) = 0;
  // Asks the other ranks to end the step that they are at. From any thread, any number of times.
  virtual void tell_stop() = 0;
  // True soon after another rank told it, or a signal asked this one to stop. May be kept as long
  // as the team.
  virtual const std::atomic<bool>& stop_flag() const = 0;
};

// Of the process alone.
class SoloTeam : public Team {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return 1; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    return std::vector<std::string>{mine};
  }
  void tell_stop() override {}
  const std::atomic<bool>& stop_flag() const override { return cancel_flag(); }
};

// A step's end: every rank gives its status and a message. Where any failed, all get the status of
// the one that counts: errors before stops, then the lowest shard's, then the lowest rank's.
// Otherwise the messages.
Result<std::vector<std::string>> agree(Team& team, const Status& mine, const std::string& message);

// A status that is not ok as a message, and back: code, errno, texts, place. False where BYTES are
// none.
std::string encode_status(const Status& status);
bool decode_status(std::string_view bytes, Status* status);

}  // namespace spk
