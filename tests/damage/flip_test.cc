// Flips every byte and cuts at every length: verify must name the file, the place, the kind and the
// samples, exactly; and every sample that is not hit must still be read through the reader.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/text.h"
#include "container/pack.h"
#include "container/seal.h"
#include "container/verify.h"
#include "format/footer.h"
#include "support/test_pack.h"

namespace spk {
namespace {

using test::TempDir;
using test::TestPackOptions;
using test::TestSample;

// What must be reported for a flipped byte.
struct Expected {
  DamageKind kind = DamageKind::kFile;
  uint64_t offset = 0;
  int64_t sample = -1;  // number within the pack; -1: none is lost
};

// Byte ranges of one file, each with what a flip in it must give. An offset of kExact stands for
// the flipped byte itself.
constexpr uint64_t kExact = UINT64_MAX;
struct Region {
  uint64_t begin = 0;
  uint64_t end = 0;
  Expected expected;
  bool bulk = false;  // payload or padding: long, and every byte of it alike
};

struct BuiltPack {
  std::string path;
  std::vector<TestSample> samples;  // in storage order
  std::map<std::string, std::vector<Region>> regions;
  std::map<std::string, std::string> content;
};

std::vector<TestSample> in_order(const std::vector<TestSample>& samples,
                                 const std::vector<uint64_t>& order) {
  std::vector<TestSample> ordered;
  for (const uint64_t number : order) ordered.push_back(samples[number]);
  return ordered;
}

// Regions of one shard, from its own footer.
void add_shard_regions(BuiltPack& built, const Pack& pack, uint32_t shard) {
  const auto footer = load_footer(pack.directory(), shard);
  ASSERT_TRUE(footer.ok()) << footer.status().to_string();
  const FooterHeader& header = footer->view.header();
  std::vector<Region>& regions = built.regions[shard_file_name(shard)];
  const auto add = [&](uint64_t begin, uint64_t end, DamageKind kind, uint64_t offset,
                       int64_t sample, bool bulk) {
    if (begin < end) regions.push_back({begin, end, {kind, offset, sample}, bulk});
  };
  for (uint64_t c = 0; c < pack.chunk_count(); ++c) {
    const ChunkLocation chunk = *pack.chunk(c);
    if (chunk.shard != shard) continue;
    const std::string& bytes = built.content[shard_file_name(shard)];
    const ChunkHeader head =
        ChunkHeader::decode(reinterpret_cast<const uint8_t*>(bytes.data()) + chunk.offset);
    uint64_t at = chunk.offset + chunk_head_bytes(head);
    add(chunk.offset, at, DamageKind::kChunk, chunk.offset, -1, false);
    for (uint64_t s = chunk.first_sample; s < chunk.first_sample + chunk.sample_count; ++s) {
      for (uint16_t field = 0; field < pack.schema().fields.size(); ++field) {
        if (pack.schema().fields[field].kind != FieldKind::kBlob) continue;
        const SampleLocation place = *pack.locate(s, field);
        if (!place.present) continue;
        add(at, place.offset, DamageKind::kPadding, kExact, -1, true);
        at = place.offset + place.bytes;
        add(place.offset, at, DamageKind::kSample, place.offset, static_cast<int64_t>(s), true);
      }
    }
    add(at, chunk.offset + chunk.read_bytes, DamageKind::kPadding, kExact, -1, true);
  }
  const uint64_t start = header.data_bytes;
  uint64_t at = start + FooterHeader::kBytes + header.part_count * PartEntry::kBytes;
  add(start, at, DamageKind::kFooter, start, -1, false);
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(PartKind::kRejects); ++kind) {
    const auto part = static_cast<PartKind>(kind);
    if (!footer->view.has(part)) continue;
    const PartEntry entry = footer->view.entry(part);
    add(at, start + entry.offset, DamageKind::kFooter, kExact, -1, false);
    at = start + entry.offset + entry.bytes;
    const bool in_index =
        part == PartKind::kChunks || part == PartKind::kSamples || part == PartKind::kNames;
    add(start + entry.offset, at, DamageKind::kFooter, in_index ? kExact : start + entry.offset, -1,
        false);
  }
  const uint64_t trailer = footer->file_bytes - Trailer::kBytes;
  add(at, trailer, DamageKind::kFooter, kExact, -1, false);
  add(trailer, footer->file_bytes, DamageKind::kTrailer, kExact, -1, false);
}

void describe(BuiltPack& built) {
  const auto pack = Pack::open(built.path);
  ASSERT_TRUE(pack.ok()) << pack.status().to_string();
  for (const auto& entry : std::filesystem::directory_iterator(built.path)) {
    built.content[entry.path().filename()] = test::read_file(entry.path());
  }
  for (uint32_t shard = 0; shard < (*pack)->shards().size(); ++shard) {
    add_shard_regions(built, **pack, shard);
  }
  const auto whole = [&](std::string_view name, DamageKind kind) {
    const std::string file(name);
    built.regions[file] = {{0, built.content[file].size(), {kind, kExact, -1}, false}};
  };
  whole(kIndexName, DamageKind::kIndex);
  whole(kManifestName, DamageKind::kManifest);
  whole(kRejectsName, DamageKind::kRejects);
  for (const auto& [name, regions] : built.regions) {
    uint64_t end = 0;
    for (const Region& region : regions) {
      ASSERT_EQ(region.begin, end) << name;
      end = region.end;
    }
    ASSERT_EQ(end, built.content[name].size()) << name;
  }
}

// One shard, one chunk, four samples: 0 bytes, 1 byte, some, and one whose blob is absent.
BuiltPack tiny_pack(const TempDir& dir) {
  BuiltPack built;
  built.path = dir / "tiny";
  std::vector<TestSample> samples = test::image_samples(4, 100, 300);
  samples[0].values[0] = std::string();
  samples[1].values[0] = std::string("x");
  samples[3].values[0] = std::monostate();
  TestPackOptions options;
  options.schema = test::image_schema();
  options.rejects = {{"bad\xff.jpg", 4, "not a picture"}};
  const auto order = test::write_test_pack(built.path, samples, options);
  EXPECT_TRUE(order.ok()) << order.status().to_string();
  built.samples = in_order(samples, *order);
  describe(built);
  return built;
}

// Three shards of several chunks, with a sample larger than a chunk, two blobs a sample, floats and
// ragged values.
BuiltPack varied_pack(const TempDir& dir) {
  BuiltPack built;
  built.path = dir / "varied";
  TestPackOptions options;
  options.schema.fields = {{"image", FieldKind::kBlob, 1},
                           {"mask", FieldKind::kBlob, 1},
                           {"box", FieldKind::kFloat32, 4},
                           {"tags", FieldKind::kInt64, 0}};
  options.schema.classes = {"a", "b"};
  options.geometry.shard_count = 3;
  options.geometry.blob_align_bytes = 8;
  options.rejects = {{"gone.png", 99, "cannot be opened"}, {"cut.png", 100, "cut"}};
  const std::vector<TestSample> drawn = test::image_samples(36, 3000, 9000, 7);
  std::vector<TestSample> samples;
  for (size_t i = 0; i < drawn.size(); ++i) {
    TestSample sample;
    sample.key = drawn[i].key;
    std::string image = std::get<std::string>(drawn[i].values[0]);
    if (i == 17) {
      while (image.size() < 150000) image += image;
    }
    if (i % 9 == 4) image.clear();
    sample.values = {image, i % 3 == 0 ? test::TestValue(std::string(i, 'm')) : test::TestValue(),
                     std::vector<double>{0.5, 1, 1.5, double(i)},
                     std::vector<int64_t>(i % 4, int64_t(i) * 1000)};
    samples.push_back(std::move(sample));
  }
  const auto order = test::write_test_pack(built.path, samples, options);
  EXPECT_TRUE(order.ok()) << order.status().to_string();
  built.samples = in_order(samples, *order);
  describe(built);
  return built;
}

struct Found {
  VerifyReport report;
  std::vector<Damage> damages;
};
Found verify(const std::string& path, VerifyLevel level = VerifyLevel::kFull,
             uint32_t threads = 1) {
  Found found;
  VerifyOptions options;
  options.level = level;
  options.threads = threads;
  const auto report =
      verify_pack(path, options, [&](const Damage& damage) { found.damages.push_back(damage); });
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  if (report.ok()) found.report = *report;
  EXPECT_EQ(found.report.damages, found.damages.size());
  return found;
}

std::string to_text(const std::vector<Damage>& damages) {
  std::string text;
  for (const Damage& damage : damages) {
    text +=
        str_cat(damage_kind_name(damage.kind), " ", code_name(damage.code), " ", damage.file, " @",
                damage.offset, " chunk ", damage.chunk, " '", damage.key, "': ", damage.what, "\n");
  }
  return text;
}

// Every sample but those in `lost` reads as it was written.
void expect_readable(const BuiltPack& built, const std::set<uint64_t>& lost) {
  const auto pack = Pack::open(built.path);
  ASSERT_TRUE(pack.ok()) << pack.status().to_string();
  std::string into(512 * 1024, '\0');
  for (uint64_t s = 0; s < (*pack)->sample_count(); ++s) {
    for (uint16_t field = 0; field < (*pack)->schema().fields.size(); ++field) {
      const auto* blob = std::get_if<std::string>(&built.samples[s].values[field]);
      if (blob == nullptr) continue;
      const auto got = (*pack)->read(
          s, field, MutableByteSpan(reinterpret_cast<uint8_t*>(into.data()), into.size()));
      if (lost.count(s) != 0) {
        // One of a sample's blobs may still be there.
        if (got.ok()) {
          ASSERT_EQ(into.substr(0, *got), *blob);
        }
        continue;
      }
      ASSERT_TRUE(got.ok()) << "sample " << s << ": " << got.status().to_string();
      ASSERT_EQ(into.substr(0, *got), *blob) << "sample " << s;
    }
  }
}

void flip_and_check(const BuiltPack& built, const std::string& name, const Region& region,
                    uint64_t offset, bool read_all) {
  const std::string path = built.path + "/" + name;
  test::flip_byte(path, offset);
  const Found found = verify(built.path);
  ASSERT_EQ(found.damages.size(), 1u) << name << " byte " << offset << "\n"
                                      << to_text(found.damages);
  const Damage& damage = found.damages[0];
  const std::string text = str_cat(name, " byte ", offset, ": ", to_text(found.damages));
  ASSERT_EQ(damage.file, name) << text;
  ASSERT_EQ(damage.code, Code::kDamaged) << text;
  ASSERT_EQ(damage.kind, region.expected.kind) << text;
  ASSERT_EQ(damage.offset, region.expected.offset == kExact ? offset : region.expected.offset)
      << text;
  std::set<uint64_t> lost;
  if (region.expected.sample >= 0) {
    const auto sample = static_cast<uint64_t>(region.expected.sample);
    ASSERT_EQ(damage.key, built.samples[sample].key) << text;
    lost.insert(sample);
  }
  ASSERT_EQ(found.report.samples_lost, lost.size()) << text;
  if (read_all) expect_readable(built, lost);
  test::flip_byte(path, offset);
}

void flip_all(const BuiltPack& built, uint64_t bulk_stride) {
  for (const auto& [name, regions] : built.regions) {
    const bool shard = name.starts_with("shard-");
    for (const Region& region : regions) {
      const uint64_t stride = region.bulk ? bulk_stride : 1;
      for (uint64_t at = region.begin; at < region.end; at += stride) {
        flip_and_check(built, name, region, at, shard && at % 16 == 0);
        if (testing::Test::HasFatalFailure()) return;
      }
      flip_and_check(built, name, region, region.end - 1, shard);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_TRUE(verify(built.path).report.ok());
}

TEST(Flip, WholePackHasNoDamage) {
  const TempDir dir;
  for (const BuiltPack& built : {tiny_pack(dir), varied_pack(dir)}) {
    for (const VerifyLevel level : {VerifyLevel::kQuick, VerifyLevel::kFull}) {
      const Found found = verify(built.path, level, 3);
      EXPECT_TRUE(found.report.ok()) << to_text(found.damages);
      EXPECT_EQ(found.report.samples, built.samples.size());
      EXPECT_EQ(found.report.warnings, std::vector<std::string>());
    }
    uint64_t bytes = 0;
    for (const auto& [name, content] : built.content) bytes += content.size();
    EXPECT_EQ(verify(built.path).report.bytes_checked, bytes);
  }
}

TEST(Flip, EveryByteOfATinyPack) {
  const TempDir dir;
  flip_all(tiny_pack(dir), 1);
}

TEST(Flip, EveryStructureOfAVariedPack) {
  const TempDir dir;
  flip_all(varied_pack(dir), 997);
}

// Changes a file's length in place: a file that is cut to nothing and written again is flushed to
// the disk by some file systems, which takes a thousand times as long.
void cut(const std::string& path, uint64_t bytes) { std::filesystem::resize_file(path, bytes); }
void restore(const std::string& path, const std::string& content) {
  const uint64_t kept = std::min<uint64_t>(std::filesystem::file_size(path), content.size());
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(kept));
    file.write(content.data() + kept, static_cast<std::streamsize>(content.size() - kept));
    ASSERT_TRUE(file.good());
  }
  std::filesystem::resize_file(path, content.size());
}

// Cuts a file to `bytes`; all that lies behind is lost, and nothing else.
void cut_and_check(const BuiltPack& built, const std::string& name, uint64_t bytes, bool read_all) {
  const std::string path = built.path + "/" + name;
  cut(path, bytes);
  const Found found = verify(built.path);
  const std::string text = str_cat(name, " cut to ", bytes, ": ", to_text(found.damages));
  std::set<uint64_t> lost;
  std::set<std::string> lost_keys;
  for (const Region& region : built.regions.at(name)) {
    if (region.expected.sample < 0 || region.end <= bytes) continue;
    lost.insert(static_cast<uint64_t>(region.expected.sample));
    lost_keys.insert(built.samples[static_cast<size_t>(region.expected.sample)].key);
  }
  ASSERT_EQ(found.report.samples_lost, lost.size()) << text;
  ASSERT_FALSE(found.damages.empty()) << text;
  ASSERT_EQ(found.damages[0].offset, bytes) << text;
  std::set<std::string> found_keys;
  for (const Damage& damage : found.damages) {
    ASSERT_EQ(damage.file, name) << text;
    ASSERT_EQ(damage.code, Code::kDamaged) << text;
    if (&damage == &found.damages[0]) continue;
    ASSERT_EQ(damage.kind, DamageKind::kSample) << text;
    found_keys.insert(damage.key);
  }
  ASSERT_EQ(found_keys, lost_keys) << text;
  if (read_all) expect_readable(built, lost);
  restore(path, built.content.at(name));
}

TEST(Cut, EveryLengthOfATinyPack) {
  const TempDir dir;
  const BuiltPack built = tiny_pack(dir);
  for (const auto& [name, regions] : built.regions) {
    for (uint64_t bytes = 0; bytes < built.content.at(name).size(); ++bytes) {
      cut_and_check(built, name, bytes, name.starts_with("shard-") && bytes % 64 == 0);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Cut, EveryRegionOfAVariedPack) {
  const TempDir dir;
  const BuiltPack built = varied_pack(dir);
  for (const auto& [name, regions] : built.regions) {
    const bool shard = name.starts_with("shard-");
    for (const Region& region : regions) {
      for (const uint64_t bytes : {region.begin, region.begin + 1, region.end - 1}) {
        if (bytes >= built.content.at(name).size()) continue;
        cut_and_check(built, name, bytes, shard);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
    for (uint64_t bytes = 0; bytes < built.content.at(name).size(); bytes += 1009) {
      cut_and_check(built, name, bytes, false);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Cut, BytesBehindTheEndAreReported) {
  const TempDir dir;
  const BuiltPack built = tiny_pack(dir);
  for (const auto& [name, regions] : built.regions) {
    const std::string path = built.path + "/" + name;
    restore(path, built.content.at(name) + "more");
    const Found found = verify(built.path);
    ASSERT_EQ(found.damages.size(), 1u) << to_text(found.damages);
    EXPECT_EQ(found.damages[0].file, name);
    EXPECT_EQ(found.damages[0].offset, built.content.at(name).size());
    restore(path, built.content.at(name));
  }
}

}  // namespace
}  // namespace spk
