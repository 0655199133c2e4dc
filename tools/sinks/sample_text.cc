#include "sinks/sample_text.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "sources/names.h"
#include "sources/source_features.h"

namespace spk {

namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  std::string_view suffix;
};
constexpr std::array kSignatures = {
    Signature{"\xff\xd8\xff"sv, "jpg"}, Signature{"\x89PNG\r\n\x1a\n"sv, "png"},
    Signature{"RIFF"sv, "webp"},        Signature{"GIF8"sv, "gif"},
    Signature{"BM"sv, "bmp"},           Signature{"II*\0"sv, "tiff"},
    Signature{"MM\0*"sv, "tiff"},       Signature{"\x93NUMPY"sv, "npy"},
};

void write_number(JsonWriter& json, FieldKind kind, uint64_t bits) {
  switch (kind) {
    case FieldKind::kFloat32:
      json.value(double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
      return;
    case FieldKind::kFloat64: json.value(std::bit_cast<double>(bits)); return;
    default: json.value(static_cast<int64_t>(bits)); return;
  }
}

std::string quoted_cell(std::string_view text, char separator) {
  const char special[] = {separator, '"', '\r', '\n', 0};
  if (text.find_first_of(special) == text.npos && !text.starts_with(' ') && !text.ends_with(' ')) {
    return std::string(text);
  }
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + '"';
}

}  // namespace

KnownFields::KnownFields(const Schema& schema)
    : image(schema.find("image")),
      label(schema.find("label")),
      height(schema.find("height")),
      width(schema.find("width")),
      channels(schema.find("channels")) {
  for (size_t field = 0; field < schema.fields.size(); ++field) {
    const auto number = static_cast<uint16_t>(field);
    if (schema.fields[field].kind == FieldKind::kBlob) {
      if (image == kNoField) image = number;
      continue;
    }
    if (number == label || number == height || number == width || number == channels) continue;
    numbers.push_back(number);
  }
}

bool holds_pixels(const Pack& pack) {
  return std::any_of(pack.settings().begin(), pack.settings().end(), [](const auto& setting) {
    return setting.first == "fields" && setting.second.starts_with("image:pixels");
  });
}

Result<PixelShape> pixel_shape(const KnownFields& known, const StoredSample& sample) {
  PixelShape shape;
  const auto take = [&](uint16_t number, uint64_t* into) {
    if (number == kNoField || !sample.fields[number].present) return false;
    const StoredField& field = sample.fields[number];
    if (field.count != 1) return false;
    *into = sample.numbers[field.first];
    return true;
  };
  if (take(known.height, &shape.height) && take(known.width, &shape.width) &&
      take(known.channels, &shape.channels)) {
    return shape;
  }
  return unsupported("does not tell the height, width and channels of its pixels");
}

Status check_pixels(const PixelShape& shape, uint64_t bytes) {
  uint64_t wanted = 0;
  if (checked_mul(shape.height, shape.width, &wanted) &&
      checked_mul(wanted, shape.channels, &wanted) && wanted == bytes && wanted != 0) {
    return {};
  }
  return unsupported(str_cat("has ", bytes, " bytes, which are not its ", shape.height, " x ",
                             shape.width, " x ", shape.channels, " pixels"));
}

Result<PixelShape> uniform_shape(const Pack& pack, const KnownFields& known) {
  PixelShape first;
  for (uint64_t sample = 0; sample < pack.sample_count(); ++sample) {
    SPK_ASSIGN(const StoredSample stored, pack.sample(sample));
    SPK_ASSIGN(const PixelShape shape, pixel_shape(known, stored));
    SPK_TRY(check_pixels(shape, stored.fields[known.image].bytes));
    if (sample == 0) first = shape;
    if (shape != first) {
      return unsupported(str_cat("the pictures differ in size: ", first.height, " x ", first.width,
                                 " x ", first.channels, ", and ", shape.height, " x ", shape.width,
                                 " x ", shape.channels));
    }
  }
  return first;
}

void to_planes(ByteSpan pixels, uint64_t channels, bool reversed, MutableByteSpan planes) {
  const uint64_t area = pixels.size() / channels;
  for (uint64_t channel = 0; channel < channels; ++channel) {
    const uint64_t from = reversed ? channels - 1 - channel : channel;
    uint8_t* const plane = planes.data() + channel * area;
    for (uint64_t at = 0; at < area; ++at) plane[at] = pixels[at * channels + from];
  }
}

