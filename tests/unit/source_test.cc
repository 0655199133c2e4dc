// Sources in general, and the folder source. Lists of samples: manifest_test.cc.
#include <fcntl.h>
#include <sys/stat.h>

#include "sources/file_sample.h"
#include "sources/names.h"
#include "unit/source_listing.h"

namespace spk {
namespace {

TEST_F(SourceTest, FolderLabelsFollowByteOrderOfFirstLevel) {
  for (const char* name :
       {"a/1.jpg", "a/x-1.jpg", "a/x/9.jpg", "a/x2.jpg", "b/q/r/s.jpg", "a/pics.jpg/in.jpg"}) {
    write(str_cat("in/", name));
  }
  const Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"a/1.jpg", "a/pics.jpg/in.jpg", "a/x-1.jpg", "a/x/9.jpg",
                                  "a/x2.jpg", "b/q/r/s.jpg"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(listed.listing.classes, (Names{"a", "b"}));
  EXPECT_EQ(listed.listing.splits, Names{""});
  EXPECT_EQ(listed.listing.source_kind, "folder");
  EXPECT_EQ(listed.listing.label_kind, LabelKind::kInt);
  EXPECT_EQ(listed.listing.warnings.total(), 0u);
  EXPECT_EQ(listed.entries[0].size_bytes, 7u);
  EXPECT_NE(listed.entries[0].mtime_ns, kUnknownMtime);
}

TEST_F(SourceTest, FolderSplitsShareOneClassList) {
  for (const char* name : {"train/a/1.jpg", "train/c/1.jpg", "val/b/1.jpg", "val/c/2.jpg"}) {
    write(str_cat("in/", name));
  }
  write("in/stray.jpg");
  write("in/readme.txt");
  const Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.splits, (Names{"train", "val"}));
  EXPECT_EQ(listed.listing.classes, (Names{"a", "b", "c"}));
  EXPECT_EQ(listed.keys(), (Names{"a/1.jpg", "c/1.jpg", "b/1.jpg", "c/2.jpg"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 2, 1, 2}));
  EXPECT_EQ(listed.entries.back().path, "val/c/2.jpg");
  EXPECT_EQ(listed.entries.back().split, 1u);
  EXPECT_EQ(listed.rejects(),
            (std::map<std::string, std::string>{{"../stray.jpg", "no class folder"}}));
  EXPECT_EQ(listed.warned("class without a picture in one split"), 2u);
  EXPECT_EQ(listed.listing.ignored.at("not a picture name"), 1u);

  PackOptions whole;
  whole.splits = SplitMode::kNone;
  const Listed joined = list("in", whole);
  EXPECT_EQ(joined.listing.classes, (Names{"train", "val"}));
  EXPECT_EQ(joined.listing.splits, Names{""});

  write("in/extra/1.jpg");  // now not all are splits
  EXPECT_EQ(list("in").listing.classes, (Names{"extra", "train", "val"}));
}

TEST_F(SourceTest, SplitWithoutFoldersIsUnlabelled) {
  write("in/train/a/1.jpg");
  write("in/test/1.jpg");
  const Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok());
  EXPECT_EQ(listed.listing.splits, (Names{"test", "train"}));
  EXPECT_TRUE(listed.rejects().empty());
  EXPECT_EQ(listed.entries[0].int_labels, Labels{});
  EXPECT_EQ(listed.entries[1].int_labels, Labels{0});
  EXPECT_EQ(listed.warned("no class folders, so no labels"), 1u);
}

TEST_F(SourceTest, OneClassOfFoldersAloneIsWarnedOf) {
  constexpr const char* kWarning =
      "only one class, but its folder holds folders alone: are these the classes?";
  write("in/all/a/1.jpg");
  EXPECT_EQ(list("in").warned(kWarning), 0u);  // one folder may be anything
  write("in/all/b/1.jpg");
  const Listed listed = list("in");
  EXPECT_EQ(listed.listing.classes, Names{"all"});
  EXPECT_EQ(listed.warned(kWarning), 1u);
  write("in/all/2.jpg");
  EXPECT_EQ(list("in").warned(kWarning), 0u);
}

TEST_F(SourceTest, FlatFolderIsUnlabelledAndStraysAreRejected) {
  write("in/1.jpg");
  Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok());
  EXPECT_EQ(listed.keys(), Names{"1.jpg"});
  EXPECT_EQ(listed.listing.label_kind, LabelKind::kNone);
  EXPECT_EQ(listed.warned("no class folders, so no labels"), 1u);

  write("in/a/1.jpg");
  listed = list("in");
  EXPECT_EQ(listed.keys(), Names{"a/1.jpg"});
  EXPECT_EQ(listed.rejects(), (std::map<std::string, std::string>{{"1.jpg", "no class folder"}}));

  PackOptions unlabelled;
  unlabelled.labels = LabelMode::kNone;
  listed = list("in", unlabelled);
  EXPECT_EQ(listed.keys(), (Names{"1.jpg", "a/1.jpg"}));
  EXPECT_TRUE(listed.listing.classes.empty());
  EXPECT_EQ(listed.listing.warnings.total(), 0u);

  PackOptions floats;
  floats.labels = LabelMode::kFloat;
  EXPECT_EQ(list("in", floats).status.code(), Code::kInvalidArgument);
}

