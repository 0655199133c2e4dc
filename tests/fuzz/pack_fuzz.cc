// A whole pack on disk, damaged as the input says: verifying, opening, reading and repairing must
// neither crash nor hang nor lie. What verify calls whole is what was written; what it does not
// call lost can be read; what repair calls repaired is whole.
//
// Input: a byte of flags (1: checksums are made right again behind the edits, so that the fuzzer
// gets past them; 2: repair as well), then edits: file, offset (3 bytes), length (low 6 bits; 64:
// cut the file there instead), and as many bytes.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/checked.h"
#include "container/pack.h"
#include "container/repair.h"
#include "container/verify.h"
#include "support/test_pack.h"

namespace {

using namespace spk;  // NOLINT(google-build-using-namespace): a program of its own

constexpr size_t kCoveredFrom = 16;
constexpr size_t kFlagChecksums = 1;
constexpr size_t kFlagRepair = 2;

uint8_t* at(std::string& bytes, uint64_t offset) {
  return reinterpret_cast<uint8_t*>(bytes.data()) + offset;
}
ByteSpan span(const std::string& bytes, uint64_t offset, uint64_t size) {
  return as_bytes(bytes).subspan(offset, size);
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Two shards of several chunks, a run of slots, an empty blob, an absent one, rejects.
struct Original {
  test::TempDir dir;
  std::string path = dir / "pack";
  std::vector<test::TestSample> samples;  // in storage order
  std::map<std::string, std::string> files;

  Original() {
    std::vector<test::TestSample> listed = test::image_samples(24, 500, 9000, 3);
    auto& large = std::get<std::string>(listed[7].values[0]);
    while (large.size() < 90000) large += large;
    listed[3].values[0] = std::string();
    listed[15].values[0] = std::monostate();
    test::TestPackOptions options;
    options.schema = test::image_schema();
    options.geometry.shard_count = 2;
    options.rejects = {{"bad\xff.jpg", 77, "no picture"}};
    const auto order = test::write_test_pack(path, listed, options);
    require(order.ok(), "the pack can be made");
    for (const uint64_t number : *order) samples.push_back(listed[number]);
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      files[entry.path().filename()] = test::read_file(entry.path());
    }
  }
};

void right_chunks(std::string& shard) {
  for (uint64_t start = 0; start + ChunkHeader::kBytes <= shard.size(); start += kMinChunkBytes) {
    ChunkHeader header = ChunkHeader::decode(at(shard, start));
    const uint64_t head_bytes = ChunkHeader::kBytes + header.table_bytes;
    if (header.magic != kChunkMagic || header.table_bytes > shard.size() ||
        !range_fits(start, head_bytes, shard.size())) {
      continue;
    }
    header.checksum = xxh3_64(span(shard, start + kCoveredFrom, head_bytes - kCoveredFrom));
    header.encode(at(shard, start));
  }
}

void right_footer(std::string& shard) {
  if (shard.size() < FooterHeader::kBytes + Trailer::kBytes) return;
  const uint64_t trailer_at = shard.size() - Trailer::kBytes;
  Trailer trailer = Trailer::decode(at(shard, trailer_at));
  const uint64_t footer_at = trailer.footer_offset;
  if (!range_fits(footer_at, FooterHeader::kBytes, trailer_at)) return;
  FooterHeader header = FooterHeader::decode(at(shard, footer_at));
  const uint64_t head_bytes =
      FooterHeader::kBytes + uint64_t{header.part_count} * PartEntry::kBytes;
  if (!range_fits(footer_at, head_bytes, trailer_at)) return;
  for (uint32_t i = 0; i < header.part_count; ++i) {
    const uint64_t entry_at = footer_at + FooterHeader::kBytes + i * PartEntry::kBytes;
    PartEntry entry = PartEntry::decode(at(shard, entry_at));
    if (!range_fits(entry.offset, entry.bytes, shard.size() - footer_at)) continue;
    entry.checksum = xxh3_64(span(shard, footer_at + entry.offset, entry.bytes));
    entry.encode(at(shard, entry_at));
  }
  header.checksum = xxh3_64(span(shard, footer_at + kCoveredFrom, head_bytes - kCoveredFrom));
  header.encode(at(shard, footer_at));
  trailer.footer_checksum = header.checksum;
  trailer.encode(at(shard, trailer_at));
  trailer.checksum =
      xxh3_64(span(shard, trailer_at + kCoveredFrom, Trailer::kBytes - kCoveredFrom));
  trailer.encode(at(shard, trailer_at));
}

void right_index(std::string& index) {
  if (index.size() < IndexHeader::kBytes) return;
  IndexHeader header = IndexHeader::decode(at(index, 0));
  const uint64_t entries = uint64_t{header.section_count} * PartEntry::kBytes;
  const uint64_t checksums_at = IndexHeader::kBytes + entries;
  if (header.head_bytes > index.size() ||
      !range_fits(checksums_at, uint64_t{header.block_count} * 8, header.head_bytes)) {
    return;
  }
  for (uint64_t b = 0; b < header.block_count; ++b) {
    const uint64_t begin = header.head_bytes + b * kIndexBlockBytes;
    if (begin >= index.size()) break;
    const uint64_t bytes = std::min(kIndexBlockBytes, index.size() - begin);
    store_le(at(index, checksums_at + b * 8), xxh3_64(span(index, begin, bytes)));
  }
  header.checksum = xxh3_64(span(index, kCoveredFrom, header.head_bytes - kCoveredFrom));
  header.encode(at(index, 0));
}

std::map<std::string, std::string> edited(const Original& original, const uint8_t* data,
                                          size_t size, bool checksums) {
  std::map<std::string, std::string> files = original.files;
  while (size >= 5) {
    auto file = files.begin();
    std::advance(file, data[0] % files.size());
    std::string& bytes = file->second;
    const uint64_t offset = uint64_t{data[1]} | uint64_t{data[2]} << 8 | uint64_t{data[3]} << 16;
    const uint8_t operation = data[4];
    const size_t count = std::min<size_t>(operation & 63, size - 5);
    if ((operation & 64) != 0) {
      bytes.resize(std::min<uint64_t>(offset, bytes.size()));
    } else if (!bytes.empty()) {
      const uint64_t begin = offset % bytes.size();
      std::copy_n(data + 5, std::min<uint64_t>(count, bytes.size() - begin), at(bytes, begin));
    }
    const size_t used = 5 + ((operation & 64) != 0 ? 0 : count);
    data += used;
    size -= used;
  }
  for (auto& [name, bytes] : files) {
    if (!checksums) break;
    if (name.starts_with("shard-")) {
      right_chunks(bytes);
      right_footer(bytes);
    } else if (name == kIndexName) {
      right_index(bytes);
    }
  }
  return files;
}

std::set<std::string> verify(const Original& original, VerifyReport& report, bool& index_damaged) {
  std::set<std::string> lost;
  VerifyOptions options;
  options.threads = 1;
  const auto verified = verify_pack(original.path, options, [&](const Damage& damage) {
    if (damage.samples_lost != 0) lost.insert(damage.key);
    if (damage.kind == DamageKind::kIndex) index_damaged = true;
  });
  if (!verified.ok()) {
    index_damaged = true;
    report.damages = 1;
    return lost;
  }
  report = *verified;
  return lost;
}

// Reads all that can be read. `exact`: what is not lost must be there, and nothing else given out.
void read_all(const Original& original, const std::set<std::string>& lost, bool exact) {
  const auto opened = Pack::open(original.path);
  if (!opened.ok()) {
    require(!exact, "a pack with a whole index opens");
    return;
  }
  const Pack& pack = **opened;
  const uint16_t field = pack.schema().find("image");
  std::vector<uint8_t> into(256 * 1024);
  const uint64_t count = std::min<uint64_t>(pack.sample_count(), 1000);
  for (uint64_t s = 0; s < count; ++s) {
    const auto key = pack.key(s);
    const auto sample = pack.sample(s);
    if (field == kNoField) continue;
    const auto got = pack.read(s, field, into);
    if (!exact) continue;
    require(key.ok() && *key == original.samples[s].key, "keys are the same");
    const auto* blob = std::get_if<std::string>(&original.samples[s].values[0]);
    if (blob == nullptr) {
      require(got.status().code() == Code::kNotFound, "an absent blob is absent");
    } else if (got.ok()) {
      require(as_text(ByteSpan(into).first(*got)) == *blob, "bytes are the same");
    } else {
      require(lost.count(*key) != 0, "what is not lost can be read");
    }
  }
  for (uint64_t c = 0; c < std::min<uint64_t>(pack.chunk_count(), 100); ++c) {
    const auto chunk = pack.chunk(c);
    if (!chunk.ok() || chunk->read_bytes > into.size()) continue;
    (void)pack.read_chunk(c, into);
  }
}

void repair(const Original& original, bool exact) {
  RepairOptions options;
  options.drop_damaged = true;
  const auto repaired = repair_pack(original.path, options);
  if (!repaired.ok() || repaired->outcome == RepairReport::Outcome::kRefused) return;
  VerifyReport report;
  bool index_damaged = false;
  (void)verify(original, report, index_damaged);
  require(report.ok(), "what is repaired is whole");
  if (!exact || !repaired->lost.empty() || repaired->unknown_lost != 0 ||
      repaired->reject_lists_lost != 0) {
    return;
  }
  for (const auto& [name, content] : original.files) {
    if (!name.starts_with("shard-")) continue;
    require(test::read_file(original.path + "/" + name) == content,
            "a repair without losses gives the same bytes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Original original;
  if (size == 0 || size > 4096) return 0;
  const bool checksums = (data[0] & kFlagChecksums) != 0;
  const auto files = edited(original, data + 1, size - 1, checksums);
  std::filesystem::remove_all(original.path);
  std::filesystem::create_directory(original.path);
  for (const auto& [name, bytes] : files) test::write_file(original.path + "/" + name, bytes);

  VerifyReport report;
  bool index_damaged = false;
  const std::set<std::string> lost = verify(original, report, index_damaged);
  if (!checksums) {
    require(report.ok() == (files == original.files), "whole is what was written");
  }
  read_all(original, lost, !checksums && !index_damaged);
  if ((data[0] & kFlagRepair) != 0) repair(original, !checksums);
  return 0;
}
