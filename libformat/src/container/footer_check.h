// A shard's footer under examination.
#pragma once

#include <optional>
#include <vector>

#include "container/damage.h"
#include "format/footer.h"
#include "io/file.h"

namespace spk {

struct FooterCheck {
  bool usable = false;  // header and places of the parts are whole
  std::vector<uint8_t> bytes;
  FooterView view;          // into `bytes`; set where usable
  uint32_t good_parts = 0;  // bit k: the part of kind k is there and its checksum is right

  const FooterHeader& header() const noexcept { return view.header(); }
  // The part, where it is good.
  std::optional<ByteSpan> part(PartKind kind) const;
};

struct FooterPlace {
  uint64_t end = 0;                    // where the footer ends, the size of the shard
  std::optional<uint64_t> data_bytes;  // where it starts, as the index says; for want of a trailer
  uint64_t max_bytes = UINT64_MAX;     // larger ones are not loaded
};

// Finds the footer by its trailer, by what the index says, or by looking for its header; then
// checks header, trailer, padding and every part. `damages` get kind, code, offset and text. What
// can be put right in memory (trailer, padding) is, so that the footer is usable all the same.
void check_footer(const File& file, const FooterPlace& place, std::vector<Damage>& damages,
                  FooterCheck& footer);

// True where a whole trailer ends at `end`.
bool has_trailer(const File& file, uint64_t end);

}  // namespace spk
