// The fields that packing fills, and where each stands in a sample: the blobs, label, height,
// width, channels, then further numbers.
#pragma once

#include "format/chunk.h"
#include "format/schema.h"
#include "pipeline/plan.h"

namespace spk {

struct PackSchema {
  Schema schema;
  std::vector<SourceBlob> blobs;  // fields 0, 1, ...
  uint16_t label = kNoField;      // kNoField where the source has no labels
  uint16_t height = 0;            // of the first blob
  uint16_t width = 0;
  uint16_t channels = 0;
  uint16_t first_number = 0;  // field of Listing::numbers[0]; the others follow
};

PackSchema make_pack_schema(const PlanInfo& info);
PackIdentity make_pack_identity(const PlanInfo& info);

}  // namespace spk
