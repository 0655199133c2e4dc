#include "commands/order.h"

#include <utility>

#include "base/text.h"
#include "commands/options.h"
#include "commands/order_balance.h"
#include "commands/order_quality.h"
#include "commands/order_samples.h"
#include "layout/geometry.h"
#include "layout/steps.h"
#include "loader/target_map.h"
#include "ui/signals.h"

namespace spk {

namespace {

constexpr uint64_t kUnset = UINT64_MAX;

class OrderCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("order", "Print the order of an epoch, or simulate and judge it");
    auto* pack = sub_->add_option("PACK", path_, "A pack");
    auto* units = sub_->add_option("--units", units_path_,
                                   "In place of PACK: a file with the samples of each chunk, one "
                                   "number a line");
    sub_->add_option("--targets", targets_path_,
                     "A file with the storage target of each chunk, one number a line");
    pack->excludes(units);
    add_order_options();
    add_count_option(*sub_, "--world", &world_, "Ranks", 1, UINT32_MAX);
    add_count_option(*sub_, "--rank", &rank_, "The rank whose samples are printed", 0, UINT32_MAX);
    add_count_option(*sub_, "--batch", &batch_, "Samples of a rank in a step; default 32", 1,
                     UINT32_MAX);
    add_choice_option<TailRule>(
        *sub_, "--tail", &tail_,
        {{"drop", TailRule::kDrop}, {"pad", TailRule::kPad}, {"exact", TailRule::kExact}},
        "What becomes of a last step that is short; default exact");
    add_count_option(*sub_, "--consumed", &consumed_,
                     "Go on where all ranks together have consumed so many samples");
    quality_option_ =
        sub_->add_flag("--quality", quality_, "Tell how well the order shuffles, not the samples");
    add_count_option(*sub_, "--sorted-classes", &sorted_classes_,
                     "With --quality: judge a storage sorted by so many classes of equal size, not "
                     "the pack's labels",
                     2, UINT32_MAX)
        ->needs(quality_option_);
    add_simulation_options();
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    const Status status = simulate_ ? simulate(ui) : with_order(ui);
    return status.ok() ? kExitDone : ui.fail(status);
  }

 private:
  void add_order_options() {
    add_choice_option<OrderKind>(*sub_, "--order", &settings_.kind,
                                 {{"shuffled", OrderKind::kShuffled},
                                  {"sequential", OrderKind::kSequential},
                                  {"random", OrderKind::kRandom}},
                                 "What kind of order; default shuffled");
    add_count_option(*sub_, "--seed", &settings_.seed, "Seed of all that is random; default 0");
    add_count_option(*sub_, "--epoch", &settings_.epoch, "Epoch, from 0; default 0");
    add_count_option(*sub_, "--lanes", &lanes_, "Lanes; default: chosen from --world", 1,
                     kMaxLanes);
    add_count_option(*sub_, "--window", &window_,
                     "Chunks of a lane that are mixed at a time; default: chosen from --world", 1,
                     kMaxWindow);
  }

  void add_simulation_options() {
    auto* simulate = sub_->add_flag("--simulate", simulate_,
                                    "Simulate the load on storage targets for sizes from --sizes");
    const auto with_simulate = [&](CLI::Option* option) { option->needs(simulate); };
    with_simulate(sub_->add_option("--sizes", sizes_path_,
                                   "A file with the size of each sample in bytes, one a line"));
    with_simulate(add_choice_option<bool>(*sub_, "--layout", &random_start_,
                                          {{"round-robin", false}, {"random-start", true}},
                                          "How chunks lie on targets; default round-robin"));
    // --targets is the number of targets here.
    with_simulate(add_count_option(*sub_, "--chunks-per-lane", &balance_.chunks_per_lane,
                                   "Length of the epoch; default 48", 1, 1u << 26));
    with_simulate(add_size_option(*sub_, "--chunk-size", &balance_.chunk_bytes,
                                  "Size of a chunk; default 4MiB"));
    with_simulate(add_count_option(*sub_, "--stripe-count", &balance_.stripe_count,
                                   "Stripes of a shard, with --layout random-start; default 4", 1,
                                   kMaxTargets));
    with_simulate(add_count_option(*sub_, "--shards", &balance_.random_shards,
                                   "Shards, with --layout random-start; default 64", 1, 1u << 20));
    simulate->excludes(quality_option_)->excludes("PACK")->excludes("--units");
  }

  // Defaults by the number of ranks, for what was not typed.
  OrderSettings resolved() const {
    OrderSettings settings = default_order(settings_.kind, world_);
    settings.seed = settings_.seed;
    settings.epoch = settings_.epoch;
    if (lanes_ != kUnset) settings.lanes = static_cast<uint32_t>(lanes_);
    if (window_ != kUnset) settings.window = static_cast<uint32_t>(window_);
    return settings;
  }

