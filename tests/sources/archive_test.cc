// tar and zip archives as sources: forms, headers that break the rules, what is refused.
#include <gtest/gtest.h>

#include <array>

#include "sources/pieces.h"
#include "sources/tar_reader.h"
#include "unit/source_listing.h"

#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif

namespace spk {
namespace {

constexpr size_t kBlock = 512;

// A header with a right checksum.
std::string header(const std::string& name, uint64_t bytes, char type = '0',
                   const std::string& link = "") {
  std::string block(kBlock, '\0');
  block.replace(0, name.size(), name);
  std::array<char, 13> octal{};
  std::snprintf(octal.data(), octal.size(), "%011llo", static_cast<unsigned long long>(bytes));
  block.replace(124, 11, octal.data());
  block[156] = type;
  block.replace(157, link.size(), link);
  block.replace(257, 8, std::string("ustar\00000", 8));
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<uint8_t>(c);
  std::snprintf(octal.data(), octal.size(), "%06o", sum);
  block.replace(148, 7, octal.data(), 7);
  return block;
}

std::string member(const std::string& name, const std::string& bytes, char type = '0') {
  std::string out = header(name, bytes.size(), type) + bytes;
  out.resize((out.size() + kBlock - 1) / kBlock * kBlock);
  return out;
}

std::string pax(const std::string& key, const std::string& value) {
  std::string record = " " + key + "=" + value + "\n";
  for (size_t length = record.size() + 1;; ++length) {
    if (std::to_string(length).size() + record.size() == length) {
      return member("pax", std::to_string(length) + record, 'x');
    }
  }
}

const std::string kEnd(2 * kBlock, '\0');

class ArchiveTest : public SourceTest {
 protected:
  Listed tar(const std::string& bytes, PackOptions options = {}) {
    write("a.tar", bytes);
    return list("a.tar", std::move(options));
  }
};

TEST_F(ArchiveTest, FieldsOfAKeyBecomeASample) {
  const Listed listed = tar(member("d/1.txt", "a cat") + member("d/1.JPG", "jpeg") +
                            member("d/1.cls", "7\n") + member("d/1.seg.png", "mask") +
                            member("d/2.cls", " -3") + member("d/2.jpg", "second") + kEnd);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "webdataset");
  const std::vector<SourceBlob> blobs = {
      {"image", BlobContent::kPicture}, {"seg.png", BlobContent::kAny}, {"txt", BlobContent::kAny}};
  EXPECT_TRUE(listed.listing.blobs == blobs);
  EXPECT_EQ(listed.keys(), (Names{"d/1", "d/2"}));
  EXPECT_EQ(listed.labels(), (Labels{7, -3}));
  EXPECT_EQ(read(listed, 0), "jpegmaska cat");
  EXPECT_EQ(listed.entries[0].blob_bytes, (std::vector<uint64_t>{4, 4, 5}));
  EXPECT_EQ(read(listed, 1), "second");
  EXPECT_EQ(listed.entries[1].blob_bytes, (std::vector<uint64_t>{6, kAbsentBlob, kAbsentBlob}));
}

TEST_F(ArchiveTest, ClassFoldersAreClasses) {
  const std::string pictures = member("./cat/1.jpg", "c1") + member("./ant/x.y.png", "a1") +
                               member("./cat/1.png", "c2") + member("./bee/", "", '5') +
                               member("./cat/notes.txt", "n") + member("stray.jpg", "s");
  const Listed listed = tar(pictures + kEnd);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.form, "folders");
  EXPECT_EQ(listed.listing.classes, (Names{"ant", "bee", "cat"}));
  EXPECT_EQ(listed.keys(), (Names{"cat/1.jpg", "ant/x.y.png", "cat/1.png"}));
  EXPECT_EQ(listed.labels(), (Labels{2, 0, 2}));
  EXPECT_EQ(listed.rejects().at("stray.jpg"), "no class folder");
  EXPECT_EQ(listed.warned("class without a picture"), 1u);
  EXPECT_EQ(read(listed, 2), "c2");
}

