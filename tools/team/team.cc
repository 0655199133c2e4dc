#include "team/team.h"

#include <cstring>

#include "base/varint.h"

namespace spk {

namespace {

Status garbled() { return internal_error("a rank sent what no rank sends"); }

// Less counts more.
uint64_t weight(const Status& status) {
  if (status.code() == Code::kCancelled) return UINT64_MAX;
  return status.shard();  // kNoShard behind all shards
}

}  // namespace

std::string encode_status(const Status& status) {
  std::string bytes;
  append_varint(bytes, static_cast<uint64_t>(status.code()));
  append_varint(bytes, static_cast<uint64_t>(status.os_errno()));
  append_varint(bytes, status.shard());
  append_varint(bytes, status.offset());
  append_string(bytes, status.path());
  append_string(bytes, status.message());
  append_string(bytes, status.hint());
  return bytes;
}

bool decode_status(std::string_view bytes, Status* decoded) {
  ByteSpan rest = as_bytes(bytes);
  uint64_t code = 0, os_errno = 0, shard = 0, offset = 0;
  std::string_view path, message, hint;
  if (!take_varint(&rest, &code) || !take_varint(&rest, &os_errno) || !take_varint(&rest, &shard) ||
      !take_varint(&rest, &offset) || !take_string(&rest, &path) || !take_string(&rest, &message) ||
      !take_string(&rest, &hint) || code == 0) {
    return false;
  }
  std::string text(message);
  Status status(static_cast<Code>(code), text);
  // Only this maker keeps the number, and it adds the system's words to the message.
  const std::string words = std::string(": ") + strerror(static_cast<int>(os_errno));
  if (os_errno != 0 && text.size() >= words.size() &&
      text.compare(text.size() - words.size(), words.size(), words) == 0) {
    text.resize(text.size() - words.size());
    status = Status::from_errno(static_cast<int>(os_errno), text);
  }
  if (!path.empty()) status = std::move(status).at_path(path);
  status = std::move(status).at_offset(offset).at_shard(static_cast<uint32_t>(shard));
  if (!hint.empty()) status = std::move(status).with_hint(hint);
  *decoded = std::move(status);
  return true;
}

Result<std::vector<std::string>> agree(Team& team, const Status& mine, const std::string& message) {
  if (team.size() == 1) {
    if (!mine.ok()) return mine;
    return std::vector<std::string>{message};
  }
  std::string bytes;
  append_varint(bytes, mine.ok() ? 0 : 1);
  append_varint(bytes, static_cast<uint64_t>(cancel_signal()));
  bytes += mine.ok() ? message : encode_status(mine);
  SPK_ASSIGN(std::vector<std::string> all, team.all_gather(bytes));
  Status worst;
  for (std::string& one : all) {
    ByteSpan rest = as_bytes(one);
    uint64_t failed = 0, signal = 0;
    if (!take_varint(&rest, &failed) || !take_varint(&rest, &signal)) return garbled();
    std::string body(as_text(rest));
    if (failed != 0) {
      Status status;
      if (!decode_status(body, &status)) return garbled();
      // A rank that only heard of it ends as the one that was sent the signal.
      if (signal != 0) adopt_cancel_signal(static_cast<int>(signal));
      if (worst.ok() || weight(status) < weight(worst)) worst = std::move(status);
    }
    one = std::move(body);
  }
  if (!worst.ok()) return worst;
  return all;
}

}  // namespace spk
