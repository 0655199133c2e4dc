// Options that belong to one kind of source are refused with another; empty files say what was
// expected.
#include "sources/kind_options.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/source_listing.h"

namespace spk {
namespace {

const SourceKind& kind(std::string_view name) {
  for (const SourceKind& one : source_kinds()) {
    if (one.name == name) return one;
  }
  ADD_FAILURE() << name;
  return source_kinds()[0];
}

TEST(KindOptions, GoWithTheirKindsAlone) {
  struct Case {
    const char* option;
    void (*give)(PackOptions* options);
    std::vector<std::string_view> kinds;
  };
  const Case cases[] = {
      {"--root", [](auto* o) { o->root = "x"; }, {"manifest"}},
      {"--accept", [](auto* o) { o->accept_any = true; }, {"folder", "manifest"}},
      {"--field", [](auto* o) { o->side_fields = {"a=b"}; }, {"folder", "manifest"}},
      {"--require-fields", [](auto* o) { o->require_fields = true; }, {"folder", "manifest"}},
      {"--db", [](auto* o) { o->database = "x"; }, {"lmdb"}},
      {"--label-from", [](auto* o) { o->label_from = LabelFrom::kKeyPrefix; }, {"lmdb"}},
      {"--images", [](auto* o) { o->images_name = "x"; }, {"hdf5"}},
      {"--labels-name", [](auto* o) { o->labels_name = "x"; }, {"hdf5"}},
      {"--array-layout", [](auto* o) { o->array_layout = "nhwc"; }, {"hdf5"}},
      {"--array-scale", [](auto* o) { o->array_scale = ArrayScale::kByte; }, {"hdf5"}},
      {"--features",
       [](auto* o) { o->features = "image=x"; },
       {"tar", "webdataset", "zip", "tfrecord", "mds", "beton"}},
      {"--salvage",
       [](auto* o) { o->salvage = true; },
       {"lmdb", "idx", "tar", "webdataset", "zip", "tfrecord", "recordio"}},
      {"--select", [](auto* o) { o->select = {"class=x"}; }, {"pack"}},
  };
  for (const SourceKind& one : source_kinds()) {
    EXPECT_TRUE(check_kind_options({}, one).ok()) << one.name;
    for (const Case& c : cases) {
      PackOptions options;
      options.source = "SRC";
      c.give(&options);
      const Status status = check_kind_options(options, one);
      if (std::count(c.kinds.begin(), c.kinds.end(), one.name) != 0) {
        EXPECT_TRUE(status.ok()) << one.name << ' ' << status.to_string();
        continue;
      }
      EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.option << ' ' << one.name;
      EXPECT_TRUE(status.message().starts_with(c.option)) << one.name << status.to_string();
    }
  }
  PackOptions options;
  options.database = "x";
  EXPECT_EQ(check_kind_options(options, kind("folder")).message(),
            "--db goes with an LMDB environment, and SRC is a folder of pictures");
}

TEST(KindOptions, FeaturesAreReadBeforeAnythingElse) {
  const auto check = [](std::string_view name, const char* features) {
    PackOptions options;
    options.features = features;
    return check_kind_options(options, kind(name)).message();
  };
  EXPECT_EQ(check("lmdb", "key=name"), "");
  EXPECT_EQ(check("recordio", "key=lst"), "");
  EXPECT_EQ(check("lmdb", "key=lst"), "--features: of LMDB there is only key=name");
  EXPECT_EQ(check("recordio", "label=x"), "--features: of RecordIO there is only key=lst");
  EXPECT_EQ(check("tfrecord", "image="), "--features: 'image=' names nothing");
  EXPECT_EQ(check("mds", "a=b,,"), "--features: '' names nothing");
}

class EmptyFile : public SourceTest {};

TEST_F(EmptyFile, SaysWhatWasExpected) {
  const auto open = [&](const char* name, const char* kind_name = "") {
    if (!fs::exists(dir_ / name)) write(name, "");
    PackOptions options;
    options.source_kind = kind_name;
    return list(name, options).status.message();
  };
  const std::string name = "the file is empty (0 bytes), where its name promises ";
  EXPECT_EQ(open("a.rec"), name + "an MXNet RecordIO file");
  EXPECT_EQ(open("a.tfrecord"), name + "a TFRecord file");
  EXPECT_EQ(open("a.tar"), name + "a tar archive");
  EXPECT_EQ(open("a.h5"), name + "an HDF5 file");
  EXPECT_EQ(open("a.zip"), name + "a zip archive");
  EXPECT_EQ(open("a.mdb"), name + "an LMDB environment");
  EXPECT_EQ(open("list.txt", "hdf5"),
            "the file is empty (0 bytes), where --source promises an HDF5 file");
  EXPECT_EQ(open("list.h5", "manifest"), open("list.txt"));
  EXPECT_NE(open("list.txt"), "");
  open("env/data.mdb");
  EXPECT_EQ(open("env"), name + "an LMDB environment");
}

}  // namespace
}  // namespace spk
