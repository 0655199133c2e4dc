// Any bytes as JSON: refused with a place within them, or taken.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "sources/json_pick.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto value = spk::JsonValue::parse(spk::as_text({data, size}));
  if (!value.ok()) {
    if (value.status().code() != spk::Code::kDamaged || value.status().offset() > size)
      std::abort();
    return 0;
  }
  for (const char* path : {"a", "a.b", ".", "a..b", ""}) {
    const auto pick = spk::pick_json(*value, path);
    if (!pick) continue;
    spk::JsonPickType type;
    type.saw(*pick);
    if (!pick->is_text) (void)type.values(*pick);
  }
  return 0;
}
