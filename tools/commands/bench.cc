#include "commands/bench.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "commands/bench_run.h"
#include "commands/options.h"
#include "commands/order_quality.h"
#include "commands/order_samples.h"
#include "loader/target_map.h"
#include "ui/cpus.h"

namespace spk {

namespace {

constexpr uint64_t kMostRanks = uint64_t{1} << 20;
constexpr uint64_t kMostThreads = 1024;  // ranks of one process

// Names as --engine has them.
const std::vector<std::pair<std::string, EngineChoice>>& engine_names() {
  static const std::vector<std::pair<std::string, EngineChoice>> names = {
      {"auto", EngineChoice::kAuto},
      {"pool", EngineChoice::kPool},
      {"uring", EngineChoice::kUring},
      {"mmap", EngineChoice::kMmap}};
  return names;
}

std::string milliseconds(double seconds) { return str_cat(format_fixed(seconds * 1e3, 2), " ms"); }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

struct Quality {
  std::optional<double> pairs_again;
  std::optional<ClassSpread> spread;
  ClassMix mix;
  double variance_estimate = 1;
};

class BenchCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("bench", "Read epochs as trainers would, and take the time");
    sub_->add_option("PACK", path_, "A pack")->required();
    sub_->add_option("--cache", cache_, "Read the shards that are there from DIR, as stage made it")
        ->type_name("DIR");
    LoaderOptions& loader = settings_.loader;
    ranks_option_ =
        add_count_option(*sub_, "--ranks", &loader.world,
                         "Ranks, each a thread; default 1, under MPI one a process", 1, kMostRanks);
    add_count_option(*sub_, "--batch", &loader.batch, "Samples of a rank in a step; default 32", 1,
                     UINT32_MAX);
    add_count_option(*sub_, "--epochs", &epochs_, "How many are read; default 1", 1, UINT32_MAX);
    add_count_option(*sub_, "--epoch", &loader.epoch, "The first one; default 0");
    add_choice_option<OrderKind>(*sub_, "--epoch-order", &loader.order,
                                 {{"shuffled", OrderKind::kShuffled},
                                  {"sequential", OrderKind::kSequential},
                                  {"random", OrderKind::kRandom}},
                                 "What kind of order; default shuffled");
    add_count_option(*sub_, "--seed", &loader.seed, "Seed of the order; default 0");
    add_count_option(*sub_, "--lanes", &lanes_, "Lanes; default: chosen from --ranks", 1,
                     kMaxLanes);
    add_count_option(*sub_, "--window", &window_,
                     "Chunks of a lane that are mixed at a time; default: chosen from --ranks", 1,
                     kMaxWindow);
    add_choice_option<EngineChoice>(*sub_, "--engine", &loader.engine, engine_names(),
                                    "How files are read; default auto");
    add_choice_option<DirectChoice>(
        *sub_, "--direct", &loader.direct,
        {{"auto", DirectChoice::kAuto}, {"on", DirectChoice::kOn}, {"off", DirectChoice::kOff}},
        "Pass by the page cache; default auto: where it cannot help");
    sub_->add_flag("--share", share_, "Read chunks that several ranks want once for all of them");
    sub_->add_flag("--no-checks", no_checks_, "Do not compare checksums");
    add_size_option(*sub_, "--memory", &loader.memory_bytes,
                    "Limit of each rank's buffers; default: chosen");
    sub_->add_flag("--decode", settings_.decode,
                   "Decode pictures, crop a random part, resize it to 224 x 224");
    add_count_option(*sub_, "--step-ms", &step_ms_,
                     "Time that an accelerator takes for a batch; default 0", 0, 3'600'000);
    add_json_option(*sub_);
    add_progress_option(*sub_, &progress_);
  }
  bool chosen() const override { return sub_->parsed(); }
  bool deals_to_ranks() const override { return true; }

  int run(Ui& ui) override {
    const Status status = bench(ui);
    return status.ok() ? kExitDone : ui.fail(status);
  }

