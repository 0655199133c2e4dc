// Pictures whose channels lie one behind the other (all red, all green, all blue), given as height
// x width x channels.
#pragma once

#include <memory>

#include "sources/source.h"

namespace spk {

// PLANES gives height x width bytes for each channel. REVERSED: blue comes first, and is given
// last. A picture of one channel is as it was. Memory is bounded whatever the picture's size.
std::unique_ptr<SampleHandle> interleave_planes(std::unique_ptr<SampleHandle> planes,
                                                const PixelDimensions& pixels, bool reversed);

}  // namespace spk
