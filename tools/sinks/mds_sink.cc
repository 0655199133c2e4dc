// MosaicML MDS: shard.00000.mds ..., and index.json that tells of them.
//
// Format of a shard: u32 number of samples, u32 offsets of each and of the end (from the file's
// beginning), the columns as JSON, samples. A sample: u32 sizes of those columns whose size varies,
// then the columns in the byte order of their names.
#include <algorithm>
#include <bit>
#include <limits>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr uint64_t kUsualShardBytes = uint64_t{48} << 20;  // mostly below the usual limit of 64 MiB
constexpr uint16_t kTheKey = kNoField - 1;

struct Column {
  std::string name;
  std::string encoding;
  uint64_t bytes = 0;  // 0: differs between samples
  uint16_t field = kTheKey;
};

const char* type_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kFloat32: return "float32";
    case FieldKind::kFloat64: return "float64";
    default: return "int64";
  }
}

void write_columns(const std::vector<Column>& columns, JsonWriter* json) {
  json->key("column_encodings").begin_array();
  for (const Column& column : columns) json->value(column.encoding);
  json->end_array().key("column_names").begin_array();
  for (const Column& column : columns) json->value(column.name);
  json->end_array().key("column_sizes").begin_array();
  for (const Column& column : columns) {
    if (column.bytes == 0) {
      json->null();
    } else {
      json->value(column.bytes);
    }
  }
  json->end_array().key("compression").null();
  json->member("format", "mds").key("hashes").begin_array().end_array();
}

class MdsFile : public FileSink {
 public:
  MdsFile(const Pack& pack, const std::vector<Column>& columns, OutputFile out)
      : pack_(pack), columns_(columns), out_(std::move(out)) {}

  // The head, for COUNT samples, whose offsets are not known yet.
  Status write_head(uint64_t count) {
    count_ = count;
    if (count >= std::numeric_limits<uint32_t>::max() / 4) return too_large();
    JsonWriter json;
    json.begin_object();
    write_columns(columns_, &json);
    json.key("size_limit").null().member("version", 2).end_object();
    SPK_TRY(out_.append_u32(static_cast<uint32_t>(count)));
    SPK_TRY(out_.append_zeros(4 * (count + 1)));
    return out_.append(json.text());
  }

  Status add(const ExportSample& sample) override {
    SPK_TRY(note_offset());
    std::vector<std::string> values(columns_.size());
    std::string sizes;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      uint64_t bytes = 0;
      if (is_blob(column)) {
        if (!sample.blobs[column.field].present) return absent(column);
        bytes = sample.blobs[column.field].bytes;
      } else {
        SPK_TRY(take_value(column, *sample.stored, &values[i]));
        bytes = values[i].size();
      }
      if (bytes > std::numeric_limits<uint32_t>::max()) return too_large();
      if (column.bytes == 0) append_number(&sizes, static_cast<uint32_t>(bytes));
    }
    SPK_TRY(out_.append(sizes));
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (is_blob(columns_[i])) {
        const ExportBlob& blob = sample.blobs[columns_[i].field];
        SPK_TRY(blob.each_piece([this](ByteSpan piece) { return out_.append(piece); }));
      } else {
        SPK_TRY(out_.append(values[i]));
      }
    }
    return {};
  }

  Result<ExportedFile> finish() override {
    SPK_TRY(note_offset());
    std::string offsets;
    for (const uint32_t offset : offsets_) append_number(&offsets, offset);
    SPK_TRY(out_.rewrite(4, as_bytes(offsets)));
    const ExportedFile file{count_, out_.position(), {}};
    SPK_TRY(out_.finish());
    return file;
  }

 private:
  bool is_blob(const Column& column) const {
    return column.field != kTheKey && pack_.schema().fields[column.field].kind == FieldKind::kBlob;
  }
  template <typename T>
  static void append_number(std::string* out, T value) {
    uint8_t bytes[sizeof(T)];
    store_le(bytes, value);
    out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  static Status too_large() {
    return unsupported("makes a shard of more than 4 GiB, which MDS cannot address")
        .with_hint("--shard-size SIZE makes smaller ones");
  }
  static Status absent(const Column& column) {
    return unsupported(str_cat("has no '", column.name, "', and MDS has no absent values"));
  }
  Status note_offset() {
    if (out_.position() > std::numeric_limits<uint32_t>::max()) return too_large();
    offsets_.push_back(static_cast<uint32_t>(out_.position()));
    return {};
  }
  Status take_value(const Column& column, const StoredSample& stored, std::string* value) const {
    if (column.field == kTheKey) {
      *value = stored.key;
      return {};
    }
    const StoredField& field = stored.fields[column.field];
    if (!field.present) return absent(column);
    const FieldKind kind = pack_.schema().fields[column.field].kind;
    if (column.bytes == 0) {  // json
      for (uint32_t i = 0; i < field.count; ++i) {
        *value += (i == 0 ? "" : ", ") + number_text(kind, stored.numbers[field.first + i]);
      }
      *value = str_cat("[", *value, "]");
      return {};
    }
    for (uint32_t i = 0; i < field.count; ++i) {
      const uint64_t bits = stored.numbers[field.first + i];
      if (kind == FieldKind::kFloat32) {
        append_number(value, static_cast<uint32_t>(bits));
      } else {
        append_number(value, bits);
      }
    }
    return {};
  }

  const Pack& pack_;
  const std::vector<Column>& columns_;
  OutputFile out_;
  uint64_t count_ = 0;
  std::vector<uint32_t> offsets_;
};