 private:
  Status bench(Ui& ui) {
    OpenOptions open;
    open.cache = cache_;
    Result<std::shared_ptr<Pack>> opened = Pack::open(path_, open);
    SPK_TRY(agree(team(), opened.status(), "").status());
    const std::shared_ptr<const Pack> pack = std::move(opened).value();
    LoaderOptions& loader = settings_.loader;
    loader.lanes = static_cast<uint32_t>(lanes_);
    loader.window = static_cast<uint32_t>(window_);
    loader.check_checksums = !no_checks_;
    loader.tail = TailRule::kExact;
    SPK_TRY(deal_ranks());
    if (settings_.decode && pack->schema().find("image") != kNoField) loader.fields = {"image"};
    settings_.step_ns = step_ms_ * 1'000'000;
    Result<std::unique_ptr<BenchRun>> made = BenchRun::open(pack, settings_);
    const uint64_t limit_bytes = made.ok() ? (*made)->memory_limit_bytes() : 0;
    SPK_ASSIGN(memory_limit_bytes_, sum_of_ranks(made.status(), limit_bytes));
    const std::unique_ptr<BenchRun> bench = std::move(made).value();
    Result<Quality> quality = team().first() ? judge(*pack, bench->order()) : Quality();
    SPK_TRY(agree(team(), quality.status(), "").status());

    print_head(ui, *pack, *bench);
    if (!bench->warning().empty()) ui.note(str_cat("warning: ", bench->warning()));
    for (uint64_t i = 0; i < epochs_; ++i) {
      const uint64_t epoch = loader.epoch + i;
      Progress progress(ui, progress_);
      progress.stage(str_cat("epoch ", epoch), {.samples = pack->sample_count() / team().size()});
      SPK_TRY(agree(team(), {}, "").status());  // all begin it together
      const Result<BenchEpoch> mine = bench->run_epoch(epoch, progress);
      if (!mine.ok()) team().tell_stop();
      SPK_ASSIGN(const BenchEpoch found, of_all_ranks(mine));
      progress.finish();
      print_epoch(ui, found);
    }
    SPK_ASSIGN(memory_peak_bytes_, sum_of_ranks({}, bench->memory_peak_bytes()));
    print_summary(ui, *quality);
    return {};
  }

  // Which ranks are this process's, and what they share with others of its node.
  Status deal_ranks() {
    LoaderOptions& loader = settings_.loader;
    const uint64_t processes = team().size();
    if (ranks_option_->count() == 0) loader.world = processes;
    if (loader.world < processes || divide_up(loader.world, processes) > kMostThreads) {
      return invalid_argument(str_cat("--ranks ", loader.world, ": for ",
                                      count_of(processes, "process", "processes"), " from ",
                                      processes, " to ", processes * kMostThreads));
    }
    const auto first_of = [&](uint64_t process) { return process * loader.world / processes; };
    settings_.first_rank = first_of(team().rank());
    settings_.rank_count = first_of(team().rank() + 1) - settings_.first_rank;
    settings_.stop = &team().stop_flag();
    std::array<char, 256> host{};
    (void)::gethostname(host.data(), host.size() - 1);
    SPK_ASSIGN(const std::vector<std::string> hosts, agree(team(), {}, host.data()));
    SPK_ASSIGN(const std::vector<std::string> runs, agree(team(), {}, str_cat(::getpid())));
    uint64_t node_ranks = 0;
    for (uint64_t process = 0; process < processes; ++process) {
      if (hosts[process] == host.data()) node_ranks += first_of(process + 1) - first_of(process);
    }
    settings_.decode_threads =
        static_cast<uint32_t>(std::max<uint64_t>(allowed_cpus() / node_ranks, 1));
    if (!share_) return {};
    loader.node_ranks = static_cast<uint32_t>(node_ranks);
    loader.node_group = str_cat("bench ", runs[0]);
    return {};
  }

  Result<uint64_t> sum_of_ranks(const Status& status, uint64_t mine) {
    SPK_ASSIGN(const std::vector<std::string> all, agree(team(), status, str_cat(mine)));
    uint64_t sum = 0;
    for (const std::string& one : all) sum += std::stoull(one);
    return sum;
  }

