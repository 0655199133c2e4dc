// What the sanitizers cannot do, for tests to heed.
#pragma once

namespace spk::test {

// fork() by a process with threads. The thread sanitizer ends a child that starts a thread. Under
// the address sanitizer a child may wait for ever: its allocator's locks, unlike the C library's,
// are not taken around fork, and even a thread that starts or ends may hold one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kForkWithThreadsWorks = false;
#else
constexpr bool kForkWithThreadsWorks = true;
#endif

// Rings of io_uring made and closed by several threads: liburing maps and unmaps their memory
// behind the thread sanitizer's back, which then takes one ring for another.
#if defined(__SANITIZE_THREAD__)
constexpr bool kRingsInThreadsWork = false;
#else
constexpr bool kRingsInThreadsWork = true;
#endif

}  // namespace spk::test
