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
// A field number as the library has it, which knows no larger ones. kInvalidArgument for those, so
// that none becomes another field's.
Result<uint16_t> field_number(const Pack& pack, uint32_t field);

}  // namespace spk
