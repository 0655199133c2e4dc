// Any bytes as a table that is joined: what it gives is sorted, and of the types that it tells.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "io/file.h"
#include "sources/join_table.h"

namespace {

using namespace spk;

void read_table(const PackOptions& options) {
  const auto table = JoinTable::open(options);
  if (!table.ok()) return;
  const std::string spill = std::filesystem::temp_directory_path().string();
  if (!(*table)->read_rows(options, spill).ok()) return;
  auto rows = (*table)->rows();
  if (!rows.ok()) std::abort();
  std::string key, last;
  JoinRow row;
  uint64_t count = 0;
  for (;; ++count) {
    const auto more = rows->next(&key, &row);
    if (!more.ok()) std::abort();
    if (!*more) break;
    if (count != 0 && key <= last) std::abort();
    last = key;
    if (row.cells.size() != (*table)->columns().size()) std::abort();
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const JoinType type = (*table)->columns()[i].type;
      const bool is_blank = row.cells[i].find_first_not_of(" \t") == std::string::npos;
      if (type != JoinType::kText && !is_blank && !join_number(type, row.cells[i])) std::abort();
    }
  }
  if (count != (*table)->row_count()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = File::create_in_memory("table");
  if (!file.ok() || !file->write_all(0, {data, size}).ok()) std::abort();
  PackOptions options;
  options.join = "/proc/self/fd/" + std::to_string(file->fd());
  options.memory_bytes = uint64_t{16} << 20;
  for (const char* const columns : {"", "a:label", "a:x:float32,b:label:text"}) {
    options.join_columns = columns;
    read_table(options);
  }
  return 0;
}
