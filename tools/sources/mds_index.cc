#include "sources/mds_index.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json_value.h"
#include "base/text.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

namespace {

constexpr char kIndexName[] = "index.json";
constexpr uint64_t kMostIndexBytes = uint64_t{64} << 20;
constexpr size_t kHeadBytes = 65536;
constexpr size_t kMostColumns = 256;
using Kind = JsonValue::Kind;

// "uint16": the bits behind the word; 0 where it is something else.
uint64_t bits_behind(std::string_view encoding, std::string_view word) {
  if (!encoding.starts_with(word)) return 0;
  uint64_t bits = 0;
  const char* const end = encoding.data() + encoding.size();
  const auto [at, error] = std::from_chars(encoding.data() + word.size(), end, bits);
  const bool known = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  return error == std::errc() && at == end && known ? bits : 0;
}

// The type, and the bytes that it takes where they are always so many.
MdsType type_of(const std::string& encoding, std::optional<uint64_t>* bytes) {
  const auto number = [&](MdsType type, uint64_t size) {
    *bytes = size;
    return type;
  };
  if (encoding == "int") return number(MdsType::kInt, 8);
  if (const uint64_t bits = bits_behind(encoding, "int")) return number(MdsType::kInt, bits / 8);
  if (const uint64_t bits = bits_behind(encoding, "uint")) {
    return number(MdsType::kUnsigned, bits / 8);
  }
  if (encoding == "float16") return number(MdsType::kFloat16, 2);
  if (encoding == "float32") return number(MdsType::kFloat32, 4);
  if (encoding == "float64") return number(MdsType::kFloat64, 8);
  if (encoding == "pil") return MdsType::kPil;
  if (encoding == "str" || encoding.starts_with("str_")) return MdsType::kText;
  return MdsType::kBytes;
}

class IndexParser {
 public:
  explicit IndexParser(std::string folder) : folder_(std::move(folder)) {}

  Status bad(std::string what) const {
    return damaged(std::move(what)).at_path(escape_bytes(folder_ + "/" + kIndexName));
  }

  Result<std::string> text_of(const JsonValue& object, const char* name) const {
    const JsonValue* const found = object.find(name);
    if (found == nullptr || !found->is(Kind::kString))
      return bad(str_cat("'", name, "' is no text"));
    return found->text();
  }
  Result<uint64_t> number_of(const JsonValue& object, const char* name) const {
    const JsonValue* const found = object.find(name);
    uint64_t number = 0;
    if (found == nullptr || !found->to_u64(&number))
      return bad(str_cat("'", name, "' is no count"));
    return number;
  }
  Result<const std::vector<JsonValue>*> list_of(const JsonValue& object, const char* name) const {
    const JsonValue* const found = object.find(name);
    if (found == nullptr || !found->is(Kind::kArray))
      return bad(str_cat("'", name, "' is no list"));
    return &found->items();
  }

  Result<std::vector<MdsColumn>> columns(const JsonValue& shard) const {
    SPK_ASSIGN(const auto* names, list_of(shard, "column_names"));
    SPK_ASSIGN(const auto* encodings, list_of(shard, "column_encodings"));
    SPK_ASSIGN(const auto* sizes, list_of(shard, "column_sizes"));
    if (names->size() != encodings->size() || names->size() != sizes->size() || names->empty() ||
        names->size() > kMostColumns) {
      return bad("a shard's columns, their encodings and sizes do not go together");
    }
    std::vector<MdsColumn> columns;
    for (size_t i = 0; i < names->size(); ++i) {
      const JsonValue& size = (*sizes)[i];
      MdsColumn column;
      if (!(*names)[i].is(Kind::kString) || !(*encodings)[i].is(Kind::kString)) {
        return bad("a column's name or encoding is no text");
      }
      column.name = (*names)[i].text();
      column.encoding = (*encodings)[i].text();
      std::optional<uint64_t> own_bytes;
      column.type = type_of(column.encoding, &own_bytes);
      uint64_t bytes = 0;
      if (size.to_u64(&bytes)) {
        column.bytes = bytes;
      } else if (!size.is(Kind::kNull)) {
        return bad("a column's size is no count");
      }
      if (column.is_number() && column.bytes != own_bytes) {
        return bad(str_cat("column '", escape_bytes(column.name), "' is ",
                           escape_bytes(column.encoding), ", but has not its size"));
      }
      columns.push_back(std::move(column));
    }
    return columns;
  }

