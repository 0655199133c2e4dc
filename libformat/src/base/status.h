// Errors as values. A Status is made once, at the deepest place that knows what went wrong, and is
// annotated on the way up with where it happened. The first annotation of each kind wins, because
// the deepest frame knows best.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spk {

// Values are frozen: they cross the C ABI (stripepack.h repeats them) and appear in JSON by name.
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument = 1,  // the caller's fault: wrong option, index out of range
  kNotThisFormat = 2,    // the bytes are something else altogether
  kUnsupported = 3,      // ours, but from a newer version or needing a feature not built in
  kDamaged = 4,          // ours, but the bytes contradict their checksum or each other
  kIo = 5,               // the operating system said no; os_errno says why
  kNoSpace = 6,          // ENOSPC or EDQUOT
  kNotFound = 7,         // no such file, sample, key or field
  kExists = 8,           // something is already there and was not overwritten
  kNoMemory = 9,         // a bounded buffer or the allocator could not give what was needed
  kCancelled = 10,       // stopped on request
  kPartial = 11,         // some items of a bulk call failed; look at each item
  kBusy = 12,            // another live process owns this
  kMismatch = 13,        // two things that must agree do not (plan, source, second copy)
  kInternal = 14,        // a bug in stripepack
  kDenied = 15,          // EACCES or EPERM
};

// Lower-case name of a code, as it appears in JSON ("damaged"). Never null.
const char* code_name(Code code) noexcept;

class [[nodiscard]] Status {
 public:
  static constexpr uint64_t kNoOffset = UINT64_MAX;
  static constexpr uint32_t kNoShard = UINT32_MAX;

  Status() noexcept = default;  // ok
  Status(Code code, std::string message);
  // From errno: ENOSPC and EDQUOT become kNoSpace, ENOENT kNotFound, EEXIST kExists, ENOMEM
  // kNoMemory, EACCES and EPERM kDenied, anything else kIo. The message reads "WHAT: strerror".
  static Status from_errno(int os_errno, std::string_view what);

  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other);
  Status& operator=(const Status& other);

  bool ok() const noexcept { return rep_ == nullptr; }
  explicit operator bool() const noexcept { return ok(); }
  Code code() const noexcept { return rep_ ? rep_->code : Code::kOk; }
  int os_errno() const noexcept { return rep_ ? rep_->os_errno : 0; }
  uint32_t shard() const noexcept { return rep_ ? rep_->shard : kNoShard; }
  uint64_t offset() const noexcept { return rep_ ? rep_->offset : kNoOffset; }
  const std::string& path() const noexcept;
  const std::string& message() const noexcept;
  const std::string& hint() const noexcept;

  // Annotations; no effect on an ok status or where one of the kind is already set.
  Status at_path(std::string_view path) &&;
  Status at_offset(uint64_t offset) &&;
  Status at_shard(uint32_t shard) &&;
  Status with_hint(std::string_view hint) &&;

  // "PATH @OFFSET: message; hint" with the parts that are known.
  std::string to_string() const;

 private:
  struct Rep {
    Code code;
    int os_errno = 0;
    uint32_t shard = kNoShard;
    uint64_t offset = kNoOffset;
    std::string path;
    std::string message;
    std::string hint;
  };
  std::unique_ptr<Rep> rep_;
};

// Short makers for the codes used most.
Status damaged(std::string message);
Status invalid_argument(std::string message);
Status unsupported(std::string message);
Status internal_error(std::string message);

}  // namespace spk

// Returns early from a function that yields Status or Result<T>.
#define SPK_TRY(expr)                                  \
  do {                                                 \
    ::spk::Status spk_try_status_ = (expr);            \
    if (!spk_try_status_.ok()) return spk_try_status_; \
  } while (false)
