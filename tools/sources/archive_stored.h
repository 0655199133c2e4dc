// Internal to ArchiveGroups: what its sorters hold.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sources/archive_groups.h"

namespace spk {

// A member, without its key and field, which the sort key tells.
struct ArchiveGroups::Stored {
  uint64_t place = 0;  // among all members
  int64_t mtime_ns = kUnknownMtime;
  Piece piece;
  std::string reject;
  std::string text;  // of a label; or what was picked out of JSON, see json_picks()

  // Of the sort key.
  uint32_t archive = 0;
  std::string field;  // in small letters
  std::string name;

  void encode(std::string* payload) const;
  Status decode(ByteSpan payload);
  std::optional<JsonPick> pick(size_t index) const;
  bool is_json_bad() const { return text == "!"; }
};

struct ArchiveGroups::Group {
  uint32_t archive = 0;
  std::string key;
  std::vector<Stored> members;
  uint64_t more = 0;  // members that are not held
};

void encode_sample(const SampleEntry& entry, std::string* payload);
Status decode_sample(ByteSpan payload, SampleEntry* entry);

}  // namespace spk
