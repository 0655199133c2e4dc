// The one rule about versions and features.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace spk {

// kUnsupported where `what` ("chunk", "footer", "index") was written by a newer version or needs a
// feature that this one does not know. Call it after the checksum has been found right.
Status check_version(std::string_view what, uint32_t version, uint32_t features_incompatible);

}  // namespace spk
