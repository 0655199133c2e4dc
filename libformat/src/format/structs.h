// The fixed-size records of the format as plain structs in host order, with encoders and decoders
// that go field by field (format_table.def is the source). Decoding checks nothing but reads only
// kBytes bytes; the meaning is checked by the files next to this one (chunk, footer, index).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/hash.h"
#include "format/constants.h"

namespace spk {

struct FieldLayout {
  size_t offset;
  size_t bytes;
};

// Fields lie in order, naturally aligned, without gap or overlap, and fill the struct.
template <size_t N>
constexpr bool fields_fill_exactly(const std::array<FieldLayout, N>& fields, size_t total) {
  size_t at = 0;
  for (const FieldLayout& field : fields) {
    if (field.offset != at || field.offset % field.bytes != 0) return false;
    at += field.bytes;
  }
  return at == total;
}

#define SPK_MEMBER(offset, type, name, meaning) type name = 0;
#define SPK_STORE(offset, type, name, meaning) store_le<type>(to + (offset), name);
#define SPK_LOAD(offset, type, name, meaning) result.name = load_le<type>(from + (offset));
#define SPK_LAYOUT(offset, type, name, meaning) FieldLayout{offset, sizeof(type)},
#define SPK_RESERVED(offset, type, name, meaning) \
  zero = zero && (std::string_view(#name).substr(0, 8) != "reserved" || name == 0);

#define SPK_STRUCT(struct_name, struct_bytes, meaning)                                        \
  struct struct_name {                                                                        \
    static constexpr size_t kBytes = struct_bytes;                                            \
    SPK_FIELDS_##struct_name(SPK_MEMBER) /* REQUIRES kBytes bytes at `to`. */                 \
        void encode(uint8_t* to) const noexcept {                                             \
      SPK_FIELDS_##struct_name(SPK_STORE)                                                     \
    }                                                                                         \
    /* REQUIRES kBytes bytes at `from`. */                                                    \
    static struct_name decode(const uint8_t* from) noexcept {                                 \
      struct_name result;                                                                     \
      SPK_FIELDS_##struct_name(SPK_LOAD) return result;                                       \
    }                                                                                         \
    bool reserved_is_zero() const noexcept {                                                  \
      bool zero = true;                                                                       \
      SPK_FIELDS_##struct_name(SPK_RESERVED) return zero;                                     \
    }                                                                                         \
  };                                                                                          \
  static_assert(                                                                              \
      fields_fill_exactly(std::to_array<FieldLayout>({SPK_FIELDS_##struct_name(SPK_LAYOUT)}), \
                          struct_bytes),                                                      \
      #struct_name " has a gap, an overlap or a misaligned field");
#include "format/format_table.def"
#undef SPK_STRUCT
#undef SPK_MEMBER
#undef SPK_STORE
#undef SPK_LOAD
#undef SPK_LAYOUT
#undef SPK_RESERVED

}  // namespace spk
