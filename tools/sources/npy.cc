#include "sources/npy.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.h"

namespace spk {

namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr uint64_t kMostHeadBytes = 64 * 1024;
constexpr size_t kMostSizes = 64;  // numpy's own limit, and to spare

std::string_view trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// What stands behind "'NAME':"; empty where that is not there.
std::string_view value_of(std::string_view text, std::string_view name) {
  for (const char quote : {'\'', '"'}) {
    const std::string key = str_cat(quote, name, quote);
    const size_t at = text.find(key);
    if (at == text.npos) continue;
    const std::string_view rest = trim(text.substr(at + key.size()));
    return rest.starts_with(':') ? trim(rest.substr(1)) : std::string_view();
  }
  return {};
}

bool parse_shape(std::string_view text, std::vector<int64_t>* shape) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == text.npos) return false;
  text = trim(text.substr(1, end - 1));
  while (!text.empty()) {
    int64_t size = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0 || shape->size() == kMostSizes) return false;
    shape->push_back(size);
    text = trim(text.substr(static_cast<size_t>(at - text.data())));
    if (text.starts_with('L')) text = trim(text.substr(1));  // of Python 2
    if (text.empty()) return true;
    if (!text.starts_with(',')) return false;
    text = trim(text.substr(1));
  }
  return true;
}

uint64_t element_bytes_of(std::string_view dtype) {
  if (dtype.size() < 3 || std::string_view("<>|=").find(dtype[0]) == dtype.npos ||
      std::string_view("biufcSV").find(dtype[1]) == dtype.npos) {
    return 0;
  }
  uint64_t bytes = 0;
  const std::string_view digits = dtype.substr(2);
  const auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  return error == std::errc() && at == digits.data() + digits.size() ? bytes : 0;
}

}  // namespace

Result<NpyHead> parse_npy_dictionary(std::string_view text) {
  NpyHead head;
  const auto bad = [] { return damaged("the head of a NumPy array makes no sense"); };
  const std::string_view dtype = value_of(text, "descr");
  if (dtype.empty()) return bad();
  if (dtype[0] == '\'' || dtype[0] == '"') {
    const size_t end = dtype.find(dtype[0], 1);
    if (end == dtype.npos) return bad();
    head.dtype = dtype.substr(1, end - 1);
    head.element_bytes = element_bytes_of(head.dtype);
  } else {
    head.dtype = "structured";
  }
  const std::string_view order = value_of(text, "fortran_order");
  if (!order.starts_with("True") && !order.starts_with("False")) return bad();
  head.fortran_order = order.starts_with("True");
  if (!parse_shape(value_of(text, "shape"), &head.shape)) return bad();
  return head;
}

Result<NpyHead> read_npy_head(SampleHandle& handle) {
  std::vector<uint8_t> bytes(std::min<uint64_t>(handle.size_bytes(), 12));
  SPK_TRY(handle.read_at(0, bytes));
  if (!as_text(bytes).starts_with(kMagic)) return Status(Code::kNotThisFormat, "no NumPy array");
  if (bytes.size() < 12) return damaged("truncated within the head of a NumPy array");
  const bool is_first = bytes[6] == 1;
  if (bytes[6] < 1 || bytes[6] > 3) return damaged("a NumPy array of an unknown version");
  const uint64_t length =
      is_first ? load_le<uint16_t>(bytes.data() + 8) : load_le<uint32_t>(bytes.data() + 8);
  const uint64_t start = is_first ? 10 : 12;
  if (length > kMostHeadBytes) return damaged("the head of a NumPy array is too long");
  if (handle.size_bytes() - start < length) {
    return damaged("truncated within the head of a NumPy array");
  }
  bytes.resize(length);
  SPK_TRY(handle.read_at(start, bytes));
  SPK_ASSIGN(NpyHead head, parse_npy_dictionary(as_text(bytes)));
  head.head_bytes = start + length;
  return head;
}

}  // namespace spk
