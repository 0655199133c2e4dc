#include "ui/progress.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <system_error>

#include "base/text.h"

namespace spk {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLiveInterval{100};
constexpr milliseconds kTimedInterval{30000};

// "0:09", "12:34", "3:04:05"
std::string format_duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::llround(std::clamp(seconds, 0.0, 3.6e9)));
  const auto two = [](uint64_t n) { return str_cat(n < 10 ? "0" : "", n); };
  const uint64_t hours = whole / 3600;
  const uint64_t minutes = whole / 60 % 60;
  if (hours == 0) return str_cat(minutes, ':', two(whole % 60));
  return str_cat(hours, ':', two(minutes), ':', two(whole % 60));
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

struct Estimate {
  double fraction = -1;      // of the whole stage; < 0: not known
  double seconds_left = -1;  // < 0: not known
};

// By bytes where their total is known, for samples differ in size.
Estimate estimate(const ProgressSnapshot& now) {
  const bool by_bytes = now.totals.bytes > 0;
  const auto total = static_cast<double>(by_bytes ? now.totals.bytes : now.totals.samples);
  const auto before =
      static_cast<double>(by_bytes ? now.totals.bytes_before : now.totals.samples_before);
  const auto done = static_cast<double>(by_bytes ? now.bytes : now.samples);
  Estimate result;
  if (total <= 0) return result;
  result.fraction = std::min(1.0, (before + done) / total);
  if (done > 0 && now.seconds >= 1) {
    result.seconds_left = std::max(0.0, total - before - done) * now.seconds / done;
  }
  return result;
}

}  // namespace

std::string progress_line(const ProgressSnapshot& now, size_t width) {
  const uint64_t samples = now.totals.samples_before + now.samples;
  std::string line = str_cat(now.stage, "  ", format_count(samples));
  if (now.totals.samples > 0) line += str_cat('/', format_count(now.totals.samples));
  const Estimate guess = estimate(now);
  if (guess.fraction >= 0) line += str_cat("  ", static_cast<int>(guess.fraction * 100), " %");
  if (now.seconds > 0) {
    const auto rate = static_cast<double>(now.samples) / now.seconds;
    line += str_cat("  ", format_count(static_cast<uint64_t>(rate)), " samples/s");
    if (now.bytes > 0) {
      const double megabytes = static_cast<double>(now.bytes) / 1e6 / now.seconds;
      line += str_cat("  ", format_fixed(megabytes, megabytes < 10 ? 1 : 0), " MB/s");
    }
  }
  if (now.rejects > 0) line += str_cat("  ", format_count(now.rejects), " rejected");
  if (guess.seconds_left >= 0) line += str_cat("  ", format_duration(guess.seconds_left), " left");
  if (width > 0 && line.size() > width) line.resize(width);
  return line;
}

Progress::Progress(Ui& ui, ProgressMode mode) : Progress(ui, mode, kLiveInterval, kTimedInterval) {}

Progress::Progress(Ui& ui, ProgressMode mode, milliseconds live_interval,
                   milliseconds timed_interval)
    : ui_(ui),
      off_(mode == ProgressMode::kNever),
      live_(!ui.json_mode() && (mode == ProgressMode::kAlways || ui.err_is_live())),
      interval_(live_ ? live_interval : timed_interval) {}

Progress::~Progress() { finish(); }

void Progress::stage(std::string_view name, const StageTotals& totals) {
  const std::lock_guard lock(mutex_);
  stage_ = name;
  totals_ = totals;
  samples_ = 0;
  bytes_ = 0;
  rejects_ = 0;
  stage_begin_ = steady_clock::now();
  if (off_ || stop_ || thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No thread to be had: the work matters more than telling how far it is.
  }
}

ProgressSnapshot Progress::snapshot() const {
  const std::lock_guard lock(mutex_);
  ProgressSnapshot now;
  now.stage = stage_;
  now.totals = totals_;
  now.samples = samples_.load(std::memory_order_relaxed);
  now.bytes = bytes_.load(std::memory_order_relaxed);
  now.rejects = rejects_.load(std::memory_order_relaxed);
  now.seconds = std::chrono::duration<double>(steady_clock::now() - stage_begin_).count();
  return now;
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  if (live_) ui_.status_line("");
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stop_; })) {
    lock.unlock();
    print();
    lock.lock();
  }
}

void Progress::print() {
  const ProgressSnapshot now = snapshot();
  if (live_) {
    // The last column stays free: some terminals wrap as soon as it is written.
    const size_t width = ui_.err_width();
    ui_.status_line(progress_line(now, width > 1 ? width - 1 : 79));
    return;
  }
  if (!ui_.json_mode()) {
    ui_.note(str_cat(utc_now(), ' ', progress_line(now, 0)));
    return;
  }
  JsonWriter json = json_line("progress");
  json.member("time", utc_now()).member("stage", now.stage);
  json.member("samples", now.totals.samples_before + now.samples);
  json.member("samples_total", now.totals.samples);
  json.member("bytes", now.totals.bytes_before + now.bytes);
  json.member("bytes_total", now.totals.bytes);
  json.member("rejects", now.rejects).member("seconds", now.seconds);
  const Estimate guess = estimate(now);
  if (guess.seconds_left >= 0) json.member("seconds_left", guess.seconds_left);
  ui_.json_err(json.end_object());
}

}  // namespace spk
