#include "base/status.h"

#include <cerrno>
#include <system_error>

#include "base/text.h"

namespace spk {

namespace {
const std::string kEmpty;
}

const char* code_name(Code code) noexcept {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotThisFormat: return "not_this_format";
    case Code::kUnsupported: return "unsupported";
    case Code::kDamaged: return "damaged";
    case Code::kIo: return "io";
    case Code::kNoSpace: return "no_space";
    case Code::kNotFound: return "not_found";
    case Code::kExists: return "exists";
    case Code::kNoMemory: return "no_memory";
    case Code::kCancelled: return "cancelled";
    case Code::kPartial: return "partial";
    case Code::kBusy: return "busy";
    case Code::kMismatch: return "mismatch";
    case Code::kInternal: return "internal";
    case Code::kDenied: return "denied";
  }
  return "unknown";
}

Status::Status(Code code, std::string message) {
  if (code == Code::kOk) return;
  rep_ = std::make_unique<Rep>();
  rep_->code = code;
  rep_->message = std::move(message);
}

Status Status::from_errno(int os_errno, std::string_view what) {
  Code code = Code::kIo;
  if (os_errno == ENOSPC || os_errno == EDQUOT) code = Code::kNoSpace;
  if (os_errno == ENOENT) code = Code::kNotFound;
  if (os_errno == EEXIST) code = Code::kExists;
  if (os_errno == ENOMEM) code = Code::kNoMemory;
  if (os_errno == EACCES || os_errno == EPERM) code = Code::kDenied;
  Status status(code, str_cat(what, ": ", std::generic_category().message(os_errno)));
  status.rep_->os_errno = os_errno;
  return status;
}

Status::Status(const Status& other)
    : rep_(other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) rep_ = other.rep_ ? std::make_unique<Rep>(*other.rep_) : nullptr;
  return *this;
}

const std::string& Status::path() const noexcept { return rep_ ? rep_->path : kEmpty; }
const std::string& Status::message() const noexcept { return rep_ ? rep_->message : kEmpty; }
const std::string& Status::hint() const noexcept { return rep_ ? rep_->hint : kEmpty; }

Status Status::at_path(std::string_view path) && {
  if (rep_ && rep_->path.empty()) rep_->path = path;
  return std::move(*this);
}

Status Status::at_offset(uint64_t offset) && {
  if (rep_ && rep_->offset == kNoOffset) rep_->offset = offset;
  return std::move(*this);
}

Status Status::at_shard(uint32_t shard) && {
  if (rep_ && rep_->shard == kNoShard) rep_->shard = shard;
  return std::move(*this);
}

Status Status::with_hint(std::string_view hint) && {
  if (rep_ && rep_->hint.empty()) rep_->hint = hint;
  return std::move(*this);
}

std::string Status::to_string() const {
  if (!rep_) return "ok";
  std::string text;
  if (!rep_->path.empty()) text += escape_bytes(rep_->path);
  if (rep_->offset != kNoOffset) {
    if (!text.empty()) text += ' ';
    text += str_cat("@", rep_->offset);
  }
  if (!text.empty()) text += ": ";
  text += rep_->message;
  if (!rep_->hint.empty()) text += "; " + rep_->hint;
  return text;
}

Status damaged(std::string message) { return Status(Code::kDamaged, std::move(message)); }
Status invalid_argument(std::string message) {
  return Status(Code::kInvalidArgument, std::move(message));
}
Status unsupported(std::string message) { return Status(Code::kUnsupported, std::move(message)); }
Status internal_error(std::string message) { return Status(Code::kInternal, std::move(message)); }

}  // namespace spk