  // The file that is there: the raw one first, as MDS's own reader does.
  Status choose_file(const JsonValue& shard, const Directory& directory, MdsShard* out) const {
    const JsonValue* const raw = shard.find("raw_data");
    if (raw == nullptr || !raw->is(Kind::kObject)) return bad("a shard without 'raw_data'");
    SPK_ASSIGN(out->name, text_of(*raw, "basename"));
    SPK_ASSIGN(out->raw_bytes, number_of(*raw, "bytes"));
    SPK_TRY(check_name(out->name));
    SPK_ASSIGN(const bool has_raw, directory.exists(out->name));
    if (has_raw) return {};
    const JsonValue* const zip = shard.find("zip_data");
    if (zip == nullptr || !zip->is(Kind::kObject)) {
      return Status(Code::kMismatch, "a shard that the index names is missing")
          .at_path(escape_bytes(directory.path_of(out->name)));
    }
    const std::string raw_name = out->name;
    SPK_ASSIGN(out->name, text_of(*zip, "basename"));
    SPK_TRY(check_name(out->name));
    SPK_ASSIGN(const bool has_zip, directory.exists(out->name));
    if (!has_zip) {
      return Status(Code::kMismatch, "a shard that the index names is missing, packed and raw")
          .at_path(escape_bytes(directory.path_of(out->name)));
    }
    SPK_ASSIGN(const std::string compression, text_of(shard, "compression"));
    const std::string_view algorithm =
        std::string_view(compression).substr(0, compression.find(':'));
    if (algorithm != "zstd" && algorithm != "gz") {
      return unsupported(str_cat("shards are packed with ", escape_bytes(algorithm),
                                 "; zstd and gz are read"))
          .at_path(escape_bytes(directory.path_of(out->name)))
          .with_hint("unpack them beside the index");
    }
    out->packing = algorithm == "zstd" ? Packing::kZstd : Packing::kGzip;
    return {};
  }

  Status check_name(const std::string& name) const {
    return Directory::check_name(name).ok() ? Status() : bad("a shard's name leads elsewhere");
  }

  Result<std::vector<MdsShard>> run() const {
    SPK_ASSIGN(const Directory directory, Directory::open(folder_));
    SPK_ASSIGN(const File file, File::open_read(folder_ + "/" + kIndexName));
    SPK_ASSIGN(const uint64_t bytes, file.size());
    if (bytes > kMostIndexBytes) {
      return unsupported(str_cat("an index of ", format_size(bytes), "; ",
                                 format_size(kMostIndexBytes), " are the most"))
          .at_path(escape_bytes(file.path()));
    }
    std::vector<uint8_t> text(bytes);
    if (!text.empty()) SPK_TRY(file.read_exact(0, text));
    auto parsed = JsonValue::parse(as_text(text));
    if (!parsed.ok()) return std::move(parsed).status().at_path(escape_bytes(file.path()));
    const JsonValue index = std::move(*parsed);
    SPK_ASSIGN(const uint64_t version, number_of(index, "version"));
    if (version != 2) {
      return unsupported(str_cat("an index of version ", version, "; version 2 is read"))
          .at_path(escape_bytes(file.path()));
    }
    SPK_ASSIGN(const auto* shards, list_of(index, "shards"));
    std::vector<MdsShard> out;
    for (const JsonValue& shard : *shards) {
      SPK_ASSIGN(const std::string format, text_of(shard, "format"));
      if (format != "mds") {
        return unsupported(str_cat("shards of format '", escape_bytes(format), "'; mds is read"))
            .at_path(escape_bytes(file.path()));
      }
      MdsShard& one = out.emplace_back();
      SPK_ASSIGN(one.samples, number_of(shard, "samples"));
      SPK_ASSIGN(one.columns, columns(shard));
      SPK_TRY(choose_file(shard, directory, &one));
      if (one.columns != out.front().columns) return bad("shards differ in their columns");
    }
    if (out.empty()) return bad("the index names no shard");
    return out;
  }

 private:
  std::string folder_;
};

}  // namespace

Result<std::vector<MdsShard>> read_mds_index(const std::string& folder) {
  return IndexParser(folder).run();
}

bool has_mds_index(const std::string& folder) {
  const auto file = File::open_read(folder + "/" + kIndexName);
  if (!file.ok()) return false;
  std::vector<uint8_t> head(kHeadBytes);
  const auto got = file->read_some(0, head);
  if (!got.ok()) return false;
  const std::string_view text = as_text(ByteSpan(head).first(*got));
  return text.starts_with('{') && text.find("\"shards\"") != text.npos &&
         text.find("\"column_encodings\"") != text.npos;
}

}  // namespace spk