TEST_F(ArchiveTest, OneFolderMayHoldTheClassesOrTheSplits) {
  Listed listed = tar(member("set/cat/1.jpg", "1") + member("set/dog/1.jpg", "2") + kEnd);
  EXPECT_EQ(listed.listing.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(listed.labels(), (Labels{0, 1}));
  EXPECT_EQ(listed.warned("one folder holds all others, which are the classes"), 1u);
  listed = tar(member("set/train/dog/1.jpg", "1") + member("set/val/cat/1.jpg", "2") + kEnd);
  EXPECT_EQ(listed.listing.splits, (Names{"train", "val"}));
  EXPECT_EQ(listed.listing.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(listed.entries[0].split, 0u);
  EXPECT_EQ(listed.entries[1].split, 1u);
  EXPECT_EQ(listed.labels(), (Labels{1, 0}));
}

TEST_F(ArchiveTest, LongNamesAndSizesComeFromExtendedHeaders) {
  const std::string longer(300, 'n');
  const Listed listed =
      tar(member("././@LongLink", "g/" + longer + ".jpg" + std::string(1, '\0'), 'L') +
          member("cut", "gnu") + pax("path", "p/" + longer + ".jpg") + member("cut", "pax") +
          pax("size", "3") + header("p/s.jpg", 0) + std::string("abc") +
          std::string(kBlock - 3, '\0') + member("p/h.jpg", "") + kEnd);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(),
            (Names{"g/" + longer + ".jpg", "p/" + longer + ".jpg", "p/s.jpg", "p/h.jpg"}));
  EXPECT_EQ(read(listed, 0), "gnu");
  EXPECT_EQ(read(listed, 1), "pax");
  EXPECT_EQ(read(listed, 2), "abc");
}

TEST_F(ArchiveTest, HardLinksHaveTheBytesOfWhatTheyLeadTo) {
  const Listed listed =
      tar(member("c/a.jpg", "bytes") + header("c/b.jpg", 0, '1', "c/a.jpg") +
          header("c/d.jpg", 0, '1', "c/b.jpg") + header("c/e.jpg", 0, '1', "c/none.jpg") +
          header("c/f.jpg", 0, '2', "a.jpg") + kEnd);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.keys(), (Names{"c/a.jpg", "c/b.jpg", "c/d.jpg"}));
  EXPECT_EQ(read(listed, 1), "bytes");
  EXPECT_EQ(read(listed, 2), "bytes");
  EXPECT_EQ(listed.rejects().at("c/e.jpg"),
            "a hard link to 'c/none.jpg', which the archive has not");
  EXPECT_EQ(listed.rejects().at("c/f.jpg"), "a symbolic link");
}

TEST_F(ArchiveTest, WhatBreaksTheFormIsRefusedWithItsPlace) {
  const std::string one = member("c/1.jpg", "picture");
  struct Case {
    std::string bytes;
    const char* message;
    uint64_t offset;
  };
  std::string flipped = one + one;
  flipped[kBlock * 2 + 5] ^= 1;
  const std::vector<Case> cases = {
      {one, "the archive ends without its two blocks of zeros", 1024},
      {one + kEnd.substr(kBlock), "found one block of zeros, two end an archive", 1024},
      {one + kEnd + one + kEnd, "data follow the archive's end", 2048},
      {one.substr(0, 515), "the archive ends within a member, which has 4 more bytes", 515},
      {flipped + kEnd, "found no tar header here: its checksum is wrong", 1024},
      {one + header("big", uint64_t{1} << 30, 'L') + kEnd,
       "an extended header of 1 GiB; 1 MiB is the most", 1536},
      {one + member("p", "99 path=x\n", 'x') + one + kEnd, "a PAX header breaks its form", 1536},
      {one + member("x", "", 'x') + kEnd, "an extended header without its member", 1536},
  };
  for (const Case& c : cases) {
    const Listed listed = tar(c.bytes);
    EXPECT_EQ(listed.status.code(), Code::kDamaged) << c.message;
    EXPECT_EQ(listed.status.message(), c.message);
    EXPECT_EQ(listed.status.offset(), c.offset) << c.message;
  }
  EXPECT_EQ(tar(one + header("s.jpg", 0, 'S') + kEnd).status.code(), Code::kUnsupported);
  const Listed repeated = tar(one + one + kEnd);
  EXPECT_EQ(repeated.status.message(), "the member 'c/1.jpg' is there twice");
}

TEST_F(ArchiveTest, SalvageTakesWhatIsWhole) {
  const std::string two = member("c/1.jpg", "first") + member("c/2.jpg", std::string(600, 'x'));
  PackOptions options;
  options.salvage = true;
  for (size_t cut = 0; cut <= two.size(); ++cut) {
    const Listed listed = tar(two.substr(0, cut), options);
    const size_t whole = cut < 517 ? 0 : cut < 1024 + 512 + 600 ? 1 : 2;
    if (cut < kBlock) continue;  // no tar archive
    ASSERT_TRUE(listed.status.ok()) << cut << listed.status.to_string();
    EXPECT_EQ(listed.entries.size(), whole) << cut;
    EXPECT_EQ(listed.warned("an archive is not whole; what is, was taken"), 1u);
  }
}

