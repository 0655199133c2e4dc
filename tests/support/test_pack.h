// Packs for tests: built from a list of samples in memory, by the same writer as real ones.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "format/footer.h"
#include "layout/geometry.h"

namespace spk::test {

// A directory of its own below the system's temporary one, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A field's value: absent, a blob, integers, or floating-point numbers.
using TestValue =
    std::variant<std::monostate, std::string, std::vector<int64_t>, std::vector<double>>;

struct TestSample {
  std::string key;
  std::vector<TestValue> values;  // one for each field of the schema
  uint8_t flags = 0;
};

struct TestPackOptions {
  Schema schema;  // see image_schema()
  Geometry geometry{.chunk_bytes = 65536, .shard_count = 1, .blob_align_bytes = 64};
  bool look_ahead = true;  // false: storage order is the order of the list
  Settings settings{{"seed", "1"}};
  std::vector<RejectRow> rejects;  // all in shard 0
  Hash128 plan_id{0x1111222233334444, 0x5555666677778888};
};

// Fields image (blob), label, height, width, channels (int64).
Schema image_schema(std::vector<std::string> classes = {"cat", "dog", "hen"});
// Samples of that schema, "CLASS/NUMBER.jpg", with random bytes of min_bytes .. max_bytes each.
// Same arguments, same samples.
std::vector<TestSample> image_samples(size_t count, size_t min_bytes, size_t max_bytes,
                                      uint64_t seed = 1);

// Makes the directory `path` with shards, index and manifest. Sample i of the list has ordinal i
// and is dealt to the shards by position. Gives the list's numbers in storage order: sample s of
// the pack is samples[order[s]].
Result<std::vector<uint64_t>> write_test_pack(const std::string& path,
                                              const std::vector<TestSample>& samples,
                                              const TestPackOptions& options);

// Whole files, for tests that damage them; a failure ends the test program.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);
// Inverts every bit of the byte at `offset`.
void flip_byte(const std::string& path, uint64_t offset);

}  // namespace spk::test
