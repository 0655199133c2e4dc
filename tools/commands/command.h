// A subcommand: declares its options, then runs. One file pair each in this folder.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <vector>

#include "team/team.h"
#include "ui/ui.h"

namespace spk {

class Command {
 public:
  virtual ~Command() = default;
  // Declares the subcommand and its options; called once. What CLI11 finds wrong (unknown options,
  // values that its validators refuse) is reported by main, as JSON where --json was typed.
  virtual void add_to(CLI::App& app) = 0;
  // After parsing: this is the subcommand that was typed.
  virtual bool chosen() const = 0;
  // True where the ranks of an MPI program share the command's work: each runs it, with team(), and
  // all end with the same exit code; the first alone prints. Otherwise each process is by itself.
  virtual bool deals_to_ranks() const { return false; }
  void set_team(Team* team) { team_ = team; }  // before run()
  // The exit code (ui/exit_codes.h). Errors are reported by `return ui.fail(status)`.
  virtual int run(Ui& ui) = 0;

 protected:
  Team& team() { return *team_; }

 private:
  Team* team_ = nullptr;
};

// In the order in which --help lists them.
std::vector<std::unique_ptr<Command>> make_commands();

}  // namespace spk
