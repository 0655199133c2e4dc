#include "commands/stripe_options.h"

#include <charconv>

#include "commands/options.h"

namespace spk {

namespace {

void take_count(const std::string& word, uint32_t* count) {
  if (word == "-1" || word == "all") {
    *count = kAllTargets;
    return;
  }
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *count);
  if (error != std::errc() || end != word.data() + word.size() || *count == 0 ||
      *count == kAllTargets) {
    throw CLI::ValidationError("--stripe-count",
                               "'" + word + "' is neither a whole number from 1 on nor 'all'");
  }
}

}  // namespace

void add_stripe_options(CLI::App& sub, StripeOptions* options) {
  CLI::Option* mode = add_choice_option<StripeMode>(
      sub, "--stripe", &options->mode,
      {{"auto", StripeMode::kAuto}, {"keep", StripeMode::kKeep}, {"none", StripeMode::kNone}},
      "auto (default): shards are striped as fits them; keep: as OUT's folder; none: do not look");
  add_size_option(sub, "--stripe-size", &options->stripe_bytes,
                  "Size of a stripe; default: of a chunk");
  sub.add_option_function<std::string>(
         "--stripe-count",
         [options](const std::string& word) { take_count(word, &options->stripe_count); },
         "Targets that a shard's stripes go round, or 'all'; chosen")
      ->type_name("N|all");
  sub.add_option("--pool", options->pool, "Pool of targets (Lustre, CephFS)");
  sub.final_callback([&sub, mode, options] {
    if (mode->count() == 0 || options->mode == StripeMode::kAuto || !options->asks()) return;
    throw CLI::ExcludesError(
        "--stripe keep and none go with none of --stripe-size, --stripe-count and --pool",
        CLI::ExitCodes::ExcludesError);
  });
}

}  // namespace spk