  Result<BenchEpoch> of_all_ranks(const Result<BenchEpoch>& mine) {
    SPK_ASSIGN(const std::vector<std::string> all,
               agree(team(), mine.status(), mine.ok() ? encode_epoch(*mine) : ""));
    BenchEpoch found = *mine;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
      if (rank == team().rank()) continue;
      BenchEpoch other;
      if (!decode_epoch(all[rank], &other)) return internal_error("a rank's figures are not whole");
      found.add(other);
    }
    found.finish();
    return found;
  }

  Result<Quality> judge(const Pack& pack, const OrderSettings& order) const {
    Quality quality;
    SPK_ASSIGN(const std::vector<uint64_t> first_samples, first_samples_of(pack));
    std::vector<uint32_t> targets;
    if (order.kind == OrderKind::kShuffled) {
      SPK_ASSIGN(targets, current_targets(pack));  // as the loaders do
    }
    const OrderUnits units{first_samples, targets};
    const uint64_t global_batch = settings_.loader.world * settings_.loader.batch;
    SPK_ASSIGN(quality.pairs_again, pairs_again(units, order, global_batch));
    SPK_ASSIGN(const std::optional<std::vector<int64_t>> labels, sample_labels(pack));
    if (!labels) return quality;
    SPK_ASSIGN(quality.spread, class_spread(units, order, global_batch, *labels));
    quality.mix = class_mix_of(units, *labels);
    quality.variance_estimate =
        class_variance_estimate(quality.mix.correlation(), global_batch, order.lanes, order.window);
    return quality;
  }

  void print_head(Ui& ui, const Pack& pack, const BenchRun& bench) {
    const LoaderOptions& loader = settings_.loader;
    const OrderSettings& order = bench.order();
    const Reading& reading = bench.reading();
    const std::string_view engine = engine_choice_name(reading.engine);
    if (ui.json_mode()) {
      JsonWriter json = json_line("bench");
      json.member("samples", pack.sample_count()).member("chunks", pack.chunk_count());
      json.member("ranks", loader.world).member("batch", loader.batch);
      json.member("processes", team().size());
      json.member("order", order_kind_name(order.kind)).member("seed", order.seed);
      json.member("lanes", order.lanes).member("window", order.window);
      json.member("engine", engine).member("direct", reading.direct);
      json.member("reading", reading.why);
      json.member("checks", loader.check_checksums).member("decode", settings_.decode);
      json.member("step_ms", step_ms_);
      json.member("memory_limit_bytes", memory_limit_bytes_);
      (void)ui.json(json.end_object());
      return;
    }
    (void)ui.out(str_cat(count_of(pack.sample_count(), "sample"), ", ",
                         count_of(pack.chunk_count(), "chunk"), "; ranks ", loader.world,
                         team().size() > 1 ? str_cat(" in ", team().size(), " processes") : "",
                         ", batch ", loader.batch, ", order ", order_kind_name(order.kind),
                         ", lanes ", order.lanes, ", window ", order.window));
    (void)ui.out(str_cat("engine ", engine, reading.direct ? ", direct" : "", ", checks ",
                         loader.check_checksums ? "on" : "off",
                         settings_.decode ? ", decoding" : "", ", step ", step_ms_, " ms"));
    (void)ui.out(str_cat("reads ", reading.why));
  }

  void print_epoch(Ui& ui, const BenchEpoch& found) const {
    const auto samples = static_cast<double>(found.samples);
    const auto bytes = static_cast<double>(found.payload_bytes);
    const double mean_read =
        ratio(static_cast<double>(found.read_bytes), static_cast<double>(found.reads));
    const double cpu_per_gb = ratio(found.cpu_seconds, bytes / 1e9);
    if (ui.json_mode()) {
      JsonWriter json = json_line("epoch");
      json.member("epoch", found.epoch).member("seconds", found.seconds);
      json.member("steps", found.steps).member("batches", found.batches);
      json.member("samples", found.samples).member("payload_bytes", found.payload_bytes);
      json.member("samples_per_second", ratio(samples, found.seconds));
      json.member("bytes_per_second", ratio(bytes, found.seconds));
      json.member("reads", found.reads).member("read_bytes", found.read_bytes);
      json.member("mean_read_bytes", mean_read);
      json.member("shared_reads", found.shared_reads).member("shared_hits", found.shared_hits);
      json.member("cpu_seconds", found.cpu_seconds).member("cpu_seconds_per_gb", cpu_per_gb);
      json.member("first_batch_ms", found.first_batch_seconds * 1e3);
      json.member("wait_median_ms", found.wait_seconds(0.5) * 1e3);
      json.member("wait_p99_ms", found.wait_seconds(0.99) * 1e3);
      json.member("wait_most_ms", found.wait_seconds(1) * 1e3);
      if (settings_.step_ns > 0) {
        json.member("accelerator_busy", found.accelerator_busy(settings_.step_ns));
      }
      if (settings_.decode) json.member("undecoded", found.undecoded);
      (void)ui.json(json.end_object());
      return;
    }
    (void)ui.out(str_cat("epoch ", found.epoch));
    const auto line = [&](std::string_view name, const std::string& value) {
      (void)ui.out(str_cat("  ", name, std::string(22 - name.size(), ' '), value));
    };
    line("samples",
         str_cat(format_count(found.samples), " in ", format_fixed(found.seconds, 3),
                 " s: ", format_count(static_cast<uint64_t>(ratio(samples, found.seconds))),
                 " samples/s, ", format_fixed(ratio(bytes, found.seconds) / 1e6, 0), " MB/s"));
    line("reads",
         found.reads == 0
             ? std::string("none: the files are mapped")
             : str_cat(format_count(found.reads), " of ",
                       format_size(static_cast<uint64_t>(mean_read)), " on average, ",
                       format_fixed(ratio(static_cast<double>(found.read_bytes), bytes), 2),
                       " x the payload"));
    if (share_) {
      line("shared",
           str_cat(format_count(found.shared_reads), " chunks were read for all, and found ",
                   format_count(found.shared_hits), " times"));
    }
    line("CPU",
         str_cat(format_fixed(found.cpu_seconds, 2), " s, ", format_fixed(cpu_per_gb, 2), " s/GB"));
    line("wait for a batch", str_cat("median ", milliseconds(found.wait_seconds(0.5)), ", p99 ",
                                     milliseconds(found.wait_seconds(0.99)), ", most ",
                                     milliseconds(found.wait_seconds(1)), "; for the first ",
                                     milliseconds(found.first_batch_seconds)));
    if (settings_.step_ns > 0) {
      line("accelerators busy",
           str_cat(format_fixed(found.accelerator_busy(settings_.step_ns) * 100, 1), " %"));
    }
    if (found.undecoded > 0) {
      line("not decoded", count_of(found.undecoded, "picture"));
    }
  }

  void print_summary(Ui& ui, const Quality& quality) const {
    if (ui.json_mode()) {
      JsonWriter json = json_line("summary");
      json.member("memory_peak_bytes", memory_peak_bytes_);
      if (quality.pairs_again) json.member("pairs_again", *quality.pairs_again);
      if (quality.spread) {
        json.member("class_variance", quality.spread->variance);
        if (settings_.loader.order == OrderKind::kShuffled) {
          json.member("class_variance_estimate", quality.variance_estimate);
        }
        json.member("class_correlation", quality.mix.correlation());
        json.member("sorted", quality.mix.is_sorted());
      }
      (void)ui.json(json.end_object());
      return;
    }
    (void)ui.out(str_cat("buffers: ", format_size(memory_peak_bytes_), " of ",
                         format_size(memory_limit_bytes_), " used at most"));
    const auto times = [](bool known, double value) {
      return known ? str_cat(format_fixed(value, 2), " x that of a full shuffle")
                   : std::string("- (too few steps or classes)");
    };
    (void)ui.out(str_cat("pairs that meet again: ",
                         times(quality.pairs_again.has_value(), quality.pairs_again.value_or(0))));
    (void)ui.out(str_cat("class variance: ", times(quality.spread.has_value(),
                                                   quality.spread ? quality.spread->variance : 0)));
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  std::string cache_;
  BenchSettings settings_;
  CLI::Option* ranks_option_ = nullptr;
  uint64_t memory_limit_bytes_ = 0;  // of all ranks' buffers, as the next
  uint64_t memory_peak_bytes_ = 0;
  uint64_t lanes_ = 0;  // 0: chosen
  uint64_t window_ = 0;
  uint64_t epochs_ = 1;
  uint64_t step_ms_ = 0;
  bool no_checks_ = false;
  bool share_ = false;
  ProgressMode progress_ = ProgressMode::kAuto;
};

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace spk
