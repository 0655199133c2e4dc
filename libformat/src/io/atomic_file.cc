#include "io/atomic_file.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>

#include "base/text.h"
#include "io/file.h"

namespace spk {

namespace {

// Letters, digits and '-' of the host's name up to its first dot; the rest would be bad in a name.
std::string host_label() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "host";
  std::string label;
  for (const char* c = name; *c != '\0' && *c != '.' && label.size() < 32; ++c) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                       (*c >= '0' && *c <= '9') || *c == '-';
    if (plain) label += *c;
  }
  return label.empty() ? "host" : label;
}

Status write_and_sync(const Directory& dir, std::string_view name, ByteSpan bytes) {
  SPK_ASSIGN(File file, File::create(dir, name));
  SPK_TRY(file.write_all(0, bytes));
  SPK_TRY(file.sync());
  return file.close();
}

}  // namespace

std::string unique_token() {
  static std::atomic<uint64_t> counter{0};
  // The time keeps apart two processes that had the same number, one after the other.
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  return str_cat(host_label(), "-", ::getpid(), "-", counter.fetch_add(1), "-", now_us);
}

Status write_file_atomically(const Directory& dir, std::string_view name, ByteSpan bytes) {
  SPK_TRY(Directory::check_name(name).at_path(dir.path()));
  const std::string temporary = str_cat(name, ".tmp-", unique_token());
  Status status = write_and_sync(dir, temporary, bytes);
  if (status.ok()) status = dir.rename(temporary, name);
  if (!status.ok()) {
    // The first error is the one to report; if the removal fails too, the name says it is
    // temporary.
    (void)dir.unlink(temporary);
    return status;
  }
  return dir.sync();
}

Result<std::vector<uint8_t>> read_whole_file(const Directory& dir, std::string_view name,
                                             uint64_t max_bytes) {
  SPK_ASSIGN(const File file, File::open_read(dir, name));
  SPK_ASSIGN(const uint64_t size_bytes, file.size());
  if (size_bytes > max_bytes) {
    return damaged(str_cat("file of ", size_bytes, " bytes, at most ", max_bytes, " expected"))
        .at_path(file.path());
  }
  std::vector<uint8_t> bytes(size_bytes);
  SPK_TRY(file.read_exact(0, bytes));
  return bytes;
}

}  // namespace spk
