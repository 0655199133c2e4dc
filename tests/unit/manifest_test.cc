#include "sources/manifest.h"

#include <gmock/gmock.h>

#include "sources/label_text.h"
#include "unit/source_listing.h"

namespace spk {
namespace {

using ManifestTest = SourceTest;

TEST_F(ManifestTest, LinesSplitAtTheLastBlanks) {
  write("m/my pics/a  b.jpg");
  const Listed listed =
      list_text("i0.jpg 0   \ni1.jpg\t1\r\n\n   \n  i2.jpg -1\nmy pics/a  b.jpg 2147483648");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.source_kind, "manifest");
  EXPECT_EQ(listed.listing.form, "lines");
  EXPECT_EQ(listed.keys(), (Names{"i0.jpg", "i1.jpg", "i2.jpg", "my pics/a  b.jpg"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 1, -1, 2147483648}));
  EXPECT_EQ(listed.listing.warnings.total(), 0u);
  EXPECT_EQ(listed.entries[0].size_bytes, 7u);
}

TEST_F(ManifestTest, MissingFilesRejectTheirSampleAlone) {
  folder("m/folder.jpg");
  const Listed listed = list_text("i0.jpg 5\ngone.jpg 6\nfolder.jpg 1\ni2.jpg 0\n");
  EXPECT_EQ(listed.keys(), (Names{"i0.jpg", "i2.jpg"}));
  EXPECT_EQ(listed.rejects(),
            (std::map<std::string, std::string>{{"folder.jpg", "not a regular file"},
                                                {"gone.jpg", "not found"}}));
  EXPECT_EQ(listed.entries[1].int_labels, Labels{6});
}

TEST_F(ManifestTest, HintsKnowTheLabelsThatWereAskedFor) {
  const auto hint = [&](const char* label, LabelMode labels) {
    PackOptions options;
    options.labels = labels;
    return list_text(str_cat("path,label\ni0.jpg,", label, "\n"), options).status.hint();
  };
  EXPECT_THAT(hint("0.5", LabelMode::kInt), ::testing::HasSubstr("--labels float takes fractions"));
  for (const char* label : {"nan", "1e400"}) {
    EXPECT_THAT(
        hint(label, LabelMode::kFloat),
        ::testing::HasSubstr("--labels float takes finite numbers such as 1, -0.5 or 2e-3"));
  }
}

TEST_F(ManifestTest, GrammarErrorsRefuseTheListWithTheirLine) {
  const auto error = [&](const std::string& text, PackOptions options = {}) {
    const Listed listed = list_text(text, std::move(options));
    EXPECT_EQ(listed.status.code(), Code::kInvalidArgument) << text;
    EXPECT_EQ(listed.status.path(), dir_ / "m/list");
    return listed.status.message();
  };
  EXPECT_EQ(error("i0.jpg 3\ni1.jpg 2.883333\ni2.jpg 1e3\n"),
            "line 2: label '2.883333' is not an integer");
  EXPECT_EQ(error("i0.jpg 0\ni1.jpg 99999999999999999999\n"),
            "line 2: label '99999999999999999999' does not fit into 64 bits");
  EXPECT_EQ(error("i0.jpg 0\n\ni1.jpg\n"), "line 3: 'i1.jpg' has no label");
  EXPECT_EQ(error("i0.jpg cat\ni1.jpg dog\n"), "line 1: label 'cat' is not an integer");
  EXPECT_EQ(error("i0.jpg\ni1.jpg\ni2.jpg 4\n"), "line 3: 'i2.jpg' has a label, most have none");
  EXPECT_EQ(error("\n  \n"), "the list is empty: it names no sample");
  EXPECT_EQ(error(""), "the list is empty: it names no sample");
  EXPECT_EQ(error("path,label\n"), "the list is empty: it names no sample");
  EXPECT_EQ(error("path,label\ni0.jpg,1\ni1.jpg\n"), "line 3: has 1 field, the header has 2");
  EXPECT_EQ(error("path,label\ni0.jpg,1\ni1.jpg,\n"), "line 3: 'i1.jpg' lacks a label");
  EXPECT_EQ(error("path,label\ni0.jpg,1\n\"i1.jpg,2\n"), "line 3: a quote is not closed");
  EXPECT_EQ(error("path,label\ni0.jpg,1\n\"a\"b,2\n"), "line 3: text after a closing quote");
  EXPECT_EQ(error("path,label\ni0.jpg,1\ni1.jpg,cat\n"), "line 3: label 'cat' is not an integer");
  EXPECT_EQ(error("path,label,Path\ni0.jpg,1,i1.jpg\n"),
            "line 1: columns 1 and 3 are both named 'path'");
  EXPECT_EQ(error("x\tpath\tlabel\t\"label\"\n1\ti0.jpg\t1\t2\n"),
            "line 1: columns 3 and 4 are both named 'label'");
  EXPECT_EQ(error("i0.jpg,1\ni1.jpg,2\n"),
            "line 1: looks like a table, but without names of its columns");
  EXPECT_EQ(error("0\t1\ti0.jpg\n1\ti1.jpg\n2\t1\ti2.jpg\n"),
            "line 2: has 2 fields, not an id, labels and a path");
  EXPECT_EQ(error("0\t1\ti0.jpg\n1\t0.5\ti1.jpg\n"), "line 2: label '0.5' is not an integer");
  EXPECT_EQ(error("10 1700000000.5 i0.jpg\n10 1700000000.5 i1.jpg\nx y i2.jpg\n"),
            "line 3: is not a size, an mtime and a path");
  std::string late_nul;
  for (int i = 0; i < 1000; ++i) late_nul += "i0.jpg 1\n";
  late_nul[8000] = '\0';
  EXPECT_EQ(error(late_nul), "line 889: a NUL byte; no file name has one");
}

TEST_F(ManifestTest, WholeFractionsAreIntegersAndOthersNeedFloat) {
  PackOptions floats;
  floats.labels = LabelMode::kFloat;
  Listed listed = list_text("0\t57.000000\ti0.jpg\n0\t0.000000\ti1.jpg\n0\t203.0\ti2.jpg\n");
  EXPECT_EQ(listed.listing.form, "lst");
  EXPECT_EQ(listed.labels(), (Labels{57, 0, 203}));
  EXPECT_EQ(listed.listing.label_count, 1u);

  listed = list_text("0\t1\t2\ti0.jpg\n1\t3\ti1.jpg\t\n2\t4\t5\ti 2.jpg\n");
  EXPECT_EQ(listed.listing.label_count, 0u) << "ragged";
  EXPECT_EQ(listed.entries[0].int_labels, (Labels{1, 2}));
  EXPECT_EQ(listed.entries[1].key, "i1.jpg");
  EXPECT_EQ(listed.entries[2].key, "i 2.jpg");

  listed = list_text("i0.jpg 0.25\ni1.jpg 1e3\ni2.jpg 7\n", floats);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.label_kind, LabelKind::kFloat);
  EXPECT_EQ(listed.entries[0].float_labels, std::vector<double>{0.25});
  EXPECT_EQ(listed.entries[1].float_labels, std::vector<double>{1000});
  EXPECT_EQ(list_text("i0.jpg 1e999\n", floats).status.message(),
            "line 1: label '1e999' does not fit into 64 bits");
}

