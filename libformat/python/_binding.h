// What the sources of the module _stripepack share.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "stripepack/stripepack.hpp"

namespace stripepack_python {

// An open pack; pybind11's base class of what Python calls Pack.
struct PackHandle {
  std::string path;
  stripepack::Pack pack;

  // Raises stripepack.Error with the facts as attributes.
  [[noreturn]] void fail(const stripepack::Error& error) const;
};

// The same where no pack is at hand: without the name of the shard.
[[noreturn]] void fail(const stripepack::Error& error, const std::string& path,
                       const spk_pack* pack = nullptr);

// ValueError for TEXT with a zero byte, at which the C interface would end it.
void refuse_zero_byte(const char* name, const std::string& text);

// Adds Loader and Batch.
void add_loader(pybind11::module_& module);

}  // namespace stripepack_python
