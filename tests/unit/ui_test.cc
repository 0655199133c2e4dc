#include "ui/ui.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "commands/run_record.h"
#include "commands/sample_filter.h"
#include "support/test_pack.h"
#include "ui/cpus.h"
#include "ui/exit_codes.h"
#include "ui/progress.h"
#include "ui/version.h"

namespace spk {
namespace {

// A Ui whose two streams go to files.
class UiTest : public testing::Test {
 protected:
  UiTest()
      : out_fd_(open((dir_ / "out").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600)),
        err_fd_(open((dir_ / "err").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600)),
        ui_(out_fd_, err_fd_) {}
  ~UiTest() override {
    close(out_fd_);
    close(err_fd_);
  }
  std::string out() {
    EXPECT_TRUE(ui_.finish().ok());
    return test::read_file(dir_ / "out");
  }
  std::string err() { return test::read_file(dir_ / "err"); }

  test::TempDir dir_;
  int out_fd_;
  int err_fd_;
  Ui ui_;
};

TEST_F(UiTest, FinalErrorForPeople) {
  ui_.set_command("pack");
  EXPECT_TRUE(ui_.out("first"));
  const Status status = damaged("what").at_path("FILE").at_offset(4096).with_hint("try another");
  EXPECT_EQ(ui_.fail(status), kExitFailed);
  EXPECT_EQ(ui_.fail(status, kExitNo), kExitNo);
  EXPECT_EQ(out(), "first\n");
  EXPECT_EQ(err(),
            "stripepack pack: FILE @4096: what; try another\n"
            "stripepack pack: FILE @4096: what; try another\n");
}

TEST_F(UiTest, FinalErrorAsJson) {
  ui_.set_json(true);
  const Status status =
      damaged("what").at_path("F\xff").at_offset(7).at_shard(3).with_hint("try another");
  EXPECT_EQ(ui_.fail(status), kExitFailed);
  EXPECT_EQ(err(),
            "{\"type\": \"error\", \"v\": 1, \"code\": \"damaged\", \"exit\": 4, \"message\": "
            "\"what\", \"path\": \"F\\\\xff\", \"offset\": 7, \"shard\": 3, \"hint\": \"try "
            "another\"}\n");
}

TEST_F(UiTest, MessagesCannotCommandATerminal) {
  EXPECT_EQ(ui_.fail(internal_error("a\x1b[2Jb\nc")), kExitFailed);
  EXPECT_EQ(err(), "stripepack: a\\x1b[2Jb; c\n");
}

TEST_F(UiTest, JsonLinesBeginWithTypeAndVersion) {
  ui_.set_json(true);
  EXPECT_TRUE(ui_.json(json_line("thing").member("n", 1).end_object()));
  ui_.note("hello");
  EXPECT_EQ(out(), "{\"type\": \"thing\", \"v\": 1, \"n\": 1}\n");
  EXPECT_EQ(err(), "{\"type\": \"note\", \"v\": 1, \"message\": \"hello\"}\n");
}

TEST_F(UiTest, NulEndsAndRawBytes) {
  EXPECT_TRUE(ui_.out("k", '\0'));
  EXPECT_TRUE(ui_.write(std::string_view("a\0b", 3)));
  EXPECT_EQ(out(), std::string("k\0a\0b", 5));
}

TEST(Ui, AClosedPipeIsNoErrorAFullDiskIs) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  {
    Ui ui(ends[1], 2);
    EXPECT_FALSE(ui.write("x"));
    EXPECT_FALSE(ui.out("y"));
    EXPECT_TRUE(ui.finish().ok());
  }
  close(ends[1]);
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  {
    Ui ui(full, 2);
    EXPECT_TRUE(ui.out("x"));
    const Status status = ui.finish();
    EXPECT_EQ(status.code(), Code::kNoSpace);
    EXPECT_EQ(status.message(), "cannot write to standard output: No space left on device");
  }
  close(full);
}

TEST(ExitCodes, FollowTheCode) {
  EXPECT_EQ(exit_code_of({}), 0);
  EXPECT_EQ(exit_code_of(invalid_argument("x")), 2);
  EXPECT_EQ(exit_code_of(damaged("x")), 4);
  EXPECT_EQ(exit_code_of(unsupported("x")), 5);
  EXPECT_EQ(exit_code_of(Status(Code::kNotThisFormat, "x")), 5);
  for (const Code code :
       {Code::kIo, Code::kNoSpace, Code::kNotFound, Code::kExists, Code::kNoMemory, Code::kPartial,
        Code::kBusy, Code::kMismatch, Code::kInternal, Code::kDenied, static_cast<Code>(999)}) {
    EXPECT_EQ(exit_code_of(Status(code, "x")), 4) << code_name(code);
  }
}

TEST(Progress, LineTellsStageRateAndTimeLeft) {
  ProgressSnapshot now;
  now.stage = "packing";
  now.seconds = 10;
  now.samples = 5000;
  EXPECT_EQ(progress_line(now, 0), "packing  5,000  500 samples/s");
  now.bytes = 200'000'000;
  now.rejects = 2;
  now.totals = {20000, 1'000'000'000, 5000, 300'000'000};
  EXPECT_EQ(progress_line(now, 0),
            "packing  10,000/20,000  50 %  500 samples/s  20 MB/s  2 rejected  0:25 left");
  EXPECT_EQ(progress_line(now, 16), "packing  10,000/");
  now.totals = {50000, 0, 0, 0};
  now.rejects = 0;
  EXPECT_EQ(progress_line(now, 0),
            "packing  5,000/50,000  10 %  500 samples/s  20 MB/s  1:30 left");
  now.totals.samples = 50'000'000;
  EXPECT_EQ(progress_line(now, 0),
            "packing  5,000/50,000,000  0 %  500 samples/s  20 MB/s  27:46:30 left");
}

TEST_F(UiTest, ProgressElsewhereThanOnATerminalIsTimedLines) {
  using std::chrono::milliseconds;
  {
    Progress progress(ui_, ProgressMode::kAuto, milliseconds(1), milliseconds(20));
    progress.stage("reading", {10, 0, 0, 0});
    progress.add(4, 1000);
    while (err().empty()) std::this_thread::sleep_for(milliseconds(5));
  }
  const std::string text = err();
  EXPECT_EQ(text.find('\r'), text.npos);
  EXPECT_EQ(text.substr(10, 1), "T");
  EXPECT_EQ(text.substr(19, 20), "Z reading  4/10  40 ");
}

TEST_F(UiTest, ProgressCanBeSilentOrForced) {
  using std::chrono::milliseconds;
  {
    Progress progress(ui_, ProgressMode::kNever, milliseconds(1), milliseconds(1));
    progress.stage("reading");
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_EQ(err(), "");
  {
    Progress progress(ui_, ProgressMode::kAlways, milliseconds(1), milliseconds(100000));
    progress.stage("reading");
    while (err().empty()) std::this_thread::sleep_for(milliseconds(5));
  }
  const std::string text = err();
  EXPECT_TRUE(text.starts_with("\rreading  0")) << text;
  EXPECT_TRUE(text.ends_with("\r\x1b[K")) << text;  // the line is gone at the end
}

TEST_F(UiTest, ProgressAsJson) {
  using std::chrono::milliseconds;
  ui_.set_json(true);
  {
    Progress progress(ui_, ProgressMode::kAuto, milliseconds(1), milliseconds(5));
    progress.stage("reading", {10, 100, 1, 10});
    progress.add(4, 40);
    while (err().empty()) std::this_thread::sleep_for(milliseconds(5));
  }
  const std::string text = err();
  EXPECT_TRUE(text.starts_with("{\"type\": \"progress\", \"v\": 1, \"time\": \"")) << text;
  EXPECT_NE(
      text.find("\"stage\": \"reading\", \"samples\": 5, \"samples_total\": 10, \"bytes\": 50, "
                "\"bytes_total\": 100, \"rejects\": 0, "),
      text.npos)
      << text;
}

class CgroupTest : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = dir_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  test::TempDir dir_;
};

TEST_F(CgroupTest, LeastQuotaOfTheWayUpCounts) {
  put("cpu.max", "max 100000\n");
  put("user/cpu.max", "350000 100000\n");
  put("user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/user/job\n", dir_.path()), 4u);  // 3.5 rounds up
  put("user/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/user/job\n", dir_.path()), 2u);
  put("cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cpus("0::/user/job\n", dir_.path()), 1u);
  EXPECT_EQ(cgroup_cpus("0::/\n", dir_.path()), 1u);
  // In a container without a namespace the path is the host's.
  EXPECT_EQ(cgroup_cpus("0::/not/here\n", dir_.path()), 1u);
}

TEST_F(CgroupTest, VersionOneAndNone) {
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  put("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  const std::string lines = "5:memory:/job\n4:cpu,cpuacct:/job\n1:name=systemd:/job\n";
  EXPECT_EQ(cgroup_cpus(lines, dir_.path()), UINT32_MAX);
  put("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(cgroup_cpus(lines, dir_.path()), 3u);
  EXPECT_EQ(cgroup_cpus("", dir_.path()), UINT32_MAX);
  EXPECT_EQ(cgroup_cpus("rubbish\n4:\n", dir_.path()), UINT32_MAX);
  EXPECT_GE(allowed_cpus(), 1u);
}

TEST(RunRecord, FlatMembersInOrder) {
  using Members = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(flat_members("{\"host\": \"n1\", \"args\": [\"a\", {\"b\": \"]\"}], \"jobs\": 8,\n"
                         " \"cmd\": \"a \\\"b\\\" \\u0009\", \"done\": true}"),
            (Members{{"host", "n1"}, {"jobs", "8"}, {"cmd", "a \"b\" \t"}, {"done", "true"}}));
  EXPECT_EQ(flat_members("{\"a\": 1, \"b\""), (Members{{"a", "1"}}));
  EXPECT_EQ(flat_members(""), Members{});
  EXPECT_EQ(flat_members("[1]"), Members{});
  EXPECT_EQ(flat_members("{\"a\": [[[["), Members{});
  EXPECT_EQ(flat_members("{\"a\": \"\\"), Members{});
}

TEST(SampleFilter, RangesAndGlobs) {
  uint64_t begin = 9;
  uint64_t end = 9;
  EXPECT_TRUE(parse_range("3:7", &begin, &end).ok());
  EXPECT_EQ(begin, 3u);
  EXPECT_EQ(end, 7u);
  EXPECT_TRUE(parse_range(":", &begin, &end).ok());
  EXPECT_EQ(begin, 0u);
  EXPECT_EQ(end, UINT64_MAX);
  for (const char* wrong :
       {"", "3", "a:b", "7:3", "-1:3", "1:2:3", "1 :2", "99999999999999999999:"}) {
    EXPECT_EQ(parse_range(wrong, &begin, &end).code(), Code::kInvalidArgument) << wrong;
  }
  EXPECT_TRUE(glob_matches("cat/*", "cat/deep/1.jpg"));
  EXPECT_TRUE(glob_matches("*.jpg", "cat/1.jpg"));
  EXPECT_FALSE(glob_matches("*.jpg", "cat/1.png"));
  EXPECT_TRUE(glob_matches("[ab]?", "b\xff"));
  EXPECT_TRUE(glob_matches("a*c", std::string("a\0c", 3)));
  EXPECT_FALSE(glob_matches("a", std::string("a\0c", 3)));
}

TEST(Version, NamesProgramAndFormat) {
  EXPECT_TRUE(version_text().starts_with(std::string("stripepack ") + program_version() +
                                         "\nformat version 1\nbuilt with"));
}

}  // namespace
}  // namespace spk
