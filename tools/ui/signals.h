// Signals become a flag that long work looks at. SIGINT, SIGTERM and SIGUSR1 (which batch systems
// send before the time is up) ask for a stop; a second SIGINT kills at once. SIGPIPE and SIGXFSZ
// are ignored: the write fails and says why.
#pragma once

#include <atomic>

#include "base/status.h"

namespace spk {

// Call once, before any thread is started.
void install_signal_handlers() noexcept;

// True from the first signal that asks for a stop. Pass it to whatever works long.
const std::atomic<bool>& cancel_flag() noexcept;

// The signal that set the flag; 0 while none has.
int cancel_signal() noexcept;

// As if this signal had come: another process of the run was sent it.
void adopt_cancel_signal(int signal_number) noexcept;

// kCancelled, "stopped by SIGINT"; ok where no signal came.
Status cancel_status();

}  // namespace spk
