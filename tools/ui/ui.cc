#include "ui/ui.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "base/text.h"
#include "ui/signals.h"

namespace spk {

namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr int kLookForSignalMs = 200;
constexpr std::string_view kEraseLine = "\r\x1b[K";

// All of it, or the errno of what went wrong. A reader that does not read must not keep the program
// from obeying a signal: EINTR where one asked for a stop and nothing can be written.
int write_fully(int fd, std::string_view text) {
  struct stat info = {};
  const bool may_block = fstat(fd, &info) == 0 && !S_ISREG(info.st_mode);
  while (!text.empty()) {
    size_t size = text.size();
    if (may_block) {
      size = std::min<size_t>(size, PIPE_BUF);  // so much a pipe that is ready takes at once
      pollfd ready = {fd, POLLOUT, 0};
      const int count = poll(&ready, 1, kLookForSignalMs);
      if (count == 0 || (count < 0 && errno == EINTR)) {
        if (cancel_flag()) return EINTR;
        continue;
      }
    }
    const ssize_t wrote = ::write(fd, text.data(), size);
    if (wrote < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return errno;
    }
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return 0;
}

bool set_and_not_empty(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// A message on one line that no terminal acts on. Most of it is escaped where it was made; what
// other libraries say may hold anything.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '\n') {
      out += "; ";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += str_cat("\\x", to_hex(byte).substr(14));
    } else {
      out += c;
    }
  }
  return out;
}

void text_member(JsonWriter& json, std::string_view name, std::string_view text) {
  if (is_valid_utf8(text)) {
    json.member(name, text);
  } else {
    json.member_bytes(name, text);
  }
}

}  // namespace

JsonWriter json_line(std::string_view type) {
  JsonWriter json;
  json.begin_object().member("type", type).member("v", 1);
  return json;
}

Ui::Ui(int out_fd, int err_fd) : out_fd_(out_fd), err_fd_(err_fd) {
  out_is_terminal_ = isatty(out_fd) != 0;
  err_is_terminal_ = isatty(err_fd) != 0;
  const char* term = std::getenv("TERM");
  err_is_live_ = err_is_terminal_ && term != nullptr && std::string_view(term) != "dumb";
  color_ = err_is_live_ && !set_and_not_empty("NO_COLOR");
}

Ui::~Ui() { (void)finish(); }

bool Ui::out(std::string_view line, char end) {
  const std::lock_guard lock(mutex_);
  if (out_errno_ != 0) return false;
  buffer_ += line;
  buffer_ += end;
  if (out_is_terminal_) clear_status_locked();
  if (out_is_terminal_ || buffer_.size() >= kBufferBytes) flush_locked();
  return out_errno_ == 0;
}

bool Ui::write(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  flush_locked();
  if (out_errno_ == 0 && !muted_) out_errno_ = write_fully(out_fd_, bytes);
  return out_errno_ == 0;
}

void Ui::note(std::string_view line) {
  if (json_) {
    JsonWriter json = json_line("note");
    text_member(json, "message", line);
    json_err(json.end_object());
    return;
  }
  const std::lock_guard lock(mutex_);
  clear_status_locked();
  write_err_locked(str_cat(line, '\n'));
}

void Ui::json_err(const JsonWriter& object) {
  const std::lock_guard lock(mutex_);
  clear_status_locked();
  write_err_locked(str_cat(object.text(), '\n'));
}

int Ui::fail(const Status& status) { return fail(status, exit_code_of(status)); }

int Ui::fail(const Status& status, int exit_code) {
  flush();
  if (json_) {
    JsonWriter json = json_line("error");
    json.member("code", code_name(status.code())).member("exit", exit_code);
    text_member(json, "message", status.message());
    if (!status.path().empty()) json.member_bytes("path", status.path());
    if (status.offset() != Status::kNoOffset) json.member("offset", status.offset());
    if (status.shard() != Status::kNoShard) json.member("shard", status.shard());
    if (!status.hint().empty()) text_member(json, "hint", status.hint());
    json_err(json.end_object());
    return exit_code;
  }
  const std::string name = command_.empty() ? "stripepack:" : str_cat("stripepack ", command_, ":");
  const std::string text = printable(status.to_string());
  const std::lock_guard lock(mutex_);
  clear_status_locked();
  write_err_locked(color_ ? str_cat("\x1b[1;31m", name, "\x1b[0m ", text, '\n')
                          : str_cat(name, ' ', text, '\n'));
  return exit_code;
}

void Ui::status_line(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (line.empty()) {
    clear_status_locked();
    return;
  }
  write_err_locked(str_cat('\r', line, kEraseLine.substr(1)));
  status_shown_ = true;
}

size_t Ui::err_width() const noexcept {
  winsize size = {};
  return ioctl(err_fd_, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void Ui::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

Status Ui::finish() {
  const std::lock_guard lock(mutex_);
  clear_status_locked();
  flush_locked();
  if (out_errno_ == 0 || out_errno_ == EPIPE) return {};
  if (out_errno_ == EINTR) return cancel_status();
  return Status::from_errno(out_errno_, "cannot write to standard output");
}

void Ui::flush_locked() {
  if (out_errno_ == 0 && !buffer_.empty() && !muted_) out_errno_ = write_fully(out_fd_, buffer_);
  buffer_.clear();
}

// Nobody can be told where stderr itself is broken.
void Ui::write_err_locked(std::string_view text) {
  if (!muted_) (void)write_fully(err_fd_, text);
}

void Ui::clear_status_locked() {
  if (!status_shown_) return;
  write_err_locked(kEraseLine);
  status_shown_ = false;
}

}  // namespace spk
