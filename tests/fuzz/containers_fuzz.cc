// Any bytes as a .beton file; and as an MDS dataset, whose index and shard they are cut into.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fuzz/one_source.h"

namespace {

// Removed at the end.
struct Folder {
  Folder() {
    char name[] = "/tmp/spk-fuzz-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  void write(const char* name, spk::ByteSpan bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << spk::as_text(bytes);
  }
  std::string path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const spk::ByteSpan bytes(data, size);
  spk::list_and_read("beton", "", false, bytes);
  if (size < 2) return 0;
  static const Folder folder;
  const size_t cut = std::min<size_t>(size - 2, data[0] + size_t{256} * data[1]);
  folder.write("index.json", bytes.subspan(2, cut));
  folder.write("shard", bytes.subspan(2 + cut));
  spk::list_and_read_path("mds", "", false, folder.path);
  return 0;
}
