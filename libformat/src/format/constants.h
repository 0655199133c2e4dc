// The format's frozen numbers, made from format_table.def.
#pragma once

#include <cstdint>

namespace spk {

#define SPK_CONST(type, name, value, meaning) inline constexpr type name = value;
#include "format/format_table.def"
#undef SPK_CONST

enum class ColumnType : uint8_t {
#define SPK_ENUM(group, name, value, meaning) SPK_ENUM_##group(name, value)
#define SPK_ENUM_ColumnType(name, value) name = value,
#define SPK_ENUM_Role(name, value)
#define SPK_ENUM_FieldKind(name, value)
#define SPK_ENUM_PartKind(name, value)
#define SPK_ENUM_ColumnFlag(name, value)
#include "format/format_table.def"
};
#undef SPK_ENUM_ColumnType
#define SPK_ENUM_ColumnType(name, value)

enum class Role : uint16_t {
#undef SPK_ENUM_Role
#define SPK_ENUM_Role(name, value) name = value,
#include "format/format_table.def"
};
#undef SPK_ENUM_Role
#define SPK_ENUM_Role(name, value)

enum class FieldKind : uint8_t {
#undef SPK_ENUM_FieldKind
#define SPK_ENUM_FieldKind(name, value) name = value,
#include "format/format_table.def"
};
#undef SPK_ENUM_FieldKind
#define SPK_ENUM_FieldKind(name, value)

enum class PartKind : uint32_t {
#undef SPK_ENUM_PartKind
#define SPK_ENUM_PartKind(name, value) name = value,
#include "format/format_table.def"
};
#undef SPK_ENUM_PartKind
#define SPK_ENUM_PartKind(name, value)

enum class ColumnFlag : uint8_t {
#undef SPK_ENUM_ColumnFlag
#define SPK_ENUM_ColumnFlag(name, value) name = value,
#include "format/format_table.def"
};
#undef SPK_ENUM_ColumnFlag
#undef SPK_ENUM_ColumnType
#undef SPK_ENUM_Role
#undef SPK_ENUM_FieldKind
#undef SPK_ENUM_PartKind
#undef SPK_ENUM

}  // namespace spk
