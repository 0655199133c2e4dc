#include "commands/command.h"

namespace spk {

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  return commands;
}

}  // namespace spk
