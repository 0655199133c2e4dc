#include "ui/signals.h"

#include <csignal>

#include "base/text.h"

namespace spk {

namespace {

// What a handler may touch: lock-free atomics.
std::atomic<bool> cancelled{false};
std::atomic<int> first_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_stop(int signal_number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal_number);
  cancelled.store(true);
  if (signal_number ==
      SIGINT) {  // the next one kills: nothing unfinished is ever taken for finished
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, nullptr);
  }
}

const char* signal_name(int signal_number) {
  switch (signal_number) {
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    default: return "a signal";
  }
}

}  // namespace

void install_signal_handlers() noexcept {
  struct sigaction action = {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
  sigaction(SIGXFSZ, &action, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    // A shell starts background jobs with SIGINT ignored; that is respected.
    if (number == SIGINT && before.sa_handler == SIG_IGN) continue;
    action.sa_handler = on_stop;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

const std::atomic<bool>& cancel_flag() noexcept { return cancelled; }

int cancel_signal() noexcept { return first_signal.load(); }

void adopt_cancel_signal(int signal_number) noexcept {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal_number);
  cancelled.store(true);
}

Status cancel_status() {
  if (!cancelled.load()) return {};
  return Status(Code::kCancelled, str_cat("stopped by ", signal_name(cancel_signal())));
}

}  // namespace spk
