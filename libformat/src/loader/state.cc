#include "loader/state.h"

#include <charconv>
#include <limits>

#include "base/text.h"

namespace spk {

namespace {

constexpr std::string_view kStart = "stripepack-state/";

// "name=value" from the front of REST, with the space before it.
Result<std::string_view> take_part(std::string_view& rest, std::string_view name) {
  const std::string start = str_cat(" ", name, "=");
  if (!rest.starts_with(start)) {
    return invalid_argument(str_cat("not a loader state: expected '", name, "=' at '",
                                    escape_bytes(rest.substr(0, 40)), "'"));
  }
  rest.remove_prefix(start.size());
  const std::string_view value = rest.substr(0, rest.find(' '));
  rest.remove_prefix(value.size());
  return value;
}

Result<uint64_t> take_number(std::string_view& rest, std::string_view name, int base,
                             uint64_t most = std::numeric_limits<uint64_t>::max()) {
  SPK_ASSIGN(const std::string_view text, take_part(rest, name));
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end || value > most) {
    return invalid_argument(
        str_cat("not a loader state: ", name, " is '", escape_bytes(text), "'"));
  }
  return value;
}

}  // namespace

std::string LoaderState::to_text() const {
  return str_cat(kStart, kOrderVersion, " content=", content_id.to_hex(),
                 " map=", to_hex(map_digest), " order=", order_kind_name(order.kind),
                 " seed=", order.seed, " epoch=", order.epoch, " lanes=", order.lanes,
                 " window=", order.window, " consumed=", consumed);
}

Result<LoaderState> LoaderState::parse(std::string_view text) {
  if (!text.starts_with(kStart)) {
    return invalid_argument(
        str_cat("not a loader state: it begins with '", escape_bytes(text.substr(0, 40)), "'"));
  }
  const std::string known = str_cat(kStart, kOrderVersion, " ");
  if (!text.starts_with(known)) {
    return unsupported(str_cat("the loader state is of another version: '",
                               escape_bytes(text.substr(0, 40)), "'; this stripepack knows ",
                               kStart, kOrderVersion))
        .with_hint("resume with the stripepack that saved it");
  }
  std::string_view rest = text.substr(known.size() - 1);
  LoaderState state;
  SPK_ASSIGN(const std::string_view content, take_part(rest, "content"));
  if (content.size() != 32) return invalid_argument("not a loader state: content is no id");
  std::string_view halves = content;
  const auto half = [&](uint64_t& value) {
    const char* end = halves.data() + 16;
    const auto [stop, error] = std::from_chars(halves.data(), end, value, 16);
    halves.remove_prefix(16);
    return error == std::errc() && stop == end;
  };
  if (!half(state.content_id.high) || !half(state.content_id.low)) {
    return invalid_argument("not a loader state: content is no id");
  }
  SPK_ASSIGN(state.map_digest, take_number(rest, "map", 16));
  SPK_ASSIGN(const std::string_view kind, take_part(rest, "order"));
  SPK_ASSIGN(state.order.kind, parse_order_kind(kind));
  SPK_ASSIGN(state.order.seed, take_number(rest, "seed", 10));
  SPK_ASSIGN(state.order.epoch, take_number(rest, "epoch", 10));
  SPK_ASSIGN(const uint64_t lanes, take_number(rest, "lanes", 10, kMaxLanes));
  SPK_ASSIGN(const uint64_t window, take_number(rest, "window", 10, kMaxWindow));
  state.order.lanes = static_cast<uint32_t>(lanes);
  state.order.window = static_cast<uint32_t>(window);
  SPK_ASSIGN(state.consumed, take_number(rest, "consumed", 10));
  if (!rest.empty()) {
    return invalid_argument(
        str_cat("not a loader state: '", escape_bytes(rest.substr(0, 40)), "' follows its end"));
  }
  return state;
}

}  // namespace spk
