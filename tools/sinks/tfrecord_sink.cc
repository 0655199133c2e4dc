// TFRecord shards of tf.train.Example, with the feature names of the ImageNet scripts, and beside
// each shard the index that DALI reads (NAME.idx: offset and size of each record).
//
// Format: u64 length, u32 masked CRC-32C of it, data, u32 masked CRC-32C of the data; the data is
// the protobuf message Example { Features features = 1 }, Features { map<string, Feature> feature =
// 1 }, Feature { BytesList = 1 | FloatList = 2 | Int64List = 3, each with the values as field 1 }.
// Features are written in the byte order of their names, so that equal samples give equal bytes.
#include <algorithm>
#include <bit>
#include <map>

#include "base/bytes.h"
#include "base/text.h"
#include "base/varint.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"
#include "sources/crc32c.h"

namespace spk {

namespace {

constexpr uint64_t kFramingBytes = 16;

// Bytes of a message: text, then perhaps a blob that is not copied.
struct Part {
  std::string text;
  const ExportBlob* blob = nullptr;
};

struct Message {
  std::vector<Part> parts;
  uint64_t bytes = 0;

  void add(const std::string& text) {
    bytes += text.size();
    if (parts.empty() || parts.back().blob != nullptr) parts.emplace_back();
    parts.back().text += text;
  }
  void add(const ExportBlob& blob) {
    bytes += blob.bytes;
    if (parts.empty() || parts.back().blob != nullptr) parts.emplace_back();
    parts.back().blob = &blob;
  }
  void add(const Message& inner) {
    for (const Part& part : inner.parts) {
      add(part.text);
      if (part.blob != nullptr) add(*part.blob);
    }
  }
};

std::string tag(uint32_t field, uint64_t length) {
  std::string text;
  append_varint(text, field << 3 | 2);  // length-delimited
  append_varint(text, length);
  return text;
}

Message wrapped(uint32_t field, const Message& inner) {
  Message message;
  message.add(tag(field, inner.bytes));
  message.add(inner);
  return message;
}

Message bytes_feature(const ExportBlob& blob) {
  Message value;
  value.add(tag(1, blob.bytes));
  value.add(blob);
  return wrapped(1, value);
}
Message text_feature(std::string_view text) {
  Message value;
  value.add(tag(1, text.size()) + std::string(text));
  return wrapped(1, value);
}
// Packed lists.
Message list_feature(uint32_t kind, const std::string& packed) {
  Message list;
  list.add(tag(1, packed.size()) + packed);
  return wrapped(kind, list);
}

class TfRecordFile : public FileSink {
 public:
  TfRecordFile(const Pack& pack, const KnownFields& known, bool pixels, OutputFile out,
               OutputFile index)
      : pack_(pack),
        known_(known),
        pixels_(pixels),
        out_(std::move(out)),
        index_(std::move(index)) {}

  Status add(const ExportSample& sample) override {
    SPK_TRY(make_features(sample));
    Message features;
    for (const auto& [name, feature] : features_) {
      Message entry;
      entry.add(tag(1, name.size()) + name);
      entry.add(wrapped(2, feature));
      features.add(wrapped(1, entry));
    }
    SPK_TRY(index_.append(
        str_cat(out_.position(), " ", wrapped(1, features).bytes + kFramingBytes, "\n")));
    ++samples_;
    return write(wrapped(1, features));
  }

  Result<ExportedFile> finish() override {
    const ExportedFile file{samples_, out_.position(), {}};
    SPK_TRY(index_.finish());
    SPK_TRY(out_.finish());
    return file;
  }

 private:
  Status make_features(const ExportSample& sample);
  void add_numbers(const std::string& name, const StoredSample& stored, uint16_t field);
  Status write(const Message& message);

