// A binary heap whose smallest element can be changed in place, which costs half of taking it out
// and putting another in.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace spk {

template <typename T>  // with operator>, which must order all elements
class MinHeap {
 public:
  MinHeap() = default;
  explicit MinHeap(std::vector<T> items) : items_(std::move(items)) {
    std::make_heap(items_.begin(), items_.end(), std::greater<>());
  }

  bool empty() const noexcept { return items_.empty(); }
  // All elements, in no order that is promised.
  const std::vector<T>& items() const noexcept { return items_; }
  // REQUIRES !empty(), as all below.
  const T& top() const noexcept { return items_.front(); }
  void pop() {
    const T last = items_.back();
    items_.pop_back();
    if (!items_.empty()) replace_top(last);
  }
  void replace_top(const T& item) {
    const size_t count = items_.size();
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
      if (child + 1 < count && items_[child] > items_[child + 1]) ++child;
      if (!(item > items_[child])) break;
      items_[at] = items_[child];
      at = child;
    }
    items_[at] = item;
  }

 private:
  std::vector<T> items_;
};

}  // namespace spk
