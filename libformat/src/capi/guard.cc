#include "capi/guard.h"

#include "base/text.h"

namespace spk {

Result<uint16_t> field_number(const Pack& pack, uint32_t field) {
  if (field <= UINT16_MAX) return static_cast<uint16_t>(field);
  return invalid_argument(
      str_cat("field ", field, " does not exist; the pack has ", pack.schema().fields.size()));
}

Result<EngineChoice> engine_choice(uint32_t engine) {
  switch (engine) {
    case SPK_ENGINE_AUTO: return EngineChoice::kAuto;
    case SPK_ENGINE_PREAD: return EngineChoice::kPread;
    case SPK_ENGINE_POOL: return EngineChoice::kPool;
    case SPK_ENGINE_URING: return EngineChoice::kUring;
    case SPK_ENGINE_MMAP: return EngineChoice::kMmap;
    default: return invalid_argument(str_cat("there is no engine ", engine));
  }
}

}  // namespace spk
