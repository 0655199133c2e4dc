#include "commands/sample_facts.h"

#include <bit>
#include <charconv>

#include "base/text.h"

namespace spk {

uint16_t main_blob_field(const Schema& schema) {
  const auto is_blob = [&](size_t i) { return schema.fields[i].kind == FieldKind::kBlob; };
  const uint16_t image = schema.find("image");
  if (image != kNoField && is_blob(image)) return image;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    if (is_blob(i)) return static_cast<uint16_t>(i);
  }
  return kNoField;
}

Result<uint16_t> find_blob_field(const Schema& schema, const std::string& name) {
  const uint16_t field = name.empty() ? main_blob_field(schema) : schema.find(name);
  if (field != kNoField && schema.fields[field].kind == FieldKind::kBlob) return field;
  std::string blobs;
  for (const Field& other : schema.fields) {
    if (other.kind == FieldKind::kBlob) blobs += str_cat(blobs.empty() ? "" : ", ", other.name);
  }
  if (blobs.empty()) return invalid_argument("no field of this pack holds bytes");
  const char* what = field == kNoField ? "there is no field '" : "bytes are not what is in field '";
  return invalid_argument(str_cat("--field: ", what, escape_bytes(name), "'"))
      .with_hint(str_cat("fields that hold bytes: ", escape_bytes(blobs)));
}

double stored_float(FieldKind kind, uint64_t bits) {
  if (kind == FieldKind::kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

FactReader::FactReader(const Pack& pack) : pack_(pack) {
  const Schema& schema = pack.schema();
  blob_ = main_blob_field(schema);
  const auto numeric = [&](const char* name) {
    const uint16_t field = schema.find(name);
    const bool wrong = field != kNoField && schema.fields[field].kind == FieldKind::kBlob;
    return wrong ? kNoField : field;
  };
  label_ = numeric("label");
  width_ = numeric("width");
  height_ = numeric("height");
  channels_ = numeric("channels");
  labels_are_ints_ = label_ != kNoField && schema.fields[label_].kind == FieldKind::kInt64;
}

std::optional<int64_t> FactReader::first_int(const StoredSample& stored, uint16_t field) const {
  if (field == kNoField || pack_.schema().fields[field].kind != FieldKind::kInt64) return {};
  const StoredField& value = stored.fields[field];
  if (!value.present || value.count == 0) return {};
  return static_cast<int64_t>(stored.numbers[value.first]);
}

Result<SampleFacts> FactReader::read(uint64_t sample) const {
  SPK_ASSIGN(StoredSample stored, pack_.sample(sample));
  SampleFacts facts;
  facts.sample = sample;
  facts.ordinal = stored.ordinal;
  facts.key = std::move(stored.key);
  facts.width = first_int(stored, width_);
  facts.height = first_int(stored, height_);
  facts.channels = first_int(stored, channels_);
  if (blob_ != kNoField && stored.fields[blob_].present) {
    facts.bytes = stored.fields[blob_].bytes;
    facts.checksum = stored.fields[blob_].checksum;
  }
  if (label_ == kNoField || !stored.fields[label_].present) return facts;
  const StoredField& label = stored.fields[label_];
  for (uint32_t i = label.first; i < label.first + label.count; ++i) {
    if (labels_are_ints_) {
      facts.int_labels.push_back(static_cast<int64_t>(stored.numbers[i]));
    } else {
      facts.float_labels.push_back(
          stored_float(pack_.schema().fields[label_].kind, stored.numbers[i]));
    }
  }
  return facts;
}

const std::string* FactReader::class_name(const SampleFacts& facts) const {
  const auto& classes = pack_.schema().classes;
  if (facts.int_labels.size() != 1) return nullptr;
  const int64_t label = facts.int_labels.front();
  if (label < 0 || static_cast<uint64_t>(label) >= classes.size()) return nullptr;
  return &classes[static_cast<size_t>(label)];
}

std::string labels_text(const SampleFacts& facts) {
  std::string text;
  for (const int64_t label : facts.int_labels) text += str_cat(text.empty() ? "" : ",", label);
  for (const double label : facts.float_labels) {
    char digits[32];
    const char* end = std::to_chars(digits, digits + sizeof digits, label).ptr;
    text += str_cat(text.empty() ? "" : ",", std::string_view(digits, end));
  }
  return text;
}

std::string dimensions_text(const SampleFacts& facts) {
  if (!facts.width || !facts.height) return {};
  const std::string plane = str_cat(*facts.width, 'x', *facts.height);
  return facts.channels ? str_cat(plane, 'x', *facts.channels) : plane;
}

}  // namespace spk
