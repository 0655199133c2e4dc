// What several sinks make of a sample: file suffixes, labels, numbers as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sinks/sink.h"

namespace spk {

// Where the fields that have a meaning of their own stand in a schema; kNoField where there is
// none.
struct KnownFields {
  explicit KnownFields(const Schema& schema);
  uint16_t image = kNoField;  // "image", or else the first field of bytes
  uint16_t label = kNoField;
  uint16_t height = kNoField;
  uint16_t width = kNoField;
  uint16_t channels = kNoField;
  // Numeric fields but for these.
  std::vector<uint16_t> numbers;
};

// Whether `image` holds pixels instead of encoded pictures, as pack's plan record says.
bool holds_pixels(const Pack& pack);

// What a NumPy array file has before a sample's pixels. kUnsupported where the sample does not tell
// its dimensions.
Result<std::string> npy_head(const KnownFields& known, const StoredSample& sample);
// The dimensions themselves.
struct PixelShape {
  uint64_t height = 0;
  uint64_t width = 0;
  uint64_t channels = 0;
  bool operator==(const PixelShape&) const = default;
};
Result<PixelShape> pixel_shape(const KnownFields& known, const StoredSample& sample);
// kUnsupported where BYTES are not so many.
Status check_pixels(const PixelShape& shape, uint64_t bytes);
// That of all samples of a pack of pixels; kUnsupported where they differ.
Result<PixelShape> uniform_shape(const Pack& pack, const KnownFields& known);
// Height x width x channels to a plane for each channel; REVERSED: the last one first.
void to_planes(ByteSpan pixels, uint64_t channels, bool reversed, MutableByteSpan planes);

// "jpg", "png" ... by the first bytes; "bin" where they tell nothing.
std::string_view suffix_of_content(ByteSpan head);
// "JPEG" of "a/b.JPEG": the key's own suffix, where it is one that pictures have; else empty.
std::string_view suffix_of_key(std::string_view key);
// A field's name as part of a file's name: '/', '%' and control characters become %hh.
std::string name_part(std::string_view field);
// Whether --features can name it.
bool is_feature_name(std::string_view field);
// NUMBER with as many digits as LAST has, so that names sort as their numbers do.
std::string sorted_number(uint64_t number, uint64_t last);
// The first bytes of a blob.
Result<std::vector<uint8_t>> head_of(const ExportBlob& blob, size_t most);
// All of it, behind what BYTES has; kUnsupported where the blob has more than MOST_BYTES.
Status append_blob(const ExportBlob& blob, uint64_t most_bytes, std::vector<uint8_t>* bytes);
// By itself.
Result<std::vector<uint8_t>> collect(const ExportBlob& blob, uint64_t most_bytes);

// The one integer label; nothing where there is none, or several, or fractions.
std::optional<int64_t> single_label(const Schema& schema, const StoredSample& sample,
                                    uint16_t label);
// {"label": [1, 2], "box": [0.5, 1]}: the given numeric fields that are present; a field of length
// 1 without brackets. With `key` not null also {"key": ...}. Empty where there would be nothing.
std::string numbers_as_json(const Schema& schema, const StoredSample& sample,
                            const std::vector<uint16_t>& fields, const std::string* key);

// A number of a numeric field, in the shortest form that reads back to the same.
std::string number_text(FieldKind kind, uint64_t bits);
// A cell of a table, quoted as RFC 4180 has it where need be.
std::string csv_cell(std::string_view text);
std::string tsv_cell(std::string_view text);

}  // namespace spk
