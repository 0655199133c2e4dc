// Numbers and texts in few bytes, for records that only this program reads again. Numbers take
// seven bits a byte, the low ones first; texts their length and their bytes.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace spk {

void append_varint(std::string& out, uint64_t value);
void append_string(std::string& out, std::string_view text);
// Big-endian, so that bytes sort as numbers do.
void append_be32(std::string& out, uint32_t value);
void append_be64(std::string& out, uint64_t value);

// Each takes from the front of `bytes`; false, and nothing taken, where it is not whole.
bool take_varint(ByteSpan* bytes, uint64_t* value) noexcept;
// The view points into what `bytes` points to.
bool take_string(ByteSpan* bytes, std::string_view* text) noexcept;

}  // namespace spk