  const Pack& pack_;
  const KnownFields& known_;
  const bool pixels_;
  OutputFile out_;
  OutputFile index_;
  std::map<std::string, Message> features_;
  uint64_t samples_ = 0;
};

Status TfRecordFile::make_features(const ExportSample& sample) {
  const Schema& schema = pack_.schema();
  const StoredSample& stored = *sample.stored;
  features_.clear();
  features_["image/filename"] = text_feature(stored.key);
  for (size_t field = 0; field < schema.fields.size(); ++field) {
    const ExportBlob& blob = sample.blobs[field];
    if (!blob.present) continue;
    if (field != known_.image) {
      features_[schema.fields[field].name] = bytes_feature(blob);
      continue;
    }
    features_["image/encoded"] = bytes_feature(blob);
    SPK_ASSIGN(const std::vector<uint8_t> head, head_of(blob, 16));
    std::string format(pixels_ ? "raw" : suffix_of_content(head));
    for (char& c : format) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    features_["image/format"] = text_feature(format == "JPG" ? "JPEG" : format);
  }
  if (known_.height != kNoField) add_numbers("image/height", stored, known_.height);
  if (known_.width != kNoField) add_numbers("image/width", stored, known_.width);
  if (known_.channels != kNoField) add_numbers("image/channels", stored, known_.channels);
  if (known_.label != kNoField) add_numbers("image/class/label", stored, known_.label);
  const auto label = single_label(schema, stored, known_.label);
  if (label && *label >= 0 && static_cast<uint64_t>(*label) < schema.classes.size()) {
    features_["image/class/text"] = text_feature(schema.classes[static_cast<size_t>(*label)]);
  }
  for (const uint16_t field : known_.numbers) {
    add_numbers(schema.fields[field].name, stored, field);
  }
  return {};
}

void TfRecordFile::add_numbers(const std::string& name, const StoredSample& stored,
                               uint16_t field) {
  const StoredField& values = stored.fields[field];
  if (!values.present) return;
  const FieldKind kind = pack_.schema().fields[field].kind;
  std::string packed;
  for (uint32_t i = 0; i < values.count; ++i) {
    const uint64_t bits = stored.numbers[values.first + i];
    if (kind == FieldKind::kInt64) {
      append_varint(packed, bits);
      continue;
    }
    // The format has 32-bit floats only.
    const float value = kind == FieldKind::kFloat32
                            ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                            : static_cast<float>(std::bit_cast<double>(bits));
    uint8_t bytes[4];
    store_le(bytes, std::bit_cast<uint32_t>(value));
    packed.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  features_[name] = list_feature(kind == FieldKind::kInt64 ? 3 : 2, packed);
}

Status TfRecordFile::write(const Message& message) {
  uint8_t length[8];
  store_le(length, message.bytes);
  SPK_TRY(out_.append(ByteSpan(length)));
  SPK_TRY(out_.append_u32(masked_crc32c(length)));
  uint32_t crc = 0;
  const auto take = [&](ByteSpan piece) {
    crc = crc32c(crc, piece);
    return out_.append(piece);
  };
  for (const Part& part : message.parts) {
    SPK_TRY(take(as_bytes(part.text)));
    if (part.blob != nullptr) SPK_TRY(part.blob->each_piece(take));
  }
  return out_.append_u32(mask_crc32c(crc));
}

class TfRecordSink : public Sink {
 public:
  TfRecordSink(const Pack& pack, std::string prefix)
      : pack_(pack),
        known_(pack.schema()),
        pixels_(holds_pixels(pack)),
        prefix_(std::move(prefix)) {}

  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    const std::string name =
        str_cat(prefix_, "-", five_digits(file.number), "-of-", five_digits(file.count));
    SPK_ASSIGN(OutputFile out, OutputFile::create(directory, name));
    SPK_ASSIGN(OutputFile index, OutputFile::create(directory, name + ".idx"));
    return std::unique_ptr<FileSink>(
        std::make_unique<TfRecordFile>(pack_, known_, pixels_, std::move(out), std::move(index)));
  }
  Result<ReadBack> read_back() const override {
    if (pixels_) return Sink::read_back();
    ReadBack how;
    how.options.source_kind = "tfrecord";
    how.options.features = "image=image/encoded,key=image/filename";
    if (known_.label != kNoField) how.options.features += ",label=image/class/label";
    const std::vector<Field>& fields = pack_.schema().fields;
    for (size_t field = 0; field < fields.size(); ++field) {
      const bool number =
          std::find(known_.numbers.begin(), known_.numbers.end(), field) != known_.numbers.end();
      // 64-bit fractions are not kept.
      const bool kept = fields[field].kind == FieldKind::kBlob
                            ? field != known_.image
                            : number && fields[field].kind != FieldKind::kFloat64;
      if (kept && is_feature_name(fields[field].name)) {
        how.options.features += "," + fields[field].name;
      }
    }
    how.has_keys = true;
    return how;
  }

 private:
  static std::string five_digits(uint64_t number) {
    const std::string digits = str_cat(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  }

  const Pack& pack_;
  const KnownFields known_;
  const bool pixels_;
  const std::string prefix_;
};

Result<std::unique_ptr<Sink>> open_tfrecord(const ExportOptions& options, const Pack& pack) {
  return std::unique_ptr<Sink>(std::make_unique<TfRecordSink>(pack, options.prefix));
}

}  // namespace

SinkKind tfrecord_sink_kind() {
  return {"tfrecord", "TFRecord shards of tf.train.Example, with indexes for DALI", open_tfrecord};
}

}  // namespace spk