TEST_F(ArchiveTest, FeaturesNameFieldsAndReachIntoJson) {
  PackOptions options;
  options.features = "image=b.jpg,label=json.meta.cls,caption=txt,size=json.w,box=json.box";
  Listed listed =
      tar(member("1.a.jpg", "A") + member("1.b.jpg", "B") + member("1.txt", "words") +
              member("1.json", R"({"meta":{"cls":4},"w":2.5,"box":[1,2],"more":"x"})") +
              member("2.b.jpg", "C") + member("2.json", R"({"meta":{"cls":5},"w":null})") +
              member("3.b.jpg", "D") + member("3.json", "{") + kEnd,
          options);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.labels(), (Labels{4, 5}));
  const std::vector<SourceBlob> blobs = {{"image", BlobContent::kPicture},
                                         {"caption", BlobContent::kAny}};
  EXPECT_TRUE(listed.listing.blobs == blobs);
  const std::vector<Field> numbers = {{"box", FieldKind::kInt64, 0},
                                      {"size", FieldKind::kFloat64, 1}};
  EXPECT_TRUE(listed.listing.numbers == numbers);
  EXPECT_EQ(read(listed, 0), "Bwords");
  EXPECT_EQ(listed.entries[0].numbers[0], (NumericValues{1, 2}));
  EXPECT_EQ(listed.entries[0].numbers[1], (NumericValues{std::bit_cast<uint64_t>(2.5)}));
  EXPECT_FALSE(listed.entries[1].numbers[0].has_value());
  EXPECT_EQ(listed.rejects().at("3"), "no label: json has no 'meta.cls'");
}

TEST_F(ArchiveTest, ShardsInAFolder) {
  write("s/train-00000-of-00002.tar", member("1.jpg", "a") + member("1.cls", "1") + kEnd);
  write("s/train-00001-of-00002.tar", member("1.jpg", "b") + member("1.cls", "2") + kEnd);
  write("s/val-00000-of-00001.tar", member("9.jpg", "c") + member("9.cls", "3") + kEnd);
  write("s/README.md", "words");
  Listed listed = list("s");
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.splits, (Names{"train", "val"}));
  EXPECT_EQ(listed.keys(), (Names{"1", "1", "9"}));
  EXPECT_EQ(listed.labels(), (Labels{1, 2, 3}));
  EXPECT_EQ(listed.listing.ignored.at("not a tar archive"), 1u);
  fs::remove(dir_ / "s/train-00000-of-00002.tar");
  EXPECT_EQ(list("s").status.message(), "found 1 of 2 shards; number 0 is missing");
  EXPECT_EQ(list("s/{train-00001,val-00000}-of-*").listing.splits, (Names{"train", "val"}));
}

TEST_F(ArchiveTest, AnArchiveAmongPicturesIsNotWhatAFolderIsAbout) {
  write("p/1.jpg", "picture");
  write("p/all.tar", member("c/1.jpg", "a") + kEnd);
  EXPECT_EQ(list("p").listing.source_kind, "folder");
  write("q/cat/1.jpg", "picture");
  write("q/all.tar", member("c/1.jpg", "a") + kEnd);
  EXPECT_EQ(list("q").listing.classes, (Names{"cat"}));
}

TEST_F(ArchiveTest, ManyMembersAreSortedInLittleMemory) {
  std::string bytes;
  for (int i = 0; i < 20000; ++i) bytes += member(str_cat(i, ".jpg"), "j");
  for (int i = 0; i < 20000; ++i) bytes += member(str_cat(i, ".cls"), std::to_string(i));
  PackOptions options;
  options.memory_bytes = uint64_t{16} << 20;
  const Listed listed = tar(bytes + kEnd, options);
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  ASSERT_EQ(listed.entries.size(), 20000u);
  for (int i = 0; i < 20000; ++i)
    ASSERT_EQ(listed.entries[static_cast<size_t>(i)].int_labels, Labels{i});
  EXPECT_EQ(listed.warned("members of a sample are not adjacent"), 20000u);
}

#if SPK_HAVE_ZLIB
// An archive of members (name, contents, deflated).
struct ZipPart {
  std::string name, bytes;
  bool deflated = false;
};
std::string zip(const std::vector<ZipPart>& parts) {
  std::string out, directory;
  for (const ZipPart& part : parts) {
    std::string data = part.bytes;
    if (part.deflated) {
      z_stream stream = {};
      EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
      data.resize(deflateBound(&stream, part.bytes.size()));
      std::string in = part.bytes;
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(in.size());
      stream.next_out = reinterpret_cast<Bytef*>(data.data());
      stream.avail_out = static_cast<uInt>(data.size());
      EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
      data.resize(stream.total_out);
      deflateEnd(&stream);
    }
    const std::string facts = le(20, 2) + le(0, 2) + le(part.deflated ? 8 : 0, 2) + le(0, 4) +
                              le(crc32(0, reinterpret_cast<const Bytef*>(part.bytes.data()),
                                       static_cast<uInt>(part.bytes.size())),
                                 4) +
                              le(data.size(), 4) + le(part.bytes.size(), 4) +
                              le(part.name.size(), 2) + le(0, 2);
    directory += "PK\1\2" + le(20, 2) + facts + le(0, 2) + le(0, 2) + le(0, 2) + le(0, 4) +
                 le(out.size(), 4) + part.name;
    out += "PK\3\4" + facts + part.name + data;
  }
  const size_t offset = out.size();
  return out + directory + "PK\5\6" + le(0, 4) + le(parts.size(), 2) + le(parts.size(), 2) +
         le(directory.size(), 4) + le(offset, 4) + le(0, 2);
}

