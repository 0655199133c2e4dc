#include "sources/beton_file.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint16_t kVersion = 2;
constexpr uint64_t kHeaderBytes = 24, kFieldBytes = 1041;
constexpr size_t kNameBytes = 16;
constexpr uint16_t kMostFields = 256;
constexpr uint32_t kLeastPageBytes = 4096;

struct Layout {
  uint64_t bytes = 0;
  uint64_t align = 1;  // as NumPy aligns: structures that are packed stand anywhere
};

bool layout_of(BetonType type, Layout* layout) {
  switch (type) {
    case BetonType::kFloat:
    case BetonType::kInt:
    case BetonType::kArray:
    case BetonType::kTensor: *layout = {8, 8}; return true;
    case BetonType::kImage: *layout = {13, 1}; return true;
    case BetonType::kBytes:
    case BetonType::kJson: *layout = {16, 1}; return true;
    case BetonType::kCustom: break;
  }
  return false;
}

bool is_known(uint8_t type) { return type <= 6 || type == 255; }

}  // namespace

bool is_beton(ByteSpan head) {
  if (head.size() < kHeaderBytes + 1 + kNameBytes) return false;
  const uint8_t* const at = head.data();
  const uint16_t fields = load_le<uint16_t>(at + 2);
  if (load_le<uint16_t>(at) != kVersion || fields == 0 || fields > kMostFields) return false;
  const auto page_bytes = load_le<uint32_t>(at + 4);
  if (!std::has_single_bit(page_bytes) || page_bytes < kLeastPageBytes) return false;
  if (load_le<uint64_t>(at + 8) == 0 || !is_known(at[kHeaderBytes])) return false;
  const std::string_view name = as_text(head.subspan(kHeaderBytes + 1, kNameBytes));
  const std::string_view letters = name.substr(0, name.find('\0'));
  return !letters.empty() && name.find_first_not_of('\0', letters.size()) == name.npos &&
         std::all_of(letters.begin(), letters.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<BetonHeader> read_beton_header(const File& file) {
  const auto bad = [&file](std::string what, uint64_t offset) {
    return damaged(std::move(what)).at_path(escape_bytes(file.path())).at_offset(offset);
  };
  SPK_ASSIGN(const uint64_t file_bytes, file.size());
  uint8_t head[kHeaderBytes];
  if (file_bytes < kHeaderBytes) return bad("the file is cut within its header", file_bytes);
  SPK_TRY(file.read_exact(0, head));
  const uint16_t version = load_le<uint16_t>(head);
  const uint16_t count = load_le<uint16_t>(head + 2);
  if (version != kVersion) {
    return unsupported(str_cat("a .beton of version ", version, "; version 2 is read"))
        .at_path(escape_bytes(file.path()));
  }
  if (count == 0 || count > kMostFields) return bad(str_cat("a file of ", count, " fields"), 2);
  BetonHeader header;
  header.samples = load_le<uint64_t>(head + 8);
  header.table_offset = load_le<uint64_t>(head + 16);
  header.rows_offset = kHeaderBytes + count * kFieldBytes;
  std::vector<uint8_t> fields(count * kFieldBytes);
  if (file_bytes < header.rows_offset) return bad("the file is cut within its fields", file_bytes);
  SPK_TRY(file.read_exact(kHeaderBytes, fields));
  uint64_t align = 1;
  for (uint16_t i = 0; i < count; ++i) {
    const uint8_t* const at = fields.data() + i * kFieldBytes;
    BetonField field;
    field.type = static_cast<BetonType>(at[0]);
    const std::string_view name = as_text({at + 1, kNameBytes});
    field.name = name.substr(0, name.find('\0'));
    Layout layout;
    if (!layout_of(field.type, &layout)) {
      return unsupported(str_cat("field '", escape_bytes(field.name), "' is of a type of its own (",
                                 unsigned{at[0]}, "), whose size is not known"))
          .at_path(escape_bytes(file.path()));
    }
    field.offset = round_up(header.row_bytes, layout.align);
    header.row_bytes = field.offset + layout.bytes;
    align = std::max(align, layout.align);
    header.fields.push_back(std::move(field));
  }
  header.row_bytes = round_up(header.row_bytes, align);
  uint64_t rows_bytes = 0;
  if (header.table_offset == 0) {
    return bad("the file has no table of allocations: its writer did not finish", 16);
  }
  if (!checked_mul(header.samples, header.row_bytes, &rows_bytes) ||
      !range_fits(header.rows_offset, rows_bytes, header.table_offset) ||
      header.table_offset > file_bytes) {
    return bad(str_cat("the file tells of ", header.samples,
                       " samples, which do not fit into it: it is cut, or was not finished"),
               8);
  }
  const uint64_t table_bytes = file_bytes - header.table_offset;
  if (table_bytes % kBetonAllocationBytes != 0) {
    return bad("the table of allocations is cut", header.table_offset);
  }
  header.table_rows = table_bytes / kBetonAllocationBytes;
  return header;
}

BetonImage read_beton_image(const uint8_t* row) {
  BetonImage image;
  image.mode = row[0];
  image.width = load_le<uint16_t>(row + 1);
  image.height = load_le<uint16_t>(row + 3);
  image.offset = load_le<uint64_t>(row + 5);
  return image;
}

}  // namespace spk
