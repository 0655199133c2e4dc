// Which process a number stands for, so that another one can tell later whether it still lives.
#pragma once

#include <cstdint>

namespace spk {

// Of this process, in one word that is never 0: its number and when it began, so that one that got
// the number of a dead process is not taken for it.
uint64_t process_identity() noexcept;

// Whether it is this process. A child of fork() is another.
bool is_this_process(uint64_t identity) noexcept;
// Whether that process lives. Where the kernel does not tell (a /proc that hides processes), one
// that has the number counts. Only for identities made in the same namespace.
bool is_process_alive(uint64_t identity) noexcept;

// Tells apart the namespaces that process numbers are of; 0 where the kernel does not say.
uint64_t process_namespace() noexcept;

}  // namespace spk
