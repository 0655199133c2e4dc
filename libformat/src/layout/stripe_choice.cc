#include "layout/stripe_choice.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint32_t kTargetsWhereUnknown = 8;
// Up to here what a site set up (parts by size, pools) is better than anything we know.
constexpr uint64_t kLeaveAloneBelowBytes = 512 * kGiB;
constexpr uint64_t kCephObjectBytes = uint64_t{4} << 20;  // clusters' own default

// The most stripes that a file of such a size should have (NERSC's table).
uint32_t most_stripes(uint64_t shard_bytes) {
  if (shard_bytes < kGiB) return 1;
  if (shard_bytes < 10 * kGiB) return 8;
  if (shard_bytes < 100 * kGiB) return 24;
  return 72;
}

uint64_t shard_bytes_of(const StripeQuestion& question) {
  return divide_up(std::max<uint64_t>(question.pack_bytes, 1), question.shard_count);
}

uint32_t wanted_stripes(const StripeQuestion& question, std::vector<std::string>* reasons) {
  const bool known = question.target_count != 0;
  const uint32_t targets = known ? question.target_count : kTargetsWhereUnknown;
  const std::string counted =
      known ? str_cat(count_of(targets, "target"))
            : str_cat("an unknown number of targets (taken for ", kTargetsWhereUnknown, ")");
  if (question.shard_count >= targets) {
    reasons->push_back(str_cat("one stripe a shard: ", count_of(question.shard_count, "shard"),
                               " keep ", counted, " busy"));
    return 1;
  }
  const auto even = static_cast<uint32_t>(divide_up(targets, question.shard_count));
  const uint32_t count = std::min({even, most_stripes(shard_bytes_of(question)), targets});
  reasons->push_back(str_cat(count_of(count, "stripe"),
                             " a shard: ", count_of(question.shard_count, "shard"), " for ",
                             counted, ", and at most ", most_stripes(shard_bytes_of(question)),
                             " for shards of ", format_size(shard_bytes_of(question))));
  return count;
}

bool leave_alone(const StripeQuestion& question, std::vector<std::string>* reasons) {
  const StripeLayout& directory = question.directory;
  if (directory.system == StripeSystem::kNone) {
    reasons->push_back("no stripes are known of here");
    return true;
  }
  if (directory.foreign) {
    reasons->push_back("the folder's layout is foreign; it is left alone");
    return true;
  }
  if (shard_bytes_of(question) >= kLeaveAloneBelowBytes) return false;
  if (directory.composite) {
    reasons->push_back("the folder's layout has parts of its own (PFL); it is left alone");
    return true;
  }
  if (directory.system != StripeSystem::kCeph && !directory.components.empty() &&
      !directory.components.front().pool.empty()) {
    reasons->push_back(str_cat("the folder has the pool '",
                               escape_bytes(directory.components.front().pool),
                               "'; its layout is left alone"));
    return true;
  }
  return false;
}

StripeChoice choose_ceph(const StripeQuestion& question, StripeChoice choice) {
  const uint64_t object = std::max(question.chunk_bytes, kCephObjectBytes);
  const StripeComponent* now = question.directory.at(0);
  if (now != nullptr && now->stripe_bytes == object && now->stripe_count == 1 &&
      now->object_bytes == object) {
    choice.reasons.push_back("the folder's layout is what a pack needs: objects of whole chunks");
    return choice;
  }
  choice.stripe_bytes = object;
  choice.stripe_count = 1;
  choice.object_bytes = object;
  choice.reasons.push_back(str_cat("objects of ", format_size(object),
                                   ": a chunk lies in one; Ceph spreads them by itself"));
  return choice;
}

}  // namespace

StripeChoice choose_stripes(const StripeQuestion& question) {
  StripeChoice choice;
  if (leave_alone(question, &choice.reasons)) return choice;
  if (question.directory.system == StripeSystem::kCeph) {
    return choose_ceph(question, std::move(choice));
  }
  choice.stripe_bytes = question.chunk_bytes;
  choice.reasons.push_back(
      str_cat("stripes of ", format_size(question.chunk_bytes), ": a chunk lies on one target"));
  choice.stripe_count = wanted_stripes(question, &choice.reasons);
  return choice;
}

uint32_t start_target(uint32_t shard, uint32_t stripe_count, uint32_t target_count) noexcept {
  return static_cast<uint32_t>(uint64_t{shard} * std::max<uint32_t>(stripe_count, 1) %
                               target_count);
}

}  // namespace spk
