// What the sanitizers cannot do, for tests to heed.
#pragma once

namespace spk::test {

// The thread sanitizer ends a child, forked by a process with threads, that starts a thread.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadsAfterForkWork = false;
#else
constexpr bool kThreadsAfterForkWork = true;
#endif

// A child forked while another thread allocates waits for ever for the lock of the address
// sanitizer's allocator, which, unlike the C library's, does not take it around fork.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kForkBesideAllocationsWorks = false;
#else
constexpr bool kForkBesideAllocationsWorks = true;
#endif

}  // namespace spk::test
