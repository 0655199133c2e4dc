// Prints the tables of docs/FORMAT.md from format/format_table.def, each between the markers under
// which it stands there. format_doc_test.py compares the two.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "format/constants.h"
#include "format/structs.h"

namespace {

struct Row {
  std::vector<std::string> cells;
};

// "kKeyEnd" -> "key_end", "kInt64" -> "int64": how the document names roles, kinds and types.
std::string snake_case(std::string_view name) {
  std::string out;
  for (size_t i = 1; i < name.size(); ++i) {
    const char c = name[i];
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && i > 1) out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::string type_name(std::string_view type) {
  if (type == "uint8_t") return "u8";
  if (type == "uint16_t") return "u16";
  if (type == "uint32_t") return "u32";
  if (type == "uint64_t") return "u64";
  return std::string(type);
}

void print_table(const std::string& name, const std::vector<std::string>& head,
                 const std::vector<Row>& rows) {
  std::printf("<!-- begin generated: %s -->\n", name.c_str());
  std::string line = "|";
  std::string rule = "|";
  for (const std::string& cell : head) {
    line += " " + cell + " |";
    rule += "---|";
  }
  std::printf("%s\n%s\n", line.c_str(), rule.c_str());
  for (const Row& row : rows) {
    line = "|";
    for (const std::string& cell : row.cells) line += " " + cell + " |";
    std::printf("%s\n", line.c_str());
  }
  std::printf("<!-- end generated -->\n");
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

void print_constants() {
  std::vector<Row> rows;
#define SPK_CONST(type, name, value, meaning) \
  rows.push_back({{code(#name), type_name(#type), #value, meaning}});
#include "format/format_table.def"
#undef SPK_CONST
  print_table("constants", {"Name", "Type", "Value", "Meaning"}, rows);
}

void print_enum(const std::string& wanted) {
  std::vector<Row> rows;
#define SPK_ENUM(group, name, value, meaning) \
  if (wanted == #group) rows.push_back({{#value, code(snake_case(#name)), meaning}});
#include "format/format_table.def"
#undef SPK_ENUM
  print_table(wanted, {"Value", "Name", "Meaning"}, rows);
}

void print_structs() {
#define SPK_DUMP_FIELD(offset, type, name, meaning) \
  rows.push_back({{#offset, type_name(#type), code(#name), meaning}});
#define SPK_STRUCT(name, bytes, meaning)                                  \
  {                                                                       \
    std::vector<Row> rows;                                                \
    SPK_FIELDS_##name(SPK_DUMP_FIELD)                                     \
        print_table(#name, {"Offset", "Type", "Field", "Meaning"}, rows); \
  }
#include "format/format_table.def"
#undef SPK_STRUCT
#undef SPK_DUMP_FIELD
  std::vector<Row> sizes;
#define SPK_STRUCT(name, bytes, meaning) sizes.push_back({{code(#name), #bytes, meaning}});
#include "format/format_table.def"
#undef SPK_STRUCT
  print_table("structs", {"Record", "Bytes", "Where"}, sizes);
}

void print_hashes() {
  std::vector<Row> rows;
  for (const size_t size : {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 1025, 4096}) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i);
    rows.push_back({{std::to_string(size), code(spk::to_hex(spk::xxh3_64(bytes))),
                     code(spk::xxh3_128(bytes).to_hex())}});
  }
  print_table("xxh3", {"Bytes", "XXH3-64", "XXH3-128"}, rows);
}

}  // namespace

int main() {
  print_constants();
  for (const char* group : {"ColumnType", "ColumnFlag", "Role", "FieldKind", "PartKind"}) {
    print_enum(group);
  }
  print_structs();
  print_hashes();
  return 0;
}
