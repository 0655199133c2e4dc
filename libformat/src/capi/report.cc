#include "capi/report.h"

#include <algorithm>

#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kMessageOffset = offsetof(spk_error, message);
static_assert(sizeof(spk_error) == 256 && kMessageOffset == 24);
// Of a path, where not all fits: the end tells more than the beginning.
constexpr size_t kShortPathBytes = 64;

// At most `room` bytes of `text`, without cutting a UTF-8 sequence.
std::string_view cut(std::string_view text, size_t room) {
  if (text.size() <= room) return text;
  while (room > 0 && (static_cast<uint8_t>(text[room]) & 0xc0) == 0x80) --room;
  return text.substr(0, room);
}

std::string error_text(const Status& status, size_t room) {
  std::string text = status.to_string();
  const std::string path = escape_bytes(status.path());
  if (text.size() > room && path.size() > kShortPathBytes && text.starts_with(path)) {
    std::string_view end = std::string_view(path).substr(path.size() - kShortPathBytes);
    while (!end.empty() && (static_cast<uint8_t>(end[0]) & 0xc0) == 0x80) end.remove_prefix(1);
    text = str_cat("...", end, std::string_view(text).substr(path.size()));
  }
  return text;
}

}  // namespace

int32_t report(const Status& status, spk_error* err) noexcept {
  const auto code = static_cast<int32_t>(status.code());
  if (status.ok() || err == nullptr) return code;
  const size_t bytes = std::min<size_t>(err->struct_size, sizeof(spk_error));
  if (bytes <= kMessageOffset) return code;
  err->code = code;
  err->os_errno = status.os_errno();
  err->shard = status.shard();
  err->offset = status.offset();
  const size_t room = bytes - kMessageOffset - 1;
  std::string text;
  std::string_view shown;
  try {
    text = error_text(status, room);
    shown = cut(text, room);
  } catch (...) {  // no memory for the words; the facts are there
    shown = cut(code_name(status.code()), room);
  }
  std::memcpy(err->message, shown.data(), shown.size());
  std::memset(err->message + shown.size(), 0, room + 1 - shown.size());
  return code;
}

Status need(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return invalid_argument(str_cat(name, " is NULL"));
}

}  // namespace spk
