#include "capi/guard.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

uint16_t field_number(uint32_t field) noexcept {
  return static_cast<uint16_t>(std::min<uint32_t>(field, kNoField));
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
