// Any bytes at all as the file of an LMDB environment, and its values as Datum: each walk ends,
// within the file, and gives the same again.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/checked.h"
#include "sources/caffe_datum.h"
#include "sources/lmdb_tree.h"

namespace {

using namespace spk;  // NOLINT(google-build-using-namespace): a program of its own

uint64_t walk(const LmdbTree& tree, const File& file, bool salvage) {
  uint64_t sum = 0, entries = 0, lost = 0;
  const auto visit = [&](const LmdbEntry& entry) -> Status {
    if (!range_fits(entry.offset, entry.bytes, tree.file_bytes())) std::abort();
    if (++entries > tree.file_bytes()) std::abort();
    sum = sum * 31 + entry.offset + entry.key.size();
    if (entry.is_database) {
      const auto named = tree.parse_named(entry);
      if (named.ok()) {
        (void)tree.walk(*named, [](const LmdbEntry&) { return Status(); });
      }
      return {};
    }
    const auto read = [&](uint64_t offset, MutableByteSpan into) {
      return file.read_exact(offset, into);
    };
    const auto datum = parse_datum(read, entry.offset, entry.bytes);
    if (!datum.ok()) return {};
    if (datum->has_data && !range_fits(datum->data_offset, datum->data_bytes, tree.file_bytes())) {
      std::abort();
    }
    if (datum->data_offset + datum->data_bytes > entry.offset + entry.bytes) std::abort();
    (void)check_raw_datum(*datum, {}, 1 << 20);
    return {};
  };
  (void)tree.walk(tree.main(), visit, salvage ? &lost : nullptr);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > (1 << 20)) return 0;
  auto file = File::create_in_memory("data.mdb");
  if (!file.ok() || !file->write_all(0, {data, size}).ok()) return 0;
  const auto tree = LmdbTree::open(*file);
  if (!tree.ok()) return 0;
  for (const bool salvage : {false, true}) {
    if (walk(*tree, *file, salvage) != walk(*tree, *file, salvage)) std::abort();
  }
  return 0;
}
