#include "sources/picture_bytes.h"

#include "image/byte_view.h"
#include "image/formats.h"

namespace spk {

std::string picture_kind(ByteSpan head) {
  MemoryView view(head);
  const auto sniffed = image::sniff(view);
  if (!sniffed.ok()) return {};
  if (sniffed->format != PictureFormat::kUnknown) return picture_format_name(sniffed->format);
  return sniffed->reject.starts_with("unsupported format") ? "picture" : "";
}

}  // namespace spk
