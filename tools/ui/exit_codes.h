// What the program's exit code says. Frozen: scripts rely on it (docs/CLI.md repeats it).
#pragma once

#include "base/status.h"

namespace spk {

inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;       // the answer is no: damage found, packs differ, no such key
inline constexpr int kExitUsage = 2;    // the command line is wrong
inline constexpr int kExitRejects = 3;  // built but not published: rejects above the limit
inline constexpr int kExitFailed = 4;   // anything else, bugs included
inline constexpr int kExitNotAPack = 5;  // not a pack, or one that needs a newer program
inline constexpr int kExitSignal = 128;  // plus the signal's number: 130 SIGINT, 143 SIGTERM

// The exit code of a command that ends with this status. kCancelled: 128 + the signal that came.
// kDamaged is kExitFailed here; a command for which damage is an answer (verify, cat, extract) says
// kExitNo itself.
int exit_code_of(const Status& status) noexcept;

}  // namespace spk