TEST_F(ManifestTest, TablesHaveHeadersQuotesAndByteOrderMarks) {
  write("m/co,mma.jpg");
  write("m/new\nline.jpg");
  Listed listed = list_text(
      "\xef\xbb\xbf\"FileName\",Label,note\r\n\"co,mma.jpg\",0,\"x\"\r\n"
      "\"new\nline.jpg\",2,\r\ni0.jpg,1,\"say \"\"a\"\"\"\r\n");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "csv");
  EXPECT_EQ(listed.keys(), (Names{"co,mma.jpg", "new\nline.jpg", "i0.jpg"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 2, 1}));

  listed = list_text("label_0\tlabel_1\timage\n1\t-2\ti0.jpg\n3\t4\ti1.jpg\n");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "tsv");
  EXPECT_EQ(listed.listing.label_count, 2u);
  EXPECT_EQ(listed.labels(), (Labels{1, -2, 3, 4}));

  listed = list_text("path,class\ni0.jpg,zebra\ni1.jpg,ant\ni2.jpg,7\n");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.classes, (Names{"7", "ant", "zebra"}));
  EXPECT_EQ(listed.labels(), (Labels{2, 1, 0}));

  listed = list_text("path,class_name,label\ni0.jpg,zebra,1\n");
  EXPECT_EQ(listed.labels(), Labels{1}) << "numbers are taken before names";

  PackOptions unlabelled;
  unlabelled.labels = LabelMode::kNone;
  listed = list_text("path,label\ni0.jpg,\n", unlabelled);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.label_kind, LabelKind::kNone);
  EXPECT_TRUE(listed.labels().empty());
}

TEST_F(ManifestTest, UnusedZeroAndSeveralNumbersAreWarnedOf) {
  EXPECT_EQ(list_text("i0.jpg 1\ni1.jpg 2\n").warned("label 0 is not used"), 1u);
  EXPECT_EQ(list_text("i0.jpg -1\ni1.jpg 0\n").warned("label 0 is not used"), 0u);
  EXPECT_EQ(list_text("i0.jpg 1 0\n").warned("several numbers after a path"), 1u);
}