class MdsSink : public Sink {
 public:
  explicit MdsSink(const Pack& pack) : pack_(pack), known_(pack.schema()) {}

  Status choose_columns() {
    SPK_ASSIGN(const bool text_keys, all_keys_are_text());
    const Schema& schema = pack_.schema();
    key_name_ = schema.find("key") == kNoField ? "key" : "__key__";
    if (schema.find(key_name_) != kNoField) {
      return unsupported("the pack has fields 'key' and '__key__'; one is needed for the keys");
    }
    columns_.push_back({key_name_, text_keys ? "str" : "bytes", 0, kTheKey});
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const auto field = static_cast<uint16_t>(i);
      // The picture tells these.
      if (field == known_.height || field == known_.width || field == known_.channels) continue;
      const Field& shape = schema.fields[i];
      Column column{shape.name, "bytes", 0, field};
      if (field == known_.image) {
        SPK_ASSIGN(column.encoding, picture_encoding());
      } else if (shape.kind != FieldKind::kBlob && shape.length == 0) {
        column.encoding = "json";
      } else if (shape.kind != FieldKind::kBlob) {
        const std::string type = type_name(shape.kind);
        column.bytes = shape.length * (shape.kind == FieldKind::kFloat32 ? 4 : 8);
        column.encoding = shape.length != 1 ? str_cat("ndarray:", type, ":", shape.length)
                          : shape.kind == FieldKind::kInt64 ? "int"
                                                            : type;
      }
      columns_.push_back(std::move(column));
    }
    std::sort(columns_.begin(), columns_.end(),
              [](const Column& a, const Column& b) { return a.name < b.name; });
    return {};
  }

  uint64_t default_file_count(uint64_t, uint64_t payload_bytes) const override {
    return std::max<uint64_t>(divide_up(payload_bytes, kUsualShardBytes), 1);
  }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    SPK_ASSIGN(OutputFile out, OutputFile::create(directory, file_name(file.number)));
    auto shard = std::make_unique<MdsFile>(pack_, columns_, std::move(out));
    SPK_TRY(shard->write_head(file.samples.size()));
    return std::unique_ptr<FileSink>(std::move(shard));
  }
  Result<ReadBack> read_back() const override {
    ReadBack how;
    how.options.source_kind = "mds";
    how.options.features =
        str_cat("key=", key_name_, ",image=", pack_.schema().fields[known_.image].name);
    if (known_.label != kNoField) how.options.features += ",label=label";
    for (const Column& column : columns_) {
      const bool kept = column.field != kTheKey && column.field != known_.image &&
                        (column.encoding == "bytes" || column.encoding == "int");
      if (kept && is_feature_name(column.name)) how.options.features += "," + column.name;
    }
    how.has_keys = true;
    return how;
  }
  Status finish(const Directory& directory, std::span<const ExportedFile> files) const override {
    JsonWriter json;
    json.begin_object().key("shards").begin_array();
    for (size_t file = 0; file < files.size(); ++file) {
      json.begin_object();
      write_columns(columns_, &json);
      json.key("raw_data").begin_object().member("basename", file_name(file));
      json.member("bytes", files[file].bytes).key("hashes").begin_object().end_object();
      json.end_object().member("samples", files[file].samples);
      json.key("size_limit").null().member("version", 2).key("zip_data").null().end_object();
    }
    json.end_array().member("version", 2).end_object();
    return write_output_file(directory, "index.json", as_bytes(json.text() + "\n"));
  }

 private:
  static std::string file_name(uint64_t file) {
    const std::string digits = str_cat(file);
    return str_cat("shard.", std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0'), digits,
                   ".mds");
  }
  Result<bool> all_keys_are_text() const {
    for (uint64_t sample = 0; sample < pack_.sample_count(); ++sample) {
      SPK_ASSIGN(const std::string key, pack_.key(sample));
      if (!is_valid_utf8(key)) return false;
    }
    return true;
  }
  // Readers open "jpeg" and "png" with one decoder for all pictures, so that others may be among
  // them; the first sample decides. Pixels are an array, all of one shape.
  Result<std::string> picture_encoding() const {
    if (holds_pixels(pack_)) {
      SPK_ASSIGN(const PixelShape shape, uniform_shape(pack_, known_));
      return str_cat("ndarray:uint8:", shape.height, ",", shape.width, ",", shape.channels);
    }
    if (pack_.sample_count() == 0) return std::string("bytes");
    SPK_ASSIGN(const StoredSample first, pack_.sample(0));
    std::string_view suffix;
    if (first.fields[known_.image].present) {
      ExportBlob blob;
      blob.stream = [this](const ByteSink& take) {
        return copy_blob(pack_, 0, known_.image, take);
      };
      SPK_ASSIGN(const std::vector<uint8_t> head, head_of(blob, 16));
      suffix = suffix_of_content(head);
    }
    return std::string(suffix == "jpg" ? "jpeg" : suffix == "png" ? "png" : "bytes");
  }

  const Pack& pack_;
  const KnownFields known_;
  std::vector<Column> columns_;
  std::string key_name_;
};

Result<std::unique_ptr<Sink>> open_mds(const ExportOptions&, const Pack& pack) {
  if (KnownFields(pack.schema()).image == kNoField) {
    return unsupported("the pack has no field of bytes");
  }
  auto sink = std::make_unique<MdsSink>(pack);
  SPK_TRY(sink->choose_columns());
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace

SinkKind mds_sink_kind() { return {"mds", "MosaicML MDS shards with index.json", open_mds}; }

}  // namespace spk
