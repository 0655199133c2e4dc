// The fields that packing a folder or a list of pictures fills, and where each stands in a sample.
#pragma once

#include "format/chunk.h"
#include "format/schema.h"
#include "pipeline/plan.h"

namespace spk {

struct PackSchema {
  Schema schema;
  uint16_t image = 0;
  uint16_t label = kNoField;  // kNoField where the source has no labels
  uint16_t height = 0;
  uint16_t width = 0;
  uint16_t channels = 0;
};

PackSchema make_pack_schema(const PlanInfo& info);
PackIdentity make_pack_identity(const PlanInfo& info);

}  // namespace spk
