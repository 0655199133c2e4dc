// A plain pool of threads for work that blocks on files. CPU work goes to TBB, never here.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace spk {

class IoPool {
 public:
  // Where the system gives fewer threads, those that there are do it all.
  explicit IoPool(uint32_t threads);
  // Finishes what was submitted.
  ~IoPool();
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;
  // Tasks start in the order of submission. A task must not throw. Without a single thread the
  // caller's runs it, so that a caller holds no lock that the task takes.
  void submit(std::function<void()> task);

 private:
  void work();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace spk
