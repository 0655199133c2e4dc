#include <algorithm>

#include "base/text.h"
#include "container/layout_record.h"
#include "container/pack.h"

namespace spk {

namespace {

// "5 shards (the first: shard-00002.spks)" of those that `wrong` holds for; "" where there are
// none.
template <typename Wrong>
std::string shards_that(size_t shard_count, const Wrong& wrong) {
  uint64_t count = 0;
  std::string first;
  for (size_t shard = 0; shard < shard_count; ++shard) {
    if (!wrong(shard)) continue;
    if (count == 0) first = shard_file_name(static_cast<uint32_t>(shard));
    ++count;
  }
  if (count == 0) return "";
  return count == 1 ? first : str_cat(count, " shards (the first: ", first, ")");
}

// A stripe that is no multiple of a chunk: a chunk then lies on several targets.
bool splits_chunks(const StripeLayout& layout, uint64_t chunk_bytes) {
  return std::any_of(layout.components.begin(), layout.components.end(),
                     [&](const StripeComponent& component) {
                       return component.stripe_count != 1 && component.stripe_bytes != 0 &&
                              component.stripe_bytes % chunk_bytes != 0;
                     });
}

constexpr const char* kRestripe =
    "`stripepack repack PACK NEW` stripes a new pack as it should be; on Lustre `lfs migrate -S "
    "CHUNK -c N FILE` does so in place, and `stripepack layout PACK --refresh` records it then";

}  // namespace

Result<std::vector<LayoutFinding>> check_layout(const Pack& pack,
                                                const std::vector<StripeLayout>& now,
                                                const StripeCalls& calls) {
  std::vector<LayoutFinding> findings;
  SPK_ASSIGN(const LayoutRecord record, read_layout_record(pack.directory()));
  const LayoutMap* recorded = record.current();
  const bool told = std::any_of(now.begin(), now.end(), [](const StripeLayout& layout) {
    return layout.system != StripeSystem::kNone;
  });
  if (recorded == nullptr && !told) return findings;
  if (recorded == nullptr) {
    findings.push_back({"no layout is recorded", "`stripepack layout PACK --refresh` records it"});
  } else {
    if (!recorded->refused.empty()) {
      findings.push_back(
          {str_cat("asked for ", recorded->asked, ", not given: ", recorded->refused), kRestripe});
    }
    const std::string moved =
        shards_that(std::max(now.size(), recorded->shards.size()), [&](size_t shard) {
          const StripeLayout none;
          const auto of = [&](const auto& layouts) {
            return shard < layouts.size() ? layouts[shard] : none;
          };
          return !(of(now) == of(recorded->shards));
        });
    if (!moved.empty()) {
      findings.push_back({str_cat(moved, " lie otherwise than is recorded (file system then: ",
                                  escape_bytes(recorded->file_system),
                                  ", now: ", calls.identify(pack.directory().fd()).name,
                                  "): was the pack copied?"),
                          "`stripepack layout PACK --refresh` adds how they lie now"});
    }
  }
  const uint64_t chunk_bytes = pack.identity().chunk_bytes();
  const std::string split =
      shards_that(now.size(), [&](size_t shard) { return splits_chunks(now[shard], chunk_bytes); });
  if (!split.empty()) {
    findings.push_back({str_cat(split, ": stripes divide chunks of ", format_size(chunk_bytes),
                                ", so that reading one asks several targets"),
                        kRestripe});
  }
  const std::string released =
      shards_that(now.size(), [&](size_t shard) { return now[shard].released; });
  if (!released.empty()) {
    findings.push_back({released + " released to an archive: the first read waits for it",
                        "`lfs hsm_restore FILE` fetches them"});
  }
  return findings;
}

}  // namespace spk
