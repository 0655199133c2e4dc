// Options that say how the shards of a pack are to be striped.
#pragma once

#include <CLI/App.hpp>

#include "pipeline/stripe_plan.h"

namespace spk {

// --stripe, --stripe-size, --stripe-count and --pool. Wrong ones are CLI11's errors.
void add_stripe_options(CLI::App& sub, StripeOptions* options);

}  // namespace spk
