#include "support/test_pack.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "base/text.h"
#include "container/pack.h"
#include "container/seal.h"
#include "container/shard_writer.h"

namespace spk::test {

namespace {

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "test support: %s\n", what.c_str());
  std::abort();
}

StoredSample stored_sample(const TestSample& sample, uint64_t ordinal, const Schema& schema) {
  StoredSample stored;
  stored.key = sample.key;
  stored.ordinal = ordinal;
  stored.flags = sample.flags;
  stored.fields.resize(schema.fields.size());
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const TestValue& value = sample.values.at(i);
    if (const auto* blob = std::get_if<std::string>(&value)) {
      stored.fields[i].present = true;
      stored.fields[i].bytes = blob->size();
      stored.fields[i].checksum = xxh3_64(as_bytes(*blob));
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
      stored.set_ints(i, ints->data(), ints->size());
    } else if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
      stored.set_floats(i, schema.fields[i].kind, floats->data(), floats->size());
    }
  }
  return stored;
}

// Takes the filler's chunks that are settled so far.
Status drain(ChunkFiller& filler, ShardWriter& writer, const std::vector<TestSample>& samples,
             std::vector<uint64_t>& order) {
  while (std::optional<FilledChunk> chunk = filler.next()) {
    std::vector<BlobSource> blobs;
    for (const uint64_t item : chunk->items) {
      order.push_back(item);
      for (const TestValue& value : samples[item].values) {
        if (const auto* blob = std::get_if<std::string>(&value)) {
          blobs.push_back({as_bytes(*blob), {}});
        }
      }
    }
    SPK_TRY(writer.add_chunk(std::move(*chunk), blobs));
  }
  return {};
}

}  // namespace

TempDir::TempDir() {
  std::string name = std::filesystem::temp_directory_path() / "stripepack-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) give_up("cannot make " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Schema image_schema(std::vector<std::string> classes) {
  Schema schema;
  schema.fields = {{"image", FieldKind::kBlob, 1},
                   {"label", FieldKind::kInt64, 1},
                   {"height", FieldKind::kInt64, 1},
                   {"width", FieldKind::kInt64, 1},
                   {"channels", FieldKind::kInt64, 1}};
  schema.classes = std::move(classes);
  return schema;
}

std::vector<TestSample> image_samples(size_t count, size_t min_bytes, size_t max_bytes,
                                      uint64_t seed) {
  static constexpr const char* kClasses[] = {"cat", "dog", "hen"};
  std::mt19937_64 random(seed);
  std::vector<TestSample> samples;
  samples.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t bytes = min_bytes + random() % (max_bytes - min_bytes + 1);
    std::string image(bytes, '\0');
    size_t at = 0;
    for (; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
      store_le<uint64_t>(reinterpret_cast<uint8_t*>(image.data()) + at, random());
    }
    for (; at < bytes; ++at) image[at] = static_cast<char>(random());
    const auto label = static_cast<int64_t>(random() % std::size(kClasses));
    const auto height = static_cast<int64_t>(32 + random() % 500);
    const auto width = static_cast<int64_t>(32 + random() % 500);
    samples.push_back({str_cat(kClasses[label], "/", i, ".jpg"),
                       {std::move(image), std::vector<int64_t>{label}, std::vector<int64_t>{height},
                        std::vector<int64_t>{width}, std::vector<int64_t>{3}}});
  }
  return samples;
}

Result<std::vector<uint64_t>> write_test_pack(const std::string& path,
                                              const std::vector<TestSample>& samples,
                                              const TestPackOptions& options) {
  SPK_ASSIGN(const Directory dir, Directory::create(path));
  const Geometry& geometry = options.geometry;
  std::vector<uint64_t> order;
  uint64_t first_position = 0;
  for (uint32_t shard = 0; shard < geometry.shard_count; ++shard) {
    ShardContext context;
    context.identity.plan_id = options.plan_id;
    context.identity.chunk_bytes_log2 = static_cast<uint8_t>(__builtin_ctz(geometry.chunk_bytes));
    context.identity.blob_align_log2 =
        static_cast<uint8_t>(__builtin_ctz(geometry.blob_align_bytes));
    context.schema = options.schema;
    context.settings = options.settings;
    context.shard = shard;
    context.shard_count = geometry.shard_count;
    const PositionRange dealt = shard_positions(samples.size(), geometry.shard_count, shard);
    const std::vector<RejectRow> rejects = shard == 0 ? options.rejects : std::vector<RejectRow>();
    // Rejected samples hold positions, too.
    context.positions = {first_position, first_position + dealt.size() + rejects.size()};
    first_position = context.positions.end;
    SPK_ASSIGN(ShardWriter writer, ShardWriter::create(dir, shard_file_name(shard), context));
    ChunkFiller filler(options.schema, geometry, options.look_ahead);
    for (uint64_t i = dealt.begin; i < dealt.end; ++i) {
      SPK_TRY(drain(filler, writer, samples, order));
      filler.push(i, stored_sample(samples[i], i, options.schema));
    }
    filler.finish();
    SPK_TRY(drain(filler, writer, samples, order));
    SPK_TRY(writer.finish(rejects));
  }
  SPK_TRY(seal_pack(dir).status());
  return order;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) give_up("cannot open " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) give_up("cannot write " + path);
}

void flip_byte(const std::string& path, uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  char byte = 0;
  if (!file.get(byte)) give_up("cannot read " + path);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(~byte));
  file.close();
  if (!file) give_up("cannot change " + path);
}

}  // namespace spk::test
