#include "sinks/folder_names.h"

#include <gtest/gtest.h>

#include <set>

namespace spk {
namespace {

// Paths of samples 0, 1, ... with these keys.
std::vector<std::string> paths_of(const std::vector<std::string>& keys) {
  FolderNames names;
  for (size_t i = 0; i < keys.size(); ++i) names.add(i, keys[i]);
  const Status status =
      names.finish([&](uint64_t sample) { return Result<std::string>(keys[sample]); });
  EXPECT_TRUE(status.ok());
  std::vector<std::string> paths;
  for (size_t i = 0; i < keys.size(); ++i) paths.push_back(names.path_of(i, keys[i]));
  return paths;
}

TEST(FolderNames, OrdinaryKeysAreTheirOwnPaths) {
  const std::vector<std::string> keys = {
      "a.jpg",   "cat/1.jpg", "cat/deep/2.jpg", "caf\xc3\xa9/\xff",
      "..a/b..", "cat/...",   "%2e/%1_x",       " /\n"};
  EXPECT_EQ(paths_of(keys), keys);
}

TEST(FolderNames, HostileKeysStayBelowTheFolder) {
  const std::string nul("a/b\0c", 5);
  EXPECT_EQ(
      paths_of({"../../etc/passwd", "/etc/passwd", "a/../../b", "a//b", "", ".", "a/", nul, "./x"}),
      (std::vector<std::string>{"%0_..%2f..%2fetc%2fpasswd", "%1_%2fetc%2fpasswd",
                                "a/%2_..%2f..%2fb", "a/%3_%2fb", "%4_", "%5_.", "a/%6_",
                                "a/%7_b%00c", "%8_.%2fx"}));
}

TEST(FolderNames, LongNamesAreCutInTheMiddle) {
  const std::string long_name = std::string(300, 'x') + ".jpg";
  const std::vector<std::string> paths = paths_of({"a/" + long_name, std::string(255, 'y')});
  EXPECT_EQ(paths[0], "a/%0_" + std::string(120, 'x') + "~" + std::string(56, 'x') + ".jpg");
  EXPECT_EQ(paths[1], std::string(255, 'y'));
  // A key of many harmless components.
  std::string deep;
  while (deep.size() < 5000) deep += "d/";
  const std::string path = paths_of({deep + "file"})[0];
  EXPECT_LE(path.size(), 3300u);
  EXPECT_TRUE(key_shape(path).is_path);
  // Bytes that are written with three signs each.
  EXPECT_LE(paths_of({std::string(400, '\xff')})[0].size(), 255u);
  EXPECT_LE(paths_of({std::string(150, '\0')})[0].size(), 255u);
}

TEST(FolderNames, NamesOfOurOwnAreNoKeys) {
  EXPECT_EQ(paths_of({".stripepack-x.tmp", "a/.stripepack-1", ".stripepack-d/e", "stripepack-x"}),
            (std::vector<std::string>{"%0_.stripepack-x.tmp", "a/%1_.stripepack-1",
                                      "%2_.stripepack-d%2fe", "stripepack-x"}));
}

TEST(FolderNames, AReservedPathIsLeftToItsOwner) {
  const std::vector<std::string> keys = {"manifest.tsv", "a/manifest.tsv"};
  FolderNames names;
  for (size_t i = 0; i < keys.size(); ++i) names.add(i, keys[i]);
  names.reserve("manifest.tsv");
  ASSERT_TRUE(
      names.finish([&](uint64_t sample) { return Result<std::string>(keys[sample]); }).ok());
  EXPECT_EQ(names.path_of(0, keys[0]), "%0_manifest.tsv");
  EXPECT_EQ(names.path_of(1, keys[1]), "a/manifest.tsv");
}

TEST(FolderNames, RepeatedKeysAndFilesThatAreFoldersGetNamesOfTheirOwn) {
  EXPECT_EQ(paths_of({"a/x", "a/x", "a/x"}), (std::vector<std::string>{"a/x", "a/%1_x", "a/%2_x"}));
  EXPECT_EQ(paths_of({"a", "a/b", "a/b/c"}), (std::vector<std::string>{"%0_a", "a/%1_b", "a/b/c"}));
  // The folder is there only because of a hostile key.
  EXPECT_EQ(paths_of({"a", "a/../x"}), (std::vector<std::string>{"%0_a", "a/%1_..%2fx"}));
}

TEST(FolderNames, ANameThatIsTakenGetsMorePercentSigns) {
  EXPECT_EQ(paths_of({"%1_x", "x", "x"}), (std::vector<std::string>{"%1_x", "x", "%2_x"}));
  EXPECT_EQ(paths_of({"%2_x", "x", "x"}), (std::vector<std::string>{"%2_x", "x", "%%2_x"}));
  EXPECT_EQ(paths_of({"%2_x/y", "x", "x"}), (std::vector<std::string>{"%2_x/y", "x", "%%2_x"}));
}

TEST(FolderNames, PathsAreDistinctAndHarmlessWhateverTheKeys) {
  const uint64_t seed = 20240607;
  SCOPED_TRACE(seed);
  uint64_t state = seed;
  const auto next = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  constexpr std::string_view kPieces[] = {"a", "b", "/", "/", "..", ".", "%", "1", "_", "%2f"};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> keys;
    for (int i = 0; i < 40; ++i) {
      std::string key;
      for (uint64_t length = next(6); length > 0; --length) key += kPieces[next(10)];
      keys.push_back(key);
    }
    const std::vector<std::string> paths = paths_of(keys);
    std::set<std::string> files;
    std::set<std::string> folders;
    for (const std::string& path : paths) {
      EXPECT_TRUE(key_shape(path).is_path) << path;
      EXPECT_TRUE(files.insert(path).second) << path;
      for (size_t at = path.find('/'); at != path.npos; at = path.find('/', at + 1)) {
        folders.insert(path.substr(0, at));
      }
    }
    for (const std::string& folder : folders) EXPECT_FALSE(files.contains(folder)) << folder;
  }
}

}  // namespace
}  // namespace spk