  Status with_order(Ui& ui) {
    std::shared_ptr<Pack> pack;
    std::vector<uint64_t> first_samples;
    if (!units_path_.empty()) {
      SPK_ASSIGN(const std::vector<uint64_t> counts,
                 read_numbers(units_path_, 1, kMaxSamplesPerShard));
      SPK_ASSIGN(first_samples, first_samples_of(counts));
    } else if (!path_.empty()) {
      SPK_ASSIGN(pack, Pack::open(path_));
      SPK_ASSIGN(first_samples, first_samples_of(*pack));
    } else {
      return invalid_argument("whose order?")
          .with_hint("name a PACK, or give --units or --simulate");
    }
    std::vector<uint32_t> targets;
    if (!targets_path_.empty()) {
      SPK_ASSIGN(const std::vector<uint64_t> numbers,
                 read_numbers(targets_path_, 0, kMaxTargets - 1));
      targets.assign(numbers.begin(), numbers.end());
      if (targets.empty() && first_samples.size() > 1) {
        return invalid_argument("there is no target in it").at_path(targets_path_);
      }
    } else if (pack && settings_.kind == OrderKind::kShuffled) {
      SPK_ASSIGN(targets, current_targets(*pack));  // as loaders do
    }
    const OrderUnits units{first_samples, targets};
    return quality_ ? judge(units, pack.get(), ui) : list(units, ui);
  }

  // --- The samples of a rank

  Status list(const OrderUnits& units, Ui& ui) const {
    SPK_ASSIGN(EpochOrder order, EpochOrder::make(units, resolved()));
    const StepRules rules{.sample_count = order.sample_count(),
                          .lanes = order.lanes(),
                          .rank = rank_,
                          .world = world_,
                          .batch = batch_,
                          .tail = tail_};
    SPK_TRY(rules.check());
    if (consumed_ > order.sample_count()) {
      return invalid_argument(str_cat("--consumed ", consumed_, ": an epoch has only ",
                                      count_of(order.sample_count(), "sample")));
    }
    if (ui.json_mode()) print_head(order, rules, ui);
    PositionReader reader(order);
    std::vector<uint64_t> positions;
    uint64_t consumed = consumed_;
    for (uint64_t left = rules.steps_from(consumed_); left > 0; --left) {
      if (cancel_flag()) return cancel_status();
      rules.positions(consumed, positions);
      consumed = rules.consumed_after(consumed, 1);
      for (uint64_t& position : positions) {
        position = reader.sample_at(rules.sample_position(position));
      }
      if (!print_step(positions, consumed, ui)) return {};
    }
    return {};
  }

  static void print_head(const EpochOrder& order, const StepRules& rules, Ui& ui) {
    const OrderSettings& settings = order.settings();
    JsonWriter json = json_line("order");
    json.member("order", order_kind_name(settings.kind)).member("order_version", kOrderVersion);
    json.member("seed", settings.seed).member("epoch", settings.epoch);
    json.member("lanes", settings.lanes).member("window", settings.window);
    json.member("map", to_hex(target_map_digest(order.units().targets)));
    json.member("world", rules.world).member("rank", rules.rank).member("batch", rules.batch);
    json.member("tail", tail_rule_name(rules.tail)).member("samples", order.sample_count());
    (void)ui.json(json.end_object());
  }

  // False once nobody reads any more.
  static bool print_step(const std::vector<uint64_t>& samples, uint64_t consumed, Ui& ui) {
    if (ui.json_mode()) {
      JsonWriter json = json_line("step");
      json.member("consumed", consumed).key("samples").begin_array();
      for (const uint64_t sample : samples) json.value(sample);
      json.end_array();
      return ui.json(json.end_object());
    }
    for (const uint64_t sample : samples) {
      if (!ui.out(str_cat(sample))) return false;
    }
    return true;
  }

  // --- How well it shuffles

