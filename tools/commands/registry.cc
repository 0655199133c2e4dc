#include "commands/bench.h"
#include "commands/cat.h"
#include "commands/command.h"
#include "commands/diff.h"
#include "commands/export.h"
#include "commands/extract.h"
#include "commands/fs.h"
#include "commands/info.h"
#include "commands/layout.h"
#include "commands/ls.h"
#include "commands/order.h"
#include "commands/pack.h"
#include "commands/repair.h"
#include "commands/seal.h"
#include "commands/stage.h"
#include "commands/verify.h"

namespace spk {

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_pack_command());
  commands.push_back(make_repack_command());
  commands.push_back(make_seal_command());
  commands.push_back(make_verify_command());
  commands.push_back(make_repair_command());
  commands.push_back(make_info_command());
  commands.push_back(make_ls_command());
  commands.push_back(make_cat_command());
  commands.push_back(make_extract_command());
  commands.push_back(make_export_command());
  commands.push_back(make_diff_command());
  commands.push_back(make_stage_command());
  commands.push_back(make_layout_command());
  commands.push_back(make_fs_command());
  commands.push_back(make_order_command());
  commands.push_back(make_bench_command());
  return commands;
}

}  // namespace spk
