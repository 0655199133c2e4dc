// The settings of a plan: every option that shapes bytes, as resolved; and the plan's identity.
#pragma once

#include <string_view>

#include "base/hash.h"
#include "pipeline/pack_options.h"
#include "pipeline/plan.h"
#include "sources/source.h"

namespace spk {

// kAuto becomes kFull, or kNone for a split that is there to evaluate (val, valid, validation,
// test).
ShuffleMode resolved_shuffle(ShuffleMode asked, std::string_view split);

// What `bytes` of so many samples become, as far as the options tell; `bytes` without transforms.
uint64_t estimated_total_bytes(const PackOptions& options, uint64_t samples, uint64_t bytes);

// Which blob transforms are for: the first one that is a picture or pixels and no mask. The number
// of blobs where there is none.
size_t picture_to_transform(const TransformOptions& transform,
                            const std::vector<SourceBlob>& blobs);

// Says of the blob that is transformed what comes out. kInvalidArgument where transforms are asked
// for and no blob is a picture.
Status set_transformed_contents(const PackOptions& options, std::vector<SourceBlob>* blobs);

// Fills info->settings from the options, the listing, and what else of `info` is settled.
void resolve_settings(const PackOptions& options, const Listing& listing, PlanInfo* info);

// Hash of the format version, the settings, the split, the class list and the samples.
// `listing_hash` is that of ListingHash over all entries in ordinal order.
Hash128 compute_plan_id(const PlanInfo& info, const Hash128& listing_hash);

// Of what identifies the samples: keys, sizes, labels and rejections; not mtimes, nor where the
// source lies.
class ListingHash {
 public:
  void add(const SampleEntry& entry);
  Hash128 digest() const { return hash_.digest_128(); }

 private:
  void add_fields(const SampleEntry& entry);
  Xxh3Stream hash_;
  std::string scratch_;
};

}  // namespace spk
