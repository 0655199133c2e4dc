// Sample entries as bytes, for sorting and for the plan file. Everything but `split`, which the
// place of the record tells.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/varint.h"
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

}  // namespace spk
