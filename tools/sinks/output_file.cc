#include "sinks/output_file.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "sinks/folder_names.h"

namespace spk {

namespace {
constexpr size_t kBufferBytes = size_t{1} << 20;
// Given to the disk so many at a time, while more is made: finish() has little left to wait for.
constexpr uint64_t kWritebackBytes = uint64_t{8} << 20;
}  // namespace

OutputFile::OutputFile(const Directory& directory, std::string name, std::string temporary_name,
                       File file)
    : directory_(&directory),
      name_(std::move(name)),
      temporary_name_(std::move(temporary_name)),
      file_(std::move(file)) {
  buffer_.reserve(kBufferBytes);
}

Result<OutputFile> OutputFile::create(const Directory& directory, const std::string& name) {
  std::string temporary = str_cat(kTemporaryPrefix, unique_token(), ".tmp");
  SPK_ASSIGN(File file, File::create(directory, temporary));
  return OutputFile(directory, name, std::move(temporary), std::move(file));
}

OutputFile::~OutputFile() {
  if (!file_.is_open()) return;
  file_ = File();
  (void)directory_->unlink(temporary_name_);
}

Status OutputFile::flush() {
  SPK_TRY(file_.write_all(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status OutputFile::append(ByteSpan bytes) {
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }
  // Both in one call; what is large is not copied.
  const ByteSpan pieces[] = {buffer_, bytes};
  SPK_TRY(file_.write_all_v(written_, pieces));
  written_ += buffer_.size() + bytes.size();
  buffer_.clear();
  if (written_ - given_to_disk_ >= kWritebackBytes) {
    file_.start_writeback(given_to_disk_, written_ - given_to_disk_);
    given_to_disk_ = written_;
  }
  return {};
}

Status OutputFile::append(std::string_view text) { return append(as_bytes(text)); }

Status OutputFile::append_zeros(uint64_t count) {
  constexpr uint8_t kZeros[4096] = {};
  for (; count != 0; count -= std::min<uint64_t>(count, sizeof kZeros)) {
    SPK_TRY(append(ByteSpan(kZeros).first(std::min<uint64_t>(count, sizeof kZeros))));
  }
  return {};
}

Status OutputFile::append_u32(uint32_t value) {
  uint8_t bytes[4];
  store_le(bytes, value);
  return append(ByteSpan(bytes));
}

Status OutputFile::append_u64(uint64_t value) {
  uint8_t bytes[8];
  store_le(bytes, value);
  return append(ByteSpan(bytes));
}

Status OutputFile::rewrite(uint64_t offset, ByteSpan bytes) {
  SPK_TRY(flush());
  return file_.write_all(offset, bytes);
}

Status OutputFile::finish() {
  SPK_TRY(flush());
  SPK_TRY(file_.sync());
  SPK_TRY(file_.close());
  return directory_->rename(temporary_name_, name_);
}

Status write_output_file(const Directory& directory, const std::string& name, ByteSpan bytes) {
  SPK_ASSIGN(OutputFile file, OutputFile::create(directory, name));
  SPK_TRY(file.append(bytes));
  SPK_TRY(file.finish());
  return directory.sync();
}

}  // namespace spk