TEST_F(ManifestTest, StattedListIsNotLookedAtAndTakesClassesFromFolders) {
  const Listed listed = list_text(
      "10 1700000000.1234567890 dog/a b .jpg\n2000 1700000001.5000000000 ./cat/x/y.jpg\n"
      "5 1700000002 cat/z.jpg\n6 1700000003.0 stray.jpg\n");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "find");
  EXPECT_EQ(listed.keys(), (Names{"dog/a b .jpg", "./cat/x/y.jpg", "cat/z.jpg"}));
  EXPECT_EQ(listed.labels(), (Labels{1, 0, 0}));
  EXPECT_EQ(listed.listing.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(listed.entries[0].size_bytes, 10u);
  EXPECT_EQ(listed.entries[0].mtime_ns, 1'700'000'000'123'456'789);
  EXPECT_EQ(listed.rejects(),
            (std::map<std::string, std::string>{{"stray.jpg", "no class folder"}}));
}

TEST_F(ManifestTest, BarePathsTakeRootSplitsAndAbsolutePaths) {
  write("data/train/a/1.jpg");
  write("data/val/b/2.jpg");
  write("data/val/b/3.jpg");
  PackOptions options;
  options.root = dir_ / "data";
  const std::string absolute = dir_ / "data/val/b/3.jpg";
  Listed listed = list_text("train/a/1.jpg\nval/b/2.jpg\n" + absolute + "\n", options);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "paths");
  EXPECT_EQ(listed.listing.splits, (Names{"train", "val"}));
  EXPECT_EQ(listed.listing.classes, (Names{"a", "b"}));
  EXPECT_EQ(listed.keys(), (Names{"train/a/1.jpg", "val/b/2.jpg", absolute}));
  EXPECT_EQ(listed.labels(), (Labels{0, 1, 1}));
  EXPECT_EQ(listed.entries[2].split, 1u);
  EXPECT_TRUE(listed.source->open(listed.entries[2]).ok());

  options.splits = SplitMode::kNone;
  listed = list_text("train/a/1.jpg\nval/b/2.jpg\n", options);
  EXPECT_EQ(listed.listing.classes, (Names{"train", "val"}));

  listed = list_text("/elsewhere/a/1.jpg\n", options);
  EXPECT_EQ(listed.status.code(), Code::kInvalidArgument);
  EXPECT_NE(listed.status.hint().find("--root"), std::string::npos);
  listed = list_text("i0.jpg\ni1.jpg\n");
  EXPECT_EQ(listed.listing.label_kind, LabelKind::kNone);
  EXPECT_EQ(listed.warned("no class folders, so no labels"), 1u);
  EXPECT_EQ(listed.keys(), (Names{"i0.jpg", "i1.jpg"}));

  options.root = dir_ / "absent";
  EXPECT_NE(list_text("i0.jpg 1\n", options).status.hint().find("--root"), std::string::npos);
}

TEST_F(ManifestTest, LongListsKeepTheirOrder) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += str_cat("i", i % 5, ".jpg ", i, "\n");
  for (const uint32_t threads : {1u, 8u}) {
    PackOptions options;
    options.io_threads = threads;
    const Listed listed = list_text(text, options);
    ASSERT_TRUE(listed.status.ok());
    ASSERT_EQ(listed.entries.size(), 20000u);
    for (int i = 0; i < 20000; ++i) {
      ASSERT_EQ(listed.entries[static_cast<size_t>(i)].int_labels, Labels{i});
      ASSERT_EQ(listed.entries[static_cast<size_t>(i)].size_bytes, 7u);
    }
  }
}

TEST(LabelText, IntegersAreExact) {
  int64_t value = 0;
  EXPECT_EQ(parse_int_label("9223372036854775807", &value), LabelText::kOk);
  EXPECT_EQ(value, INT64_MAX);
  EXPECT_EQ(parse_int_label("-9223372036854775808.000", &value), LabelText::kOk);
  EXPECT_EQ(value, INT64_MIN);
  EXPECT_EQ(parse_int_label("9007199254740993.0", &value), LabelText::kOk);
  EXPECT_EQ(value, 9007199254740993);
  EXPECT_EQ(parse_int_label("+7", &value), LabelText::kOk);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(parse_int_label("-0.0", &value), LabelText::kOk);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(parse_int_label("9223372036854775808", &value), LabelText::kTooLarge);
  for (const char* text : {"1e3", "0.5", "-2.0001"}) {
    EXPECT_EQ(parse_int_label(text, &value), LabelText::kNotInteger) << text;
  }
  for (const char* text : {"", "-", ".", "+-1", "1-", "0x10", "nan", "inf", "1 2", "1,5"}) {
    EXPECT_EQ(parse_int_label(text, &value), LabelText::kNotNumber) << text;
  }
}

}  // namespace
}  // namespace spk
