#include "io/ceph_layout.h"

#include <charconv>

#include "base/text.h"

namespace spk {

namespace {

bool parse_number(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_valid(uint64_t unit, uint64_t count, uint64_t object) {
  return unit != 0 && unit % kCephUnitBytes == 0 && object != 0 && object % unit == 0 &&
         count != 0 && count < kAllTargets;
}

}  // namespace

Result<StripeLayout> parse_ceph_layout(std::string_view text) {
  uint64_t unit = 0;
  uint64_t count = 0;
  uint64_t object = 0;
  StripeComponent component;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    bool good = true;
    if (name == "stripe_unit") good = parse_number(value, &unit);
    if (name == "stripe_count") good = parse_number(value, &count);
    if (name == "object_size") good = parse_number(value, &object);
    if (name == "pool") component.pool = value;
    if (!good)
      return damaged(str_cat("ceph layout '", escape_bytes(text), "' has no number there"));
  }
  if (!is_valid(unit, count, object)) {
    return damaged(str_cat("ceph layout '", escape_bytes(text), "' is none that CephFS has"));
  }
  component.stripe_bytes = unit;
  component.stripe_count = static_cast<uint32_t>(count);
  component.object_bytes = object;
  StripeLayout layout;
  layout.system = StripeSystem::kCeph;
  layout.components.push_back(std::move(component));
  return layout;
}

Result<std::string> format_ceph_layout(const CephRequest& request) {
  if (!is_valid(request.stripe_bytes, request.stripe_count, request.object_bytes)) {
    return invalid_argument(str_cat("CephFS takes stripes of a multiple of 64 KiB and objects of a "
                                    "multiple of a stripe,"
                                    " not ",
                                    format_size(request.stripe_bytes), " x ", request.stripe_count,
                                    " in ", format_size(request.object_bytes)))
        .with_hint("choose another --stripe-size");
  }
  if (request.object_bytes > kCephMostObjectBytes) {
    return invalid_argument(str_cat("objects of ", format_size(request.object_bytes),
                                    " are more than a Ceph cluster takes (",
                                    format_size(kCephMostObjectBytes), ")"))
        .with_hint("choose a smaller --stripe-size or --stripe-count");
  }
  std::string text =
      str_cat("stripe_unit=", request.stripe_bytes, " stripe_count=", request.stripe_count,
              " object_size=", request.object_bytes);
  if (!request.pool.empty()) text += str_cat(" pool=", request.pool);
  return text;
}

}  // namespace spk
