// What every function on packs goes through.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/report.h"
#include "container/pack.h"

struct spk_pack {
  std::shared_ptr<spk::Pack> pack;
};

namespace spk {

// SPK_ENGINE_... kInvalidArgument where there is none of that number.
Result<EngineChoice> engine_choice(uint32_t engine);
// A field number as the library has it: one that is too large stays one.
uint16_t field_number(uint32_t field) noexcept;

}  // namespace spk