Result<std::string> npy_head(const KnownFields& known, const StoredSample& sample) {
  SPK_ASSIGN(const PixelShape shape, pixel_shape(known, sample));
  std::string text = str_cat("{'descr': '|u1', 'fortran_order': False, 'shape': (", shape.height,
                             ", ", shape.width, ", ", shape.channels, "), }");
  // Magic, version 1.0, length; what follows ends with a newline at a multiple of 64.
  constexpr size_t kFixedBytes = 10;
  text += std::string(63 - (kFixedBytes + text.size()) % 64, ' ') + "\n";
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

std::string_view suffix_of_content(ByteSpan head) {
  const std::string_view text = as_text(head);
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.bytes)) return signature.suffix;
  }
  return "bin";
}

std::string_view suffix_of_key(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == name.npos || dot == 0) return {};
  const std::string_view suffix = name.substr(dot + 1);
  return is_picture_name(name) ? suffix : std::string_view();
}

std::string name_part(std::string_view field) {
  std::string text;
  for (const char c : field) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '/' || c == '%' || byte < ' ' || byte == 0x7f) {
      text += str_cat('%', to_hex(byte).substr(14));
    } else {
      text += c;
    }
  }
  return text;
}

bool is_feature_name(std::string_view field) {
  return field.find_first_of(",=") == field.npos && !is_reserved_field(field);
}

std::string number_text(FieldKind kind, uint64_t bits) {
  JsonWriter json;
  write_number(json, kind, bits);
  return json.text();
}

std::string csv_cell(std::string_view text) { return quoted_cell(text, ','); }
std::string tsv_cell(std::string_view text) { return quoted_cell(text, '\t'); }

std::string sorted_number(uint64_t number, uint64_t last) {
  const std::string digits = str_cat(number);
  const size_t wanted = str_cat(last).size();
  return std::string(wanted > digits.size() ? wanted - digits.size() : 0, '0') + digits;
}

Result<std::vector<uint8_t>> head_of(const ExportBlob& blob, size_t most) {
  std::vector<uint8_t> head;
  if (!blob.stream) {
    const ByteSpan bytes = blob.data.first(std::min(most, blob.data.size()));
    head.assign(bytes.begin(), bytes.end());
    return head;
  }
  SPK_TRY(blob.stream([&](ByteSpan piece) -> Status {
    const size_t wanted = std::min(piece.size(), most - head.size());
    head.insert(head.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(wanted));
    return {};
  }));
  return head;
}

Status append_blob(const ExportBlob& blob, uint64_t most_bytes, std::vector<uint8_t>* bytes) {
  if (blob.bytes > most_bytes) {
    return unsupported(str_cat("has ", format_size(blob.bytes), "; this format takes at most ",
                               format_size(most_bytes), " a sample"));
  }
  bytes->reserve(bytes->size() + blob.bytes);
  return blob.each_piece([&](ByteSpan piece) -> Status {
    bytes->insert(bytes->end(), piece.begin(), piece.end());
    return {};
  });
}

Result<std::vector<uint8_t>> collect(const ExportBlob& blob, uint64_t most_bytes) {
  std::vector<uint8_t> bytes;
  SPK_TRY(append_blob(blob, most_bytes, &bytes));
  return bytes;
}

std::optional<int64_t> single_label(const Schema& schema, const StoredSample& sample,
                                    uint16_t label) {
  if (label == kNoField || schema.fields[label].kind != FieldKind::kInt64) return std::nullopt;
  const StoredField& field = sample.fields[label];
  if (!field.present || field.count != 1) return std::nullopt;
  return static_cast<int64_t>(sample.numbers[field.first]);
}

std::string numbers_as_json(const Schema& schema, const StoredSample& sample,
                            const std::vector<uint16_t>& fields, const std::string* key) {
  JsonWriter json;
  json.begin_object();
  bool any = false;
  if (key != nullptr) {
    // Not escaped twice, where it can be.
    if (is_valid_utf8(*key)) {
      json.member("key", *key);
    } else {
      json.member_bytes("key", *key);
    }
    any = true;
  }
  for (const uint16_t number : fields) {
    const StoredField& field = sample.fields[number];
    if (!field.present) continue;
    any = true;
    const Field& shape = schema.fields[number];
    json.key(shape.name);
    if (shape.length != 1) json.begin_array();
    for (uint32_t i = 0; i < field.count; ++i) {
      write_number(json, shape.kind, sample.numbers[field.first + i]);
    }
    if (shape.length != 1) json.end_array();
  }
  json.end_object();
  return any ? json.text() : std::string();
}

}  // namespace spk
