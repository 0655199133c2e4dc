// Sample entries as bytes, for sorting and for the plan file. Everything but `split`, which the
// place of the record tells.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "sources/source.h"

namespace spk {

// Appends the whole entry.
void append_entry(std::string& out, const SampleEntry& entry);
// Reads one from the front of `bytes` and removes it from there; kDamaged where it is not whole.
// `entry` is overwritten except for `split`; its memory is used again.
Status take_entry(ByteSpan* bytes, SampleEntry* entry);

// The two parts of the above, for sort records whose key already is the entry's.
void append_entry_without_key(std::string& out, const SampleEntry& entry);
Status take_entry_without_key(ByteSpan* bytes, std::string_view key, SampleEntry* entry);

// Low-level pieces, shared with the header of the plan file. Numbers take seven bits a byte.
void append_varint(std::string& out, uint64_t value);
bool take_varint(ByteSpan* bytes, uint64_t* value) noexcept;
void append_string(std::string& out, std::string_view text);
// Big-endian, so that bytes sort as numbers do.
void append_be32(std::string& out, uint32_t value);
void append_be64(std::string& out, uint64_t value);
// The view points into what `bytes` points to.
bool take_string(ByteSpan* bytes, std::string_view* text) noexcept;

}  // namespace spk
