// Any bytes taken for an index: opening it and asking for all that it tells must neither crash nor
// hang, and a place that is given out must lie within its shard. So that the fuzzer gets past the
// checksums, each input is tried as it is and once more with its checksums made right.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/checked.h"
#include "container/pack_index.h"

namespace {

using namespace spk;  // NOLINT(google-build-using-namespace): a program of its own

std::vector<uint8_t> with_right_checksums(ByteSpan input) {
  std::vector<uint8_t> bytes(input.begin(), input.end());
  if (bytes.size() < IndexHeader::kBytes) return bytes;
  IndexHeader header = IndexHeader::decode(bytes.data());
  header.magic = kIndexMagic;
  header.file_bytes = bytes.size();
  if (header.head_bytes < IndexHeader::kBytes || header.head_bytes > bytes.size()) {
    header.head_bytes = IndexHeader::kBytes;
  }
  const uint64_t body_bytes = bytes.size() - header.head_bytes;
  header.block_count = static_cast<uint32_t>(divide_up(body_bytes, kIndexBlockBytes));
  const uint64_t entries = uint64_t{header.section_count} * PartEntry::kBytes;
  const uint64_t checksums_at = IndexHeader::kBytes + entries;
  if (!range_fits(checksums_at, uint64_t{header.block_count} * 8, header.head_bytes)) return bytes;
  ByteSpan fields;
  ByteSpan classes;
  for (uint32_t i = 0; i < header.section_count; ++i) {
    const PartEntry entry =
        PartEntry::decode(bytes.data() + IndexHeader::kBytes + i * PartEntry::kBytes);
    if (!range_fits(entry.offset, entry.bytes, bytes.size())) continue;
    const ByteSpan section = ByteSpan(bytes).subspan(entry.offset, entry.bytes);
    if (entry.kind == static_cast<uint32_t>(PartKind::kFields)) fields = section;
    if (entry.kind == static_cast<uint32_t>(PartKind::kClasses)) classes = section;
  }
  const Hash128 schema = schema_hash(fields, classes);
  header.schema_hash_low = schema.low;
  header.schema_hash_high = schema.high;
  for (uint64_t block = 0; block < header.block_count; ++block) {
    const uint64_t start = block * kIndexBlockBytes;
    const uint64_t size = std::min(kIndexBlockBytes, body_bytes - start);
    store_le(bytes.data() + checksums_at + block * 8,
             xxh3_64(ByteSpan(bytes).subspan(header.head_bytes + start, size)));
  }
  header.encode(bytes.data());
  header.checksum = xxh3_64(ByteSpan(bytes).subspan(16, header.head_bytes - 16));
  header.encode(bytes.data());
  return bytes;
}

void look_at_sample(const PackIndex& index, uint64_t sample) {
  (void)index.key(sample);
  (void)index.ordinal(sample);
  (void)index.describe(sample);
  (void)index.sample(sample);
  uint64_t number = 0;
  ChunkLocation chunk;
  if (!index.chunk_of(sample, number).ok() || !index.chunk(number, chunk).ok()) std::abort();
  if (sample < chunk.first_sample || sample - chunk.first_sample >= chunk.sample_count) {
    std::abort();
  }
  const uint64_t data_bytes = index.shards()[chunk.shard].data_bytes;
  if (!range_fits(chunk.offset, chunk.read_bytes, data_bytes) ||
      chunk.used_bytes > chunk.read_bytes) {
    std::abort();
  }
  for (size_t i = 0; i < index.schema().fields.size(); ++i) {
    const auto field = static_cast<uint16_t>(i);
    (void)index.ints(sample, field);
    (void)index.floats(sample, field);
    if (!index.check_blob_field(field).ok()) continue;
    SampleLocation blob;
    if (!index.locate(sample, field, blob).ok()) continue;
    if (!range_fits(blob.offset, blob.bytes, index.shards()[blob.shard].data_bytes)) std::abort();
  }
}

void look_at(ByteSpan bytes) {
  const int fd = ::memfd_create("index", MFD_CLOEXEC);
  File file = File::adopt(fd, "index");
  if (fd < 0 || !file.write_all(0, bytes).ok()) std::abort();
  const auto opened = PackIndex::open(std::move(file));
  if (!opened.ok()) return;
  const PackIndex& index = **opened;
  const uint64_t samples = index.sample_count();
  for (uint64_t i = 0; i < samples && i < 64; ++i) {
    look_at_sample(index, i);
    look_at_sample(index, samples - 1 - i);
  }
  (void)index.find_key("a/b.jpg");
  for (size_t i = 0; i < index.schema().fields.size(); ++i) {
    const uint64_t length = index.schema().fields[i].length;
    if (length == 0 || length > 1024) continue;
    const uint64_t count = std::min<uint64_t>(samples, 64);
    std::vector<int64_t> ints(count * length);
    std::vector<double> floats(count * length);
    std::vector<uint8_t> present(count);
    const auto field = static_cast<uint16_t>(i);
    (void)index.copy_ints(field, samples - count, count, ints.data(), present.data());
    (void)index.copy_floats(field, 0, count, floats.data(), nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  look_at({data, size});
  look_at(with_right_checksums({data, size}));
  return 0;
}
