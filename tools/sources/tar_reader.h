// Members of a tar archive by their places: v7, ustar, GNU and PAX. Nothing but headers is read.
//
// Every header's checksum is verified. An archive must end with its two blocks of zeros and nothing
// but zeros behind them: without, it looks as one does that was cut between two members, and what
// follows may be another archive whose members tar would not see.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sources/forward_reader.h"

namespace spk {

struct TarMember {
  enum class Kind { kFile, kFolder, kHardLink, kSymlink, kOther };
  Kind kind = Kind::kFile;
  std::string name;  // as stored
  std::string link;  // of links: where to
  uint64_t header_offset = 0;
  uint64_t offset = 0;  // of the contents
  uint64_t bytes = 0;
};

class TarReader {
 public:
  // READER outlives this.
  explicit TarReader(ForwardReader* reader) : reader_(*reader) {}

  // False at the end. kDamaged, with the offset, where the archive breaks its form or is cut; then
  // truncated() tells whether the latter. kUnsupported for sparse members.
  Result<bool> next(TarMember* member);
  bool truncated() const noexcept { return truncated_; }
  // And whether the member given last is not whole.
  bool last_is_cut() const noexcept { return last_is_cut_; }

  static constexpr size_t kBlockBytes = 512;
  // Whether a file may begin so: with a header whose checksum is right, or with an end.
  static bool is_tar(ByteSpan head);

 private:
  struct Overrides;
  Status bad(std::string what, uint64_t offset) const;
  Status cut();
  Result<bool> take_end();
  Result<std::string> read_text(uint64_t offset, uint64_t bytes);
  Status take_pax(uint64_t offset, uint64_t bytes, Overrides* overrides);
  Status take_member(const std::string& header, Overrides* overrides, TarMember* member);

  ForwardReader& reader_;
  uint64_t at_ = 0;            // of the next header
  uint64_t contents_end_ = 0;  // of the last member
  bool truncated_ = false;
  bool last_is_cut_ = false;
};

}  // namespace spk
