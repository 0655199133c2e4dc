// Everything that the program prints goes through here: lines or JSON objects on stdout; notes,
// progress and the final error on stderr.
//
// In JSON mode (--json) every line on either stream is one object that begins with the members
// "type" (a name) and "v" (1).
//
// Thread safety: every member may be called from any thread; lines never mix.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "ui/exit_codes.h"

namespace spk {

// An object with its first two members written; add members, then end_object().
JsonWriter json_line(std::string_view type);

class Ui {
 public:
  // Descriptors stay the caller's.
  explicit Ui(int out_fd = 1, int err_fd = 2);
  ~Ui();  // flushes; who heeds errors calls finish()
  Ui(const Ui&) = delete;
  Ui& operator=(const Ui&) = delete;

  void set_json(bool json) noexcept { json_ = json; }
  bool json_mode() const noexcept { return json_; }
  // Nothing is printed from here on: another process of the run speaks for all.
  void mute() noexcept { muted_ = true; }
  // The subcommand, for the start of error messages: "stripepack pack: ...".
  void set_command(std::string_view name) { command_ = name; }
  bool out_is_terminal() const noexcept { return out_is_terminal_; }
  bool err_is_terminal() const noexcept { return err_is_terminal_; }
  // stderr is a terminal that understands escapes (TERM is not "dumb").
  bool err_is_live() const noexcept { return err_is_live_; }
  // As err_is_live, and NO_COLOR is not set.
  bool color() const noexcept { return color_; }

  // A line on stdout; its end is added. Buffered (per line on a terminal). False once stdout is
  // closed or broken: long listings stop then.
  bool out(std::string_view line, char end = '\n');
  // Bytes on stdout as they are.
  bool write(std::string_view bytes);
  // One object on stdout. REQUIRES that it began with json_line and is closed.
  bool json(const JsonWriter& object) { return out(object.text()); }
  // A line for people on stderr; in JSON mode {"type": "note", ...}.
  void note(std::string_view line);
  // An object on stderr (progress, warnings in JSON mode).
  void json_err(const JsonWriter& object);

  // The final error, on stderr: "stripepack pack: FILE @OFFSET: what; hint", in JSON mode
  // {"type": "error", "v": 1, "code", "exit", "message", and where known "path", "offset", "shard",
  // "hint"}. Returns the exit code: `exit_code`, or exit_code_of(status).
  int fail(const Status& status);
  int fail(const Status& status, int exit_code);

  // The live progress line: replaces the last one; "" removes it. Other output on stderr removes it
  // first. Only for Progress.
  void status_line(std::string_view line);

  // Columns of the terminal on stderr; 0 where they are not known.
  size_t err_width() const noexcept;
  // Sends what is buffered; for objects that a program waits for.
  void flush();
  // Sends what is buffered. Ok also where the reader of stdout has gone (EPIPE): that is its right.
  // kCancelled where a signal came while the reader did not read.
  Status finish();

 private:
  void flush_locked();
  void write_err_locked(std::string_view text);
  void clear_status_locked();

  std::mutex mutex_;
  const int out_fd_;
  const int err_fd_;
  bool json_ = false;
  bool muted_ = false;
  bool out_is_terminal_ = false;
  bool err_is_terminal_ = false;
  bool err_is_live_ = false;
  bool color_ = false;
  std::string command_;
  std::string buffer_;
  bool status_shown_ = false;
  int out_errno_ = 0;  // of the first failed write to stdout
};

}  // namespace spk
