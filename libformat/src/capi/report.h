// What the C interfaces have in common: exceptions stop here, errors are copied into the caller's
// struct. Knows nothing of packs, so that other libraries with such an interface use it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/result.h"
#include "base/status.h"
#include "stripepack/stripepack.h"

namespace spk {

// The code of STATUS; fills *err where it is an error and err is not null.
int32_t report(const Status& status, spk_error* err) noexcept;

// Runs BODY, which yields a Status. Nothing is thrown on purpose, but memory may run out anywhere.
template <typename Body>
int32_t guard(spk_error* err, const Body& body) noexcept {
  try {
    return report(body(), err);
  } catch (const std::bad_alloc&) {
    try {
      return report(Status(Code::kNoMemory, "out of memory"), err);
    } catch (...) {
      return SPK_NO_MEMORY;
    }
  } catch (...) {
    try {
      return report(internal_error("an exception reached the C interface"), err);
    } catch (...) {
      return SPK_INTERNAL;
    }
  }
}

// kInvalidArgument where a pointer that is needed is null.
Status need(const void* pointer, const char* name);

// A copy of a struct of the caller's that begins with struct_size; members that an older header
// does not have are zero.
template <typename Struct>
Result<Struct> copy_in(const Struct* from) {
  Struct known = {};
  if (from->struct_size < sizeof known.struct_size) {
    return invalid_argument("struct_size of the options is not set");
  }
  const size_t size = from->struct_size < sizeof known ? from->struct_size : sizeof known;
  std::memcpy(static_cast<void*>(&known), from, size);
  return known;
}

// Copies a struct that begins with struct_size to the caller, as much of it as the caller's header
// knows. kInvalidArgument where that is less than MIN_BYTES.
template <typename Struct>
Status copy_out(Struct from, Struct* to, size_t min_bytes) {
  SPK_TRY(need(to, "out"));
  const uint32_t room = to->struct_size;
  if (room < min_bytes) return invalid_argument("struct_size is not set");
  from.struct_size = room;
  std::memcpy(static_cast<void*>(to), &from, room < sizeof(Struct) ? room : sizeof(Struct));
  return {};
}

}  // namespace spk
