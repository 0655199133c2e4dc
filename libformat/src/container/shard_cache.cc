#include "container/shard_cache.h"

#include <filesystem>
#include <system_error>

#include "base/checked.h"
#include "base/text.h"
#include "container/pack.h"
#include "format/footer.h"

namespace spk {

Result<ShardCache> ShardCache::open(const std::string& path) {
  ShardCache cache;
  if (path.empty()) return cache;
  if (path.find('\0') != path.npos) return invalid_argument("the cache's path has a NUL in it");
  std::error_code failed;
  cache.path_ = std::filesystem::absolute(path, failed).string();
  if (failed) return Status::from_errno(failed.value(), "cannot find the working directory");
  const auto dir = Directory::open(cache.path_);
  if (dir.ok() || dir.status().code() == Code::kNotFound) return cache;
  if (dir.status().code() != Code::kNotThisFormat) return dir.status();
  return invalid_argument("a cache is a directory; this is none")
      .at_path(path)
      .with_hint("name the DIR that `stripepack stage PACK DIR` was given");
}

std::string ShardCache::path_of(uint32_t shard) const {
  return str_cat(path_, path_.ends_with('/') ? "" : "/", shard_file_name(shard));
}

Result<File> ShardCache::find(uint32_t shard, const ShardRow& row) const {
  if (is_none()) return File();
  auto file = File::open_read(path_of(shard));
  if (file.ok()) {
    const Status same = check_shard_file(*file, shard, row);
    if (same.ok()) return file;
    // What cannot be read is no better than what is missing: the pack has it, too.
    return File();
  }
  // Closing others may help against these two.
  const int os_errno = file.status().os_errno();
  if (os_errno == EMFILE || os_errno == ENFILE) return file;
  return File();
}

bool ShardCache::has_all(const std::vector<ShardRow>& rows) const {
  if (is_none() || rows.empty()) return false;
  const auto dir = Directory::open(path_);
  if (!dir.ok()) return false;
  for (size_t shard = 0; shard < rows.size(); ++shard) {
    const auto info = dir->stat(shard_file_name(static_cast<uint32_t>(shard)));
    if (!info.ok() || info->type != EntryType::kRegular ||
        info->size_bytes != rows[shard].file_bytes) {
      return false;
    }
  }
  return true;
}

Status check_shard_file(const File& file, uint32_t shard, const ShardRow& row) {
  const auto differs = [&](std::string what) {
    return Status(Code::kMismatch, std::move(what)).at_path(file.path()).at_shard(shard);
  };
  SPK_ASSIGN(const uint64_t file_bytes, file.size());
  if (file_bytes != row.file_bytes) {
    return differs(
        str_cat("has ", file_bytes, " bytes, shard ", shard, " of the pack has ", row.file_bytes));
  }
  if (!range_fits(row.data_bytes, FooterHeader::kBytes, file_bytes)) {
    return differs("the pack's index leaves no room for a footer");
  }
  uint8_t bytes[FooterHeader::kBytes];
  SPK_TRY(file.read_exact(row.data_bytes, bytes));
  const FooterHeader header = FooterHeader::decode(bytes);
  const Hash128 digest{header.digest_low, header.digest_high};
  if (header.magic != kFooterMagic) {
    return differs(str_cat("no shard's footer lies at ", row.data_bytes));
  }
  if (header.shard == shard && digest == row.digest) return {};
  return differs(str_cat("is shard ", header.shard, " with digest ", digest.to_hex(), "; shard ",
                         shard, " of the pack has ", row.digest.to_hex()));
}

}  // namespace spk