TEST_F(SourceTest, HiddenAndForeignNamesAreCounted) {
  for (const char* name :
       {".DS_Store", ".git/logo.png", "dog/desktop.ini", "dog/y.JPEG", "__MACOSX/cat/._x.jpg",
        "cat/Thumbs.db", "cat/._x.jpg", "cat/x.jPg", "cat/.ipynb_checkpoints/x.jpg", "cat/noname",
        "cat/8.jpg.bak", "cat/9.png"}) {
    write(str_cat("in/", name));
  }
  const Listed listed = list("in");
  EXPECT_EQ(listed.keys(), (Names{"cat/9.png", "cat/x.jPg", "dog/y.JPEG"}));
  EXPECT_EQ(listed.listing.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(
      listed.listing.ignored,
      (std::map<std::string, uint64_t>{{"hidden", 4}, {"__MACOSX", 1}, {"not a picture name", 4}}));
}

TEST_F(SourceTest, NamesAreBytes) {
  const std::string odd = "my class, one/ \xff\xfe\n\t\"'$(x);&|\\%20.jpg";
  write("in/" + odd);
  write("in/caf\xe9/-rf.jpg");
  const Listed listed = list("in");
  EXPECT_EQ(listed.keys(), (Names{"caf\xe9/-rf.jpg", odd}));
  EXPECT_EQ(listed.listing.classes, (Names{"caf\xe9", "my class, one"}));
  EXPECT_TRUE(listed.source->open(listed.entries[1]).ok());
}

TEST_F(SourceTest, EmptyAndNumericClassesAreWarnedOf) {
  for (const char* name : {"0/i.jpg", "1/i.jpg", "10/i.jpg", "2/i.jpg", "none/readme.txt"}) {
    write(str_cat("in/", name));
  }
  folder("in/empty");
  const Listed listed = list("in");
  EXPECT_EQ(listed.listing.classes, (Names{"0", "1", "10", "2", "empty", "none"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 1, 2, 3}));
  EXPECT_EQ(listed.warned("class without a picture"), 2u);
  EXPECT_EQ(listed.warned("class names are numbers"), 1u);
}

TEST_F(SourceTest, LinksAreFollowedAndLoopsEnd) {
  write("store/real.jpg");
  write("store/cls/k.jpg");
  write("in/a/1.jpg");
  link("1.jpg", "in/a/2.jpg");
  link("../../store/real.jpg", "in/a/3.jpg");
  link("../store/cls", "in/b");
  link(".", "in/loop");
  link("..", "in/a/up");
  link("../..", "in/a/above");  // the folder that holds the root
  link("self", "in/a/self");
  link("self.jpg", "in/a/self.jpg");
  link("nowhere", "in/a/gone.jpg");
  link("nowhere", "in/gone");
  link("/dev/null", "in/a/device.jpg");
  ASSERT_EQ(::mkfifo((dir_ / "in/a/fifo.png").c_str(), 0600), 0);
  const Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"a/1.jpg", "a/2.jpg", "a/3.jpg", "b/k.jpg"}));
  EXPECT_EQ(listed.listing.classes, (Names{"a", "b"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 0, 0, 1}));
  EXPECT_EQ(listed.rejects(),
            (std::map<std::string, std::string>{{"a/device.jpg", "not a regular file"},
                                                {"a/fifo.png", "not a regular file"},
                                                {"a/gone.jpg", "not found"},
                                                {"a/self.jpg", "not found"}}));
  EXPECT_EQ(listed.warned("folder loop"), 4u);
  EXPECT_EQ(listed.warned("dangling link"), 1u);
}

