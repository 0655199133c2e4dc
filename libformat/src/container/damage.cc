#include "container/damage.h"

namespace spk {

const char* damage_kind_name(DamageKind kind) noexcept {
  switch (kind) {
    case DamageKind::kFile: return "file";
    case DamageKind::kTrailer: return "trailer";
    case DamageKind::kFooter: return "footer";
    case DamageKind::kChunk: return "chunk";
    case DamageKind::kPadding: return "padding";
    case DamageKind::kSample: return "sample";
    case DamageKind::kIndex: return "index";
    case DamageKind::kRejects: return "rejects";
    case DamageKind::kManifest: return "manifest";
  }
  return "unknown";
}

}  // namespace spk
