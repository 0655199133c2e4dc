// A value or the Status that explains its absence. GCC 12 has no std::expected in C++20; this is
// the small part of it that is needed, so that it can be swapped later.
#pragma once

#include <cassert>
#include <optional>
#include <utility>

#include "base/status.h"

namespace spk {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit on purpose, as std::expected
  Result(Status status) : status_(std::move(status)) {  // NOLINT
    assert(!status_.ok() && "a Result without a value needs an error");
  }

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }

  // REQUIRES ok().
  T& value() & noexcept { return *value_; }
  const T& value() const& noexcept { return *value_; }
  T&& value() && noexcept { return std::move(*value_); }
  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

  // Ok where there is a value.
  const Status& status() const& noexcept { return status_; }
  Status status() && noexcept { return std::move(status_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace spk

#define SPK_CONCAT_INNER(a, b) a##b
#define SPK_CONCAT(a, b) SPK_CONCAT_INNER(a, b)
// SPK_ASSIGN(auto file, File::open(...)); returns early with the error.
#define SPK_ASSIGN(lhs, expr) SPK_ASSIGN_IMPL(SPK_CONCAT(spk_result_, __LINE__), lhs, expr)
#define SPK_ASSIGN_IMPL(tmp, lhs, expr)          \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = std::move(tmp).value()