  Status judge(const OrderUnits& units, const Pack* pack, Ui& ui) const {
    const OrderSettings settings = resolved();
    const StepRules rules{.world = world_, .batch = batch_};
    SPK_TRY(rules.check());
    const uint64_t global_batch = rules.step_samples();
    SPK_ASSIGN(const std::optional<double> again, pairs_again(units, settings, global_batch));
    std::optional<std::vector<int64_t>> labels;
    if (sorted_classes_ > 0) {
      labels.emplace(units.sample_count());
      for (uint64_t i = 0; i < labels->size(); ++i) {
        (*labels)[i] = static_cast<int64_t>(static_cast<unsigned __int128>(i) * sorted_classes_ /
                                            units.sample_count());
      }
    } else if (pack != nullptr) {
      SPK_ASSIGN(labels, sample_labels(*pack));
    }
    std::optional<ClassSpread> spread;
    ClassMix mix;
    if (labels) {
      SPK_ASSIGN(spread, class_spread(units, settings, global_batch, *labels));
      mix = class_mix_of(units, *labels);
    }
    const bool shuffled = settings.kind == OrderKind::kShuffled;
    const double estimate =
        class_variance_estimate(mix.correlation(), global_batch, settings.lanes, settings.window);
    if (ui.json_mode()) {
      JsonWriter json = json_line("quality");
      json.member("lanes", settings.lanes).member("window", settings.window);
      json.member("global_batch", global_batch);
      if (again) json.member("pairs_again", *again);
      if (spread) {
        json.member("class_variance", spread->variance);
        if (shuffled) json.member("class_variance_estimate", estimate);
        json.member("classes_per_batch", spread->classes_per_batch);
        json.member("classes_per_batch_shuffled", spread->classes_per_batch_shuffled);
        json.member("class_correlation", mix.correlation()).member("sorted", mix.is_sorted());
      }
      (void)ui.json(json.end_object());
      return {};
    }
    (void)ui.out(str_cat("lanes ", settings.lanes, ", window ", settings.window,
                         ", samples of all ranks in a step ", global_batch));
    const auto none = [](std::string_view why) { return str_cat("- (", why, ")"); };
    (void)ui.out(str_cat("pairs again, x full shuffle     ",
                         again ? format_fixed(*again, 2) : none("too few batches")));
    (void)ui.out(str_cat("class variance, x full shuffle  ",
                         spread ? format_fixed(spread->variance, 2) : none("no classes")));
    if (!spread) return {};
    (void)ui.out(
        str_cat("classes in a batch              ", format_fixed(spread->classes_per_batch, 1),
                " (full shuffle: ", format_fixed(spread->classes_per_batch_shuffled, 1), ")"));
    if (mix.is_sorted() && shuffled) {
      (void)ui.out(sorted_storage_text(estimate));
    }
    return {};
  }

  // --- The load on targets

  Status simulate(Ui& ui) {
    if (sizes_path_.empty() || targets_path_.empty()) {
      return invalid_argument("--simulate needs --sizes FILE and --targets N");
    }
    const Result<uint64_t> targets = parse_size(targets_path_);
    if (!targets.ok() || *targets == 0 || *targets > kMaxTargets) {
      return invalid_argument(str_cat("--targets: with --simulate a number from 1 to ", kMaxTargets,
                                      ", not '", escape_bytes(targets_path_), "'"));
    }
    SPK_ASSIGN(const std::vector<uint64_t> sizes, read_numbers(sizes_path_, 0, UINT64_MAX));
    balance_.targets = *targets;
    balance_.lanes = lanes_ == kUnset ? 64 : lanes_;
    balance_.window = window_ == kUnset ? 1 : window_;
    balance_.seed = settings_.seed;
    if (!random_start_) {
      if (sub_->count("--shards") + sub_->count("--stripe-count") > 0) {
        return invalid_argument("--shards and --stripe-count go with --layout random-start");
      }
      balance_.random_shards = 0;
    }
    SPK_ASSIGN(const Balance found, simulate_balance(sizes, balance_));
    if (ui.json_mode()) {
      JsonWriter json = json_line("simulation");
      json.member("lanes", balance_.lanes).member("window", balance_.window);
      json.member("targets", balance_.targets).member("chunks", found.chunks);
      json.member("samples", found.samples).member("slots", found.slots);
      json.member("balanced", found.balanced.mean).member("plain", found.plain.mean);
      json.member("ideal", found.ideal).member("balanced_worst", found.balanced.worst);
      json.member("plain_worst", found.plain.worst);
      (void)ui.json(json.end_object());
      return {};
    }
    (void)ui.out("heaviest target / mean of targets: mean over time, worst moment");
    const auto line = [&](std::string_view name, const TargetLoad& load) {
      (void)ui.out(str_cat(name, format_fixed(load.mean, 3), "  ", format_fixed(load.worst, 3)));
    };
    line("balanced  ", found.balanced);
    line("plain     ", found.plain);
    (void)ui.out(str_cat("ideal     ", format_fixed(found.ideal, 3)));
    return {};
  }

  CLI::App* sub_ = nullptr;
  CLI::Option* quality_option_ = nullptr;
  std::string path_;
  std::string units_path_;
  std::string targets_path_;  // with --simulate: a number
  std::string sizes_path_;
  OrderSettings settings_;  // kind, seed, epoch
  uint64_t lanes_ = kUnset;
  uint64_t window_ = kUnset;
  uint64_t world_ = 1;
  uint64_t rank_ = 0;
  uint64_t batch_ = 32;
  uint64_t consumed_ = 0;
  uint64_t sorted_classes_ = 0;
  TailRule tail_ = TailRule::kExact;
  bool quality_ = false;
  bool simulate_ = false;
  bool random_start_ = false;
  BalanceSettings balance_{.random_shards = 64, .stripe_count = 4};
};

}  // namespace

std::unique_ptr<Command> make_order_command() { return std::make_unique<OrderCommand>(); }

}  // namespace spk
