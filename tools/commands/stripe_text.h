// Stripe layouts in words.
#pragma once

#include <string>

#include "layout/stripe_layout.h"

namespace spk {

// "stripes of 4 MiB, 1 a file, pool flash"; of several parts: each with where it ends, after "; ".
// "not told" where the file system says nothing.
std::string stripe_text(const StripeLayout& layout);

}  // namespace spk
