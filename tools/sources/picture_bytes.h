// Whether bytes begin as a picture does: for sources that hold pictures among other things.
#pragma once

#include <string>

#include "base/bytes.h"

namespace spk {

constexpr size_t kPictureHeadBytes = 64;  // enough to tell

// "jpeg", "png" ...; "picture" for formats that this program knows but does not take; empty where
// it is no picture.
std::string picture_kind(ByteSpan head);

}  // namespace spk
