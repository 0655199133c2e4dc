// CPU work in an arena of TBB's, on behalf of a thread that waits for it.
#pragma once

#include <tbb/task_arena.h>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace spk {

// Tasks see what the caller did before, and the caller then sees what they did. A libtbb that is
// not built for the thread sanitizer hides this order from it, so it is told here; elsewhere this
// is nothing.
class ArenaOrder {
 public:
#if defined(__SANITIZE_THREAD__)
  void before_tasks() { __tsan_release(&before_); }
  void task_begins() { __tsan_acquire(&before_); }
  void task_ends() { __tsan_release(&after_); }
  void after_tasks() { __tsan_acquire(&after_); }

 private:
  char before_ = 0;  // their addresses stand for the two hand-overs
  char after_ = 0;
#else
  void before_tasks() {}
  void task_begins() {}
  void task_ends() {}
  void after_tasks() {}
#endif
};

// Runs `body` in the arena; where no slot is free, on another thread that has one.
template <class Body>
void run_in_arena(tbb::task_arena& arena, const Body& body) {
  ArenaOrder order;
  order.before_tasks();
  arena.execute([&] {
    order.task_begins();
    body();
    order.task_ends();
  });
  order.after_tasks();
}

}  // namespace spk
