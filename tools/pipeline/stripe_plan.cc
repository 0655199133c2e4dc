#include "pipeline/stripe_plan.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

namespace {

void take_asked(const StripeOptions& options, StripePlan* plan) {
  if (options.stripe_bytes != 0) {
    plan->request.stripe_bytes = options.stripe_bytes;
    plan->request.object_bytes = 0;  // follows the stripe
    plan->reasons.push_back(
        str_cat("stripes of ", format_size(options.stripe_bytes), ": --stripe-size"));
  }
  if (options.stripe_count != 0) {
    plan->request.stripe_count = options.stripe_count;
    plan->reasons.push_back(
        options.stripe_count == kAllTargets
            ? "stripes over all targets: --stripe-count"
            : str_cat(count_of(options.stripe_count, "stripe"), " a shard: --stripe-count"));
  }
  if (!options.pool.empty()) {
    plan->request.pool = options.pool;
    plan->reasons.push_back(str_cat("pool '", escape_bytes(options.pool), "': --pool"));
  }
}

bool has_pool(const StripePlan& plan) {
  if (!plan.request.pool.empty()) return true;
  return std::any_of(plan.folder.components.begin(), plan.folder.components.end(),
                     [](const StripeComponent& component) { return !component.pool.empty(); });
}

}  // namespace

std::string StripePlan::asked() const {
  if (!request.asks()) return "the folder's own";
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  if (request.stripe_bytes != 0) add(str_cat("stripe_size=", request.stripe_bytes));
  if (request.stripe_count == kAllTargets) {
    add("stripe_count=-1");
  } else if (request.stripe_count != 0) {
    add(str_cat("stripe_count=", request.stripe_count));
  }
  if (request.object_bytes != 0) add(str_cat("object_size=", request.object_bytes));
  if (!request.pool.empty()) add("pool=" + request.pool);
  if (spreads_starts) add("start=in turn");
  return text;
}

Result<StripePlan> plan_stripes(int directory_fd, const StripeOptions& options,
                                const Geometry& geometry, uint64_t pack_bytes,
                                const StripeCalls& calls) {
  StripePlan plan;
  plan.file_system = calls.identify(directory_fd);
  if (options.mode == StripeMode::kNone) {
    plan.reasons.push_back("--stripe none: layouts are neither looked at nor set");
    return plan;
  }
  auto folder = read_stripes(directory_fd, plan.file_system, calls);
  if (folder.ok()) {
    plan.folder = std::move(folder).value();
  } else {
    plan.reasons.push_back("the folder's layout makes no sense: " + folder.status().message());
  }
  plan.target_count = count_targets(directory_fd, plan.file_system, calls);
  if (options.mode == StripeMode::kKeep) {
    plan.reasons.push_back("--stripe keep: the folder's own layout");
    return plan;
  }
  StripeQuestion question;
  question.directory = plan.folder;
  question.chunk_bytes = geometry.chunk_bytes;
  question.shard_count = geometry.shard_count;
  question.pack_bytes = pack_bytes;
  question.target_count = plan.target_count;
  StripeChoice choice = choose_stripes(question);
  plan.request.stripe_bytes = choice.stripe_bytes;
  plan.request.stripe_count = choice.stripe_count;
  plan.request.object_bytes = choice.object_bytes;
  plan.reasons.insert(plan.reasons.end(), choice.reasons.begin(), choice.reasons.end());
  if (options.asks()) take_asked(options, &plan);
  SPK_TRY(check_stripe_request(plan.folder.system, plan.request));
  // Numbers of targets within a pool are not known.
  plan.spreads_starts = plan.folder.system == StripeSystem::kLustre && plan.target_count > 1 &&
                        plan.request.asks() && plan.request.stripe_count != kAllTargets &&
                        !has_pool(plan);
  if (plan.spreads_starts) {
    plan.reasons.push_back(
        str_cat("shards begin in turn on the ", count_of(plan.target_count, "target")));
  }
  return plan;
}

Result<File> ShardFileMaker::create(const Directory& dir, const std::string& name, uint32_t shard) {
  StripeRequest request = plan_.request;
  if (plan_.spreads_starts) {
    request.start_target =
        static_cast<int32_t>(start_target(shard, request.stripe_count, plan_.target_count));
  }
  const StripeSystem system = plan_.folder.system;
  SPK_ASSIGN(StripedFile made,
             create_striped(dir, name, plan_.file_system, system, request, calls_));
  if (!made.refused.ok() && request.start_target >= 0) {
    // That target may be full, or out of service.
    SPK_TRY(made.file.close());
    SPK_TRY(dir.unlink(name));
    request.start_target = -1;
    SPK_ASSIGN(made, create_striped(dir, name, plan_.file_system, system, request, calls_));
  }
  if (!made.refused.ok()) {
    const std::lock_guard lock(mutex_);
    if (refused_.empty()) refused_ = made.refused.message();
  }
  return std::move(made.file);
}

std::string ShardFileMaker::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace spk
