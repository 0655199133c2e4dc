// Where a run stands: what a checkpoint holds (docs/ORDER.md, section 7).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"
#include "layout/order.h"

namespace spk {

struct LoaderState {
  Hash128 content_id;
  uint64_t map_digest = 0;
  OrderSettings order;
  uint64_t consumed = 0;  // samples that the whole world has been given in this epoch

  // One line of ASCII, without a newline.
  std::string to_text() const;
  // kInvalidArgument where it is no state, kUnsupported where a newer stripepack wrote it.
  static Result<LoaderState> parse(std::string_view text);
};

}  // namespace spk
