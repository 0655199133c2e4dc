// stripepack's C++ interface: errors. Included by stripepack.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "stripepack/stripepack.h"

#if defined(__cpp_exceptions)
#include <exception>
#endif

namespace stripepack {

// What went wrong; false where nothing did.
class Error
#if defined(__cpp_exceptions)
    : public std::exception
#endif
{
 public:
  Error() noexcept : raw_{sizeof(spk_error), SPK_OK, 0, SPK_NO_SHARD, SPK_NO_OFFSET, {}} {}
  explicit operator bool() const noexcept { return raw_.code != SPK_OK; }
  int code() const noexcept { return raw_.code; }
  const char* code_name() const noexcept { return spk_code_name(raw_.code); }
  int os_errno() const noexcept { return raw_.os_errno; }
  std::uint32_t shard() const noexcept { return raw_.shard; }
  std::uint64_t offset() const noexcept { return raw_.offset; }
#if defined(__cpp_exceptions)
  const char* what() const noexcept override { return raw_.message; }
#else
  const char* what() const noexcept { return raw_.message; }
#endif
  // For a call of the C interface.
  spk_error* fill() noexcept {
    *this = Error();
    return &raw_;
  }

 private:
  spk_error raw_;
};

namespace detail {
#if defined(__cpp_exceptions)
// Calls BODY with an Error and throws it where it is filled.
template <typename Body>
auto or_throw(Body&& body) {
  Error error;
  if constexpr (std::is_void_v<decltype(body(error))>) {
    body(error);
    if (error) throw error;
  } else {
    auto value = body(error);
    if (error) throw error;
    return value;
  }
}
#endif
}  // namespace detail

}  // namespace stripepack
