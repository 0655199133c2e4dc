#include "format/schema.h"

#include <algorithm>

#include "base/text.h"
#include "format/table.h"

namespace spk {

uint16_t Schema::find(std::string_view name) const noexcept {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<uint16_t>(i);
  }
  return kNoField;
}

std::vector<uint8_t> encode_fields(const Schema& schema) {
  std::vector<std::string_view> names;
  std::vector<uint64_t> kinds;
  std::vector<uint64_t> lengths;
  for (const Field& field : schema.fields) {
    names.push_back(field.name);
    kinds.push_back(static_cast<uint64_t>(field.kind));
    lengths.push_back(field.length);
  }
  TableBuilder table(schema.fields.size());
  table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, names);
  table.add_unsigned(kNoField, Role::kFieldKind, kinds);
  table.add_unsigned(kNoField, Role::kFieldLength, lengths);
  return table.encode();
}

std::vector<uint8_t> encode_classes(const Schema& schema) {
  const std::vector<std::string_view> names(schema.classes.begin(), schema.classes.end());
  TableBuilder table(names.size());
  table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, names);
  return table.encode();
}

Result<Schema> decode_schema(ByteSpan fields_part, ByteSpan classes_part) {
  Schema schema;
  SPK_ASSIGN(const TableView fields, TableView::parse(fields_part));
  const uint64_t count = fields.row_count();
  if (count > kMaxFields) return damaged(str_cat("schema announces ", count, " fields"));
  SPK_ASSIGN(const StringColumn names,
             StringColumn::make(fields, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  SPK_ASSIGN(const ColumnView kinds,
             fields.require(kNoField, Role::kFieldKind, ColumnType::kUnsigned, count));
  SPK_ASSIGN(const ColumnView lengths,
             fields.require(kNoField, Role::kFieldLength, ColumnType::kUnsigned, count));
  for (uint64_t i = 0; i < count; ++i) {
    Field field;
    field.name = std::string(names[i]);
    const uint64_t kind = kinds.unsigned_at(i);
    const uint64_t length = lengths.unsigned_at(i);
    if (field.name.empty() || !is_valid_utf8(field.name) || schema.find(field.name) != kNoField) {
      return damaged(str_cat("field ", i, " has the name '", escape_bytes(field.name),
                             "', which is empty, repeated or not UTF-8"));
    }
    if (kind < static_cast<uint64_t>(FieldKind::kBlob) ||
        kind > static_cast<uint64_t>(FieldKind::kFloat64)) {
      return unsupported(str_cat("field '", field.name, "' has kind ", kind));
    }
    field.kind = static_cast<FieldKind>(kind);
    if (length > UINT32_MAX || (field.kind == FieldKind::kBlob && length != 1)) {
      return damaged(str_cat("field '", field.name, "' has length ", length));
    }
    field.length = static_cast<uint32_t>(length);
    schema.fields.push_back(std::move(field));
  }
  SPK_ASSIGN(const TableView classes, TableView::parse(classes_part));
  SPK_ASSIGN(const StringColumn class_names,
             StringColumn::make(classes, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  schema.classes.reserve(class_names.size());
  for (uint64_t i = 0; i < class_names.size(); ++i) schema.classes.emplace_back(class_names[i]);
  return schema;
}

Hash128 schema_hash(ByteSpan fields_part, ByteSpan classes_part) {
  Xxh3Stream hash;
  hash.update(fields_part);
  hash.update(classes_part);
  return hash.digest_128();
}

std::vector<uint8_t> encode_settings(const Settings& settings) {
  std::vector<std::string_view> keys;
  std::vector<std::string_view> values;
  for (const auto& [key, value] : settings) {
    keys.push_back(key);
    values.push_back(value);
  }
  TableBuilder table(settings.size());
  table.add_strings(kNoField, Role::kKeyEnd, Role::kKeyBytes, keys);
  table.add_strings(kNoField, Role::kValueEnd, Role::kValue, values);
  return table.encode();
}

Result<Settings> decode_settings(ByteSpan part) {
  SPK_ASSIGN(const TableView table, TableView::parse(part));
  SPK_ASSIGN(const StringColumn keys,
             StringColumn::make(table, kNoField, Role::kKeyEnd, Role::kKeyBytes));
  SPK_ASSIGN(const StringColumn values,
             StringColumn::make(table, kNoField, Role::kValueEnd, Role::kValue));
  Settings settings;
  settings.reserve(keys.size());
  for (uint64_t i = 0; i < keys.size(); ++i) settings.emplace_back(keys[i], values[i]);
  return settings;
}

}  // namespace spk
