// For fuzz targets of sources: bytes as the one file of a source.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "io/file.h"
#include "sources/pieces.h"
#include "sources/source.h"
#include "sources/source_kind.h"

namespace spk {

inline void list_and_read_path(const char* kind, const char* features, bool salvage,
                               const std::string& path) {
  PackOptions options;
  options.source = path;
  options.source_kind = kind;
  options.features = features;
  options.salvage = salvage;
  options.memory_bytes = uint64_t{16} << 20;
  const std::shared_ptr<Spool> spool = Spool::make_temporary();
  auto source = open_source(options, spool);
  if (!source.ok()) return;
  uint64_t ordinal = 0;
  const auto listing = (*source)->list(options, [&](SampleEntry&& entry) -> Status {
    if (entry.ordinal != ordinal++) std::abort();
    if (!entry.reject.empty()) return {};
    uint64_t sum = 0;
    for (const uint64_t blob : entry.blob_bytes) sum += blob == kAbsentBlob ? 0 : blob;
    if (!entry.blob_bytes.empty() && sum != entry.size_bytes) std::abort();
    const auto handle = (*source)->open(entry);
    if (!handle.ok()) return {};  // spooled, and not there before the end
    if ((*handle)->size_bytes() != entry.size_bytes) std::abort();
    uint8_t piece[4096];
    const auto now = std::min<uint64_t>(sizeof piece, entry.size_bytes);
    (void)(*handle)->read_at(entry.size_bytes - now, MutableByteSpan(piece).first(now));
    return {};
  });
  if (listing.ok() && !listing->ordered) std::abort();
}

inline void list_and_read(const char* kind, const char* features, bool salvage, ByteSpan bytes) {
  const auto file = File::create_in_memory("input");
  if (!file.ok() || !file->write_all(0, bytes).ok()) std::abort();
  list_and_read_path(kind, features, salvage, "/proc/self/fd/" + std::to_string(file->fd()));
}

}  // namespace spk