TEST_F(ArchiveTest, ZipMembersAreStoredOrUnpackedIntoTheSpool) {
  const std::string text(100000, 't');
  write("a.zip", zip({{"cat/", "", false},
                      {"cat/1.jpg", "stored", false},
                      {"dog/2.jpg", text, true},
                      {"dog/3.jpg", "third", true}}));
  Listed listed = list("a.zip", {}, std::make_shared<Spool>(dir_ / "spool"));
  ASSERT_TRUE(listed.status.ok()) << listed.status.to_string();
  EXPECT_EQ(listed.listing.classes, (Names{"cat", "dog"}));
  ASSERT_EQ(listed.entries.size(), 3u);
  // Another process, which never listed.
  PackOptions options;
  options.source = dir_ / "a.zip";
  auto source = open_source(options, std::make_shared<Spool>(dir_ / "spool"));
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  listed.source = std::move(*source);
  const std::string wanted[] = {"stored", text, "third"};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(read(listed, i), wanted[i]);
  EXPECT_EQ(list("a.zip").keys(), (Names{"cat/1.jpg", "dog/2.jpg", "dog/3.jpg"}));  // a dry run
}

TEST_F(ArchiveTest, AZipMemberWithTwoNamesIsRejected) {
  for (const bool deflated : {false, true}) {
    std::string bytes = zip(
        {{"c/1.jpg", "one", deflated}, {"c/2.jpg", "two", deflated}, {"c/3.jpg", "3", deflated}});
    const size_t header = bytes.find("c/2.jpg") - 30;
    bytes[header + 30 + 2] = '9';
    write("two.zip", bytes);
    const Listed listed = list("two.zip");
    EXPECT_TRUE(listed.status.ok()) << listed.status.to_string();
    EXPECT_EQ(listed.keys(), (Names{"c/1.jpg", "c/3.jpg"}));
    const std::map<std::string, std::string> wanted = {
        {"c/2.jpg", str_cat("has another name in its own header, at offset ", header,
                            ", than in the archive's directory")}};
    EXPECT_EQ(listed.rejects(), wanted);
  }
}

TEST_F(ArchiveTest, DamagedZipsAreRefused) {
  const std::string good = zip({{"c/1.jpg", "picture", true}, {"c/2.jpg", "other", false}});
  for (size_t cut = 4; cut < good.size(); ++cut) {
    write("b.zip", good.substr(0, cut));
    EXPECT_EQ(list("b.zip").status.code(), Code::kDamaged) << cut;
  }
  std::string wrong = good;
  wrong[30 + 7 + 2] ^= 1;  // within the deflated data
  write("b.zip", wrong);
  EXPECT_EQ(list("b.zip", {}, std::make_shared<Spool>(dir_ / "spool")).status.code(),
            Code::kDamaged);
}

TEST_F(ArchiveTest, GzipIsSpooledOnce) {
  std::string plain = member("c/1.jpg", "packed picture") + kEnd;
  const std::string path = dir_ / "a.tgz";
  gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, plain.data(), static_cast<unsigned>(plain.size())),
            static_cast<int>(plain.size()));
  gzclose(out);
  PackOptions options;
  options.source = path;
  const auto spool = std::make_shared<Spool>(dir_ / "spool");
  auto source = open_source(options, spool);
  ASSERT_TRUE(source.ok());
  std::vector<SampleEntry> entries;
  for (int round = 0; round < 2; ++round) {
    entries.clear();
    const auto listing = (*source)->list(options, [&](SampleEntry&& entry) {
      entries.push_back(std::move(entry));
      return Status();
    });
    ASSERT_TRUE(listing.ok()) << listing.status().to_string();
  }
  ASSERT_EQ(entries.size(), 1u);
  auto handle = (*source)->open(entries[0]);
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(as_text(*read_all(**handle)), "packed picture");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_ / "spool"), fs::directory_iterator()), 1);
  // Cut anywhere, it is refused.
  std::ifstream in(path, std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(in)), {});
  for (size_t cut = 64; cut < packed.size(); ++cut) {
    write("cut.tgz", packed.substr(0, cut));
    EXPECT_EQ(list("cut.tgz").status.code(), Code::kDamaged) << cut;
  }
}
#endif

}  // namespace
}  // namespace spk
