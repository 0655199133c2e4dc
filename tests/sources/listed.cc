#include "sources/listed.h"

#include "base/text.h"
#include "sources/pieces.h"

namespace spk::test {

Result<Listed> list_all(const PackOptions& options, std::shared_ptr<Spool> spool) {
  Listed listed;
  SPK_ASSIGN(const auto source, open_source(options, spool));
  SPK_ASSIGN(listed.listing, source->list(options, [&](SampleEntry&& entry) -> Status {
    listed.entries.push_back(std::move(entry));
    return {};
  }));
  SPK_ASSIGN(const auto other, open_source(options, spool));
  for (const SampleEntry& entry : listed.entries) {
    listed.payloads.emplace_back();
    if (!entry.reject.empty()) continue;
    SPK_ASSIGN(const auto handle, other->open(entry));
    SPK_ASSIGN(const auto bytes, read_all(*handle));
    listed.payloads.back() = as_text(bytes);
    // In pieces it is the same.
    std::string again;
    for (uint64_t at = 0; at < bytes.size();) {
      std::vector<uint8_t> piece(std::min<uint64_t>(bytes.size() - at, 7 + at / 3));
      SPK_TRY(handle->read_at(at, piece));
      again += as_text(piece);
      at += piece.size();
    }
    if (again != listed.payloads.back()) return internal_error("pieces differ from the whole");
  }
  return listed;
}

}  // namespace spk::test