TEST_F(SourceTest, PathsMayBeLongerThanTheSystemTakes) {
  folder("in");
  const std::string part(200, 'p');
  int at = ::open((dir_ / "in").c_str(), O_RDONLY | O_DIRECTORY);
  std::string key;
  for (int depth = 0; depth < 50; ++depth) {
    ASSERT_EQ(::mkdirat(at, part.c_str(), 0777), 0);
    const int next = ::openat(at, part.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(next, 0);
    ::close(at);
    at = next;
    key += part + "/";
  }
  const int file = ::openat(at, "deep.jpg", O_WRONLY | O_CREAT, 0666);
  ASSERT_EQ(::write(file, "deep", 4), 4);
  ::close(file);
  ::close(at);
  const Listed listed = list("in");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  ASSERT_EQ(listed.keys(), Names{key + "deep.jpg"});
  auto handle = listed.source->open(listed.entries[0]);
  ASSERT_TRUE(handle.ok()) << handle.status().to_string();
  uint8_t bytes[4];
  ASSERT_TRUE((*handle)->read_at(0, bytes).ok());
  EXPECT_EQ(as_text(bytes), "deep");
}

TEST_F(SourceTest, ManyFilesAndFoldersWithAnyNumberOfThreads) {
  for (int i = 0; i < 40; ++i) {
    for (int j = 0; j < 5; ++j) write(str_cat("in/c", 10 + i, "/s", j, "/p.jpg"));
  }
  for (int i = 0; i < 2000; ++i) write(str_cat("in/big/", i, ".jpg"));
  Names keys;
  for (const uint32_t threads : {1u, 2u, 7u, 64u}) {
    PackOptions options;
    options.io_threads = threads;
    const Listed listed = list("in", options);
    ASSERT_TRUE(listed.status.ok());
    EXPECT_EQ(listed.entries.size(), 2200u);
    if (keys.empty()) keys = listed.keys();
    EXPECT_TRUE(listed.keys() == keys);
  }
}

TEST_F(SourceTest, SinkErrorStopsTheWalk) {
  for (int i = 0; i < 1000; ++i) write(str_cat("in/a/", i, ".jpg"));
  PackOptions options;
  options.source = dir_ / "in";
  auto source = open_source(options);
  ASSERT_TRUE(source.ok());
  const auto listing =
      (*source)->list(options, [](SampleEntry&&) { return Status(Code::kNoSpace, "full"); });
  EXPECT_EQ(listing.status().code(), Code::kNoSpace);
}

TEST_F(SourceTest, UnreadableFolderIsAnErrorThatNamesIt) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  write("in/a/1.jpg");
  write("in/b/1.jpg");
  ASSERT_EQ(::chmod((dir_ / "in/b").c_str(), 0), 0);
  const Listed listed = list("in");
  ASSERT_EQ(::chmod((dir_ / "in/b").c_str(), 0777), 0);
  EXPECT_EQ(listed.status.code(), Code::kDenied);
  EXPECT_EQ(listed.status.path(), dir_ / "in/b");
}

TEST_F(SourceTest, ChangedFilesAreTold) {
  write("in/a/1.jpg", "12345");
  const Listed listed = list("in");
  ASSERT_EQ(listed.entries.size(), 1u);
  SampleEntry entry = listed.entries[0];
  auto handle = listed.source->open(entry);
  ASSERT_TRUE(handle.ok());
  uint8_t bytes[6];
  EXPECT_EQ((*handle)->read_at(0, bytes).code(), Code::kMismatch);
  EXPECT_TRUE((*handle)->read_at(1, MutableByteSpan(bytes).first(4)).ok());

  entry.mtime_ns += 1;
  EXPECT_EQ(listed.source->open(entry).status().code(), Code::kMismatch);
  entry = listed.entries[0];
  entry.size_bytes = 6;
  EXPECT_EQ(listed.source->open(entry).status().code(), Code::kMismatch);
  fs::remove(dir_ / "in/a/1.jpg");
  EXPECT_EQ(listed.source->open(listed.entries[0]).status().code(), Code::kNotFound);
  ASSERT_EQ(::mkfifo((dir_ / "in/a/1.jpg").c_str(), 0600), 0);
  EXPECT_EQ(listed.source->open(listed.entries[0]).status().code(), Code::kMismatch);
}

TEST(FileSample, MtimesAreComparedInTheDigitsThatAreListed) {
  const int64_t second = 1'000'000'000;
  EXPECT_TRUE(same_mtime(1700 * second, 1700 * second + 987'654'321));
  EXPECT_FALSE(same_mtime(1700 * second, 1701 * second));
  EXPECT_TRUE(same_mtime(1700 * second + 123'456'000, 1700 * second + 123'456'789));
  EXPECT_FALSE(same_mtime(1700 * second + 123'456'789, 1700 * second + 123'456'788));
  EXPECT_TRUE(same_mtime(-5 * second, -5 * second + 1));
  EXPECT_FALSE(same_mtime(-5 * second, -5 * second - 1));
}

TEST_F(SourceTest, SourcesAreRecognisedByContent) {
  folder("none");
  EXPECT_EQ(list("absent").status.code(), Code::kNotFound);
  write("data.img", "hsqs and more");
  EXPECT_EQ(list("data.img").status.code(), Code::kNotThisFormat);
  EXPECT_EQ(list("data.img").status.message(), "found a SquashFS image, not a list of samples");
  write("p.txt", "\xff\xd8\xff\xe0");
  EXPECT_EQ(list("p.txt").status.message(), "found a JPEG picture, not a list of samples");
  write("pack/index.spki");
  EXPECT_EQ(list("pack").status.code(), Code::kNotThisFormat);
  PackOptions options;
  options.source_kind = "leveldb";
  EXPECT_EQ(list("none", options).status.code(), Code::kInvalidArgument);
  options.source_kind = "manifest";
  EXPECT_EQ(list("none", options).status.code(), Code::kNotThisFormat);
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(list("fifo").status.code(), Code::kNotThisFormat);
}

TEST(PictureNames, SuffixesOfAnyCase) {
  for (const char* name : {"a.jpg", "a.JPEG", "x..jpg", "a.WebP", "a.tiff"}) {
    EXPECT_TRUE(is_picture_name(name)) << name;
  }
  for (const char* name : {"jpg", "a.jpg.bak", "a.txt", "a.", "Thumbs.db", "a.jpgx"}) {
    EXPECT_FALSE(is_picture_name(name)) << name;
  }
}

}  // namespace
}  // namespace spk
