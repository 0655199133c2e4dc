// A JSON writer with one fixed spelling, so that equal content gives equal bytes: members in the
// order they are written, integers in full, no locale. Reading is in base/json_value.h; the binary
// index and plan files carry everything that programs need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spk {

class JsonWriter {
 public:
  // indent 0: all on one line (JSON lines); otherwise that many blanks a level.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);  // must be UTF-8; use bytes() for anything else
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint32_t number) { return value(static_cast<uint64_t>(number)); }
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(bool flag);
  // Shortest form that reads back to the same double; null where it is not finite.
  JsonWriter& value(double number);
  JsonWriter& null();
  // Any bytes, through escape_bytes (base/text.h).
  JsonWriter& bytes(std::string_view raw);
  template <typename T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  JsonWriter& member_bytes(std::string_view name, std::string_view raw) {
    return key(name).bytes(raw);
  }

  // REQUIRES all objects and arrays closed. No newline at the end.
  const std::string& text() const { return out_; }

 private:
  void before_value();
  void newline();
  void write_string(std::string_view text);
  std::string out_;
  std::vector<bool> has_items_;
  int indent_;
  bool after_key_ = false;
};

}  // namespace spk
