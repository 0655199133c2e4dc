#include "pipeline/part.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "pipeline/plans_file.h"
#include "support/test_pack.h"
#include "team/launch.h"
#include "team/team.h"

namespace spk {
namespace {

using Variables = std::map<std::string, std::string>;

std::function<const char*(const char*)> environment_of(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

Result<PackPart> parsed(const std::string& word, const Variables& variables = {}) {
  return parse_part(word, environment_of(variables));
}

TEST(Part, Words) {
  EXPECT_EQ(*parsed("0/1"), (PackPart{0, 1}));
  EXPECT_EQ(*parsed("7/8"), (PackPart{7, 8}));
  EXPECT_EQ(to_text(*parsed("7/8")), "7/8");
  for (const char* word : {"", "/", "1/", "/2", "1", "2/2", "0/0", "-1/2", "1/2/3", " 1/2", "0x1/2",
                           "1/99999999999999999999", "0/1000001", "Slurm"}) {
    const auto part = parsed(word);
    ASSERT_FALSE(part.ok()) << word;
    EXPECT_EQ(part.status().code(), Code::kInvalidArgument) << word;
  }
}

TEST(Part, Nodes) {
  const auto node = [](const std::string& word, const Variables& variables = {}) {
    return parse_node(word, environment_of(variables));
  };
  EXPECT_EQ(*node("2/5"), (PackPart{2, 5}));
  EXPECT_EQ(node("5/5").status().message(), "--node 5/5: nodes are numbered from 0 to 4");
  EXPECT_EQ(node("five").status().message(), "--node 'five' is neither I/N nor slurm");
  EXPECT_EQ(node("five").status().hint(), "the first of four nodes is --node 0/4");
  Variables step = {{"SLURM_NODEID", "3"}, {"SLURM_NNODES", "8"}};
  EXPECT_EQ(node("slurm", step).status().message(),
            "--node slurm: this is the script of a job of 8 nodes, not one of its tasks");
  step["SLURM_STEP_ID"] = "0";
  EXPECT_EQ(*node("slurm", step), (PackPart{3, 8}));
  step["SLURM_STEP_NUM_NODES"] = "4";
  EXPECT_EQ(*node("slurm", step), (PackPart{3, 4}));
  EXPECT_EQ(*node("slurm", {{"SLURM_NODEID", "0"}, {"SLURM_NNODES", "1"}}), (PackPart{0, 1}));
  EXPECT_EQ(node("slurm").status().hint(), "the tasks of srun have SLURM_NODEID and SLURM_NNODES");
}

TEST(Part, SlurmArraysAndTasks) {
  const Variables array = {{"SLURM_ARRAY_TASK_ID", "20"},
                           {"SLURM_ARRAY_TASK_MIN", "10"},
                           {"SLURM_ARRAY_TASK_MAX", "25"},
                           {"SLURM_ARRAY_TASK_STEP", "5"},
                           {"SLURM_ARRAY_TASK_COUNT", "4"}};
  EXPECT_EQ(*parsed("slurm", array), (PackPart{2, 4}));
  Variables both = array;
  both["SLURM_STEP_ID"] = "0";
  both["SLURM_STEP_NUM_TASKS"] = "3";
  both["SLURM_PROCID"] = "1";
  EXPECT_EQ(*parsed("slurm", both), (PackPart{7, 12}));
  // The batch script of an array's job, which is to have several tasks, is one process.
  Variables script = array;
  script["SLURM_PROCID"] = "0";
  script["SLURM_NTASKS"] = "3";
  EXPECT_EQ(*parsed("slurm", script), (PackPart{2, 4}));
  Variables gaps = array;
  gaps["SLURM_ARRAY_TASK_COUNT"] = "3";
  EXPECT_EQ(parsed("slurm", gaps).status().message(),
            "--part slurm: the array's numbers from 10 to 25 have gaps: it has 3 jobs");
  const Variables tasks = {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}};
  EXPECT_EQ(*parsed("slurm", tasks), (PackPart{2, 8}));
  EXPECT_EQ(parsed("slurm").status().message(), "--part slurm: SLURM_PROCID is not set");
}

TEST(Part, EachShardIsOneParts) {
  for (uint32_t count = 1; count <= 9; ++count) {
    for (uint64_t before = 0; before < 20; ++before) {
      std::map<uint64_t, int> builders;
      for (uint32_t index = 0; index < count; ++index) {
        const PackPart part{index, count};
        for (uint64_t shard = first_shard_of(part, before); shard < 25; shard += count) {
          EXPECT_TRUE(part.builds(before + shard));
          builders[shard] += 1;
        }
      }
      EXPECT_EQ(builders.size(), 25u);
      for (const auto& [shard, times] : builders) EXPECT_EQ(times, 1) << shard;
    }
  }
}

TEST(PlansFile, ComesBackAsWritten) {
  const test::TempDir temp;
  const Directory dir = Directory::open(temp.path()).value();
  PlansFile plans;
  plans.command = "stripepack pack 'a b' out --part 0/4";
  plans.source = "a b\xff";
  plans.made = "2026-11-30T12:00:00Z";
  plans.parts = 4;
  plans.request = {{"--field", "mask=\n"}, {"SRC", "a b\xff"}};
  plans.splits = {{"train", "00ff", 7}, {"val", "01", 1}};
  ASSERT_TRUE(write_plans_file(dir, plans).ok());
  const auto read = read_plans_file(dir);
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->command, plans.command);
  EXPECT_EQ(read->source, plans.source);
  EXPECT_EQ(read->made, plans.made);
  EXPECT_EQ(read->parts, 4u);
  EXPECT_EQ(read->request, plans.request);
  ASSERT_EQ(read->splits.size(), 2u);
  EXPECT_EQ(read->splits[1].name, "val");
  EXPECT_EQ(read->splits[0].plan_id, "00ff");
  EXPECT_EQ(read->splits[0].shard_count, 7u);
}

TEST(PlansFile, Differences) {
  const PackRequest before = {{"--no-shuffle", "true"}, {"--seed", "3"}, {"SRC", "a"}};
  EXPECT_EQ(request_difference(before, before), "");
  EXPECT_EQ(request_difference(before, {{"--check", "none"}, {"--seed", "4"}, {"SRC", "a"}}),
            "--check: not given before, none now; --seed: 3 before, 4 now; "
            "--no-shuffle: true before, not given now");
}

TEST(Launch, IsToldByTheEnvironment) {
  const auto launch = [](const Variables& variables) {
    return detect_launch(environment_of(variables));
  };
  EXPECT_EQ(launch({}).size, 1u);
  EXPECT_EQ(launch({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}).size, 1u);
  // A batch script is one process, however many tasks its job has.
  EXPECT_EQ(launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).size, 1u);
  const Launch mpich = launch({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(mpich.rank, 2u);
  EXPECT_EQ(mpich.size, 4u);
  EXPECT_EQ(mpich.plugins.front(), "mpich");
  const Launch open =
      launch({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(open.plugins.front(), "openmpi");
  const Launch srun =
      launch({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}});
  EXPECT_EQ(srun.size, 2u);
  EXPECT_TRUE(srun.plugins.empty());
  EXPECT_EQ(make_team(srun).status().code(), Code::kUnsupported);
}

TEST(Team, AStatusComesThroughAMessage) {
  const Status plain =
      Status(Code::kMismatch, "differs").at_path("x").at_offset(7).at_shard(3).with_hint("look");
  Status back;
  ASSERT_TRUE(decode_status(encode_status(plain), &back));
  EXPECT_EQ(back.to_string(), plain.to_string());
  EXPECT_EQ(back.code(), Code::kMismatch);
  EXPECT_EQ(back.shard(), 3u);
  const Status system = Status::from_errno(EFBIG, "cannot write").at_path("y");
  ASSERT_TRUE(decode_status(encode_status(system), &back));
  EXPECT_EQ(back.to_string(), system.to_string());
  EXPECT_EQ(back.os_errno(), EFBIG);
  EXPECT_FALSE(decode_status("", &back));
  EXPECT_FALSE(decode_status(std::string_view("\x04\x00", 2), &back));
}

// Of the other ranks' messages, which it was given beforehand.
class ScriptedTeam : public Team {
 public:
  explicit ScriptedTeam(std::vector<std::string> others) : others_(std::move(others)) {}
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return static_cast<uint32_t>(others_.size()) + 1; }
  Result<std::vector<std::string>> all_gather(const std::string& mine) override {
    std::vector<std::string> all = {mine};
    all.insert(all.end(), others_.begin(), others_.end());
    return all;
  }
  void tell_stop() override {}
  const std::atomic<bool>& stop_flag() const override { return stop_; }

 private:
  std::vector<std::string> others_;
  std::atomic<bool> stop_{false};
};

std::string failed_with(const Status& status) {
  return std::string("\x01\x00", 2) + encode_status(status);
}

TEST(Team, TheLowestShardsErrorCounts) {
  ScriptedTeam team({failed_with(Status(Code::kIo, "late").at_shard(9)),
                     failed_with(Status(Code::kIo, "early").at_shard(4)),
                     failed_with(Status(Code::kCancelled, "stopped")),
                     failed_with(Status(Code::kIo, "no shard"))});
  EXPECT_EQ(agree(team, Status(), "fine").status().message(), "early");
  EXPECT_EQ(agree(team, Status(Code::kCancelled, "told"), "").status().message(), "early");
  ScriptedTeam good({std::string("\x00\x00two", 5), std::string("\x00\x00", 2)});
  EXPECT_EQ(*agree(good, Status(), "one"), (std::vector<std::string>{"one", "two", ""}));
  ScriptedTeam garbled({""});
  EXPECT_EQ(agree(garbled, Status(), "").status().code(), Code::kInternal);
}

}  // namespace
}  // namespace spk
