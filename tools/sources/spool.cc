#include "sources/spool.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "io/atomic_file.h"

namespace spk {

Spool::Writer::Writer(Spool& spool, std::string name, std::string temporary_name, File file)
    : spool_(&spool),
      name_(std::move(name)),
      temporary_name_(std::move(temporary_name)),
      file_(std::move(file)) {}

Spool::Writer::~Writer() {
  if (!file_.is_open()) return;
  file_ = File();
  (void)spool_->directory_.unlink(temporary_name_);
}

Status Spool::Writer::append(ByteSpan bytes) {
  if (file_.is_open()) SPK_TRY(file_.write_all(bytes_, bytes));
  bytes_ += bytes.size();
  return {};
}

Status Spool::Writer::finish() {
  if (spool_->measures_) {
    const std::lock_guard lock(spool_->mutex_);
    spool_->measured_[name_] = bytes_;
    return {};
  }
  SPK_TRY(file_.sync());
  SPK_TRY(file_.close());
  spool_->is_used_ = true;
  return spool_->directory_.rename(temporary_name_, name_);
}

std::shared_ptr<Spool> Spool::make_temporary() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  auto spool = std::make_shared<Spool>(folder / str_cat("stripepack-", unique_token()));
  spool->is_temporary_ = true;
  return spool;
}

std::shared_ptr<Spool> Spool::make_measuring() {
  auto spool = std::make_shared<Spool>(std::filesystem::temp_directory_path() /
                                       str_cat("stripepack-", unique_token()));
  spool->measures_ = true;
  return spool;
}

uint64_t Spool::measured_bytes() {
  const std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [name, size] : measured_) bytes += size;
  return bytes;
}

Result<std::string> Spool::sorting_place() {
  if (measures_) return std::filesystem::temp_directory_path().string();
  SPK_TRY(make_directory());
  return path_;
}

Spool::~Spool() {
  if (!is_temporary_ || !directory_.is_open()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Status Spool::make_directory() {
  const std::lock_guard lock(mutex_);
  if (directory_.is_open()) return {};
  auto made = Directory::create(path_);
  if (!made.ok() && made.status().code() == Code::kExists) made = Directory::open(path_);
  SPK_ASSIGN(directory_, std::move(made));
  return {};
}

Result<bool> Spool::holds(const std::string& name) {
  if (measures_) return false;
  SPK_TRY(make_directory());
  return directory_.exists(name);
}

Result<Spool::Writer> Spool::create(const std::string& name) {
  if (measures_) return Writer(*this, name, {}, File());
  SPK_TRY(make_directory());
  std::string temporary = str_cat(name, ".", unique_token(), ".tmp");
  SPK_ASSIGN(File file, File::create(directory_, temporary));
  return Writer(*this, name, std::move(temporary), std::move(file));
}

}  // namespace spk
