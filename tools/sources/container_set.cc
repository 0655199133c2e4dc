#include "sources/container_set.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "base/varint.h"
#include "sources/file_sample.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr size_t kHeadBytes = 4096;
// zstd gives nothing before it has a whole block, which has 128 KiB at most.
constexpr size_t kPackedHeadBytes = size_t{160} << 10;
constexpr size_t kFilesLookedAt = 16;

Result<std::vector<uint8_t>> read_head(const File& file, size_t bytes = kHeadBytes) {
  std::vector<uint8_t> head(bytes);
  SPK_ASSIGN(const uint64_t got, file.read_some(0, head));
  head.resize(got);
  return head;
}

// How a file is packed whose plain form IS_PLAIN knows; false in *known where it is no such file.
// HEAD: its first bytes.
Result<Packing> look_at_head(const File& file, ByteSpan head, bool zlib_too,
                             bool (*is_plain)(ByteSpan), bool* known) {
  *known = is_plain(head);
  if (*known) return Packing::kNone;
  const Packing packing = packing_of(head, zlib_too);
  if (packing == Packing::kNone) return packing;
  SPK_ASSIGN(const std::vector<uint8_t> packed, read_head(file, kPackedHeadBytes));
  *known = is_plain(unpack_head(packed, packing, kHeadBytes));
  return packing;
}

// Whether PATH is FILE.idx beside FILE: what an empty file is cannot be told by what it holds.
bool is_index_of_another(std::string_view path, const std::vector<std::string>& files) {
  constexpr std::string_view kSuffix = ".idx";
  if (!path.ends_with(kSuffix)) return false;
  path.remove_suffix(kSuffix.size());
  return std::find(files.begin(), files.end(), path) != files.end();
}

}  // namespace

Status ContainerSet::add(std::string path, Packing packing, const File& file) {
  Status status = check_can_unpack(packing);
  if (!status.ok()) return std::move(status).at_path(escape_bytes(path));
  SPK_ASSIGN(const EntryInfo info, file.info());
  Container container;
  container.path = std::move(path);
  container.size_bytes = info.size_bytes;
  container.mtime_ns = info.mtime_ns;
  container.packing = packing;
  containers_.push_back(std::move(container));
  return {};
}

// Where everything lies: containers first, then what may be spooled of each.
void ContainerSet::settle(std::shared_ptr<Spool> spool) {
  spool_ = std::move(spool);
  std::vector<std::string> lie;
  for (uint32_t file = 0; file < count(); ++file) {
    const bool spooled = packing(file) != Packing::kNone && spool_ != nullptr;
    lie.push_back(spooled ? spool_->path_of(spooled_name(file)) : path(file));
  }
  for (uint32_t file = 0; file < count() && spool_ != nullptr; ++file) {
    lie.push_back(spool_->path_of(spooled_name(file)));
  }
  files_ = std::make_unique<ContainerFiles>(std::move(lie));
}

Result<std::unique_ptr<ContainerSet>> ContainerSet::open(std::vector<std::string> paths,
                                                         std::shared_ptr<Spool> spool,
                                                         bool zlib_too,
                                                         bool (*is_plain)(ByteSpan head)) {
  std::unique_ptr<ContainerSet> set(new ContainerSet());
  for (std::string& path : paths) {
    SPK_ASSIGN(const File file, File::open_read(path));
    SPK_ASSIGN(const std::vector<uint8_t> head, read_head(file));
    bool known = false;
    SPK_ASSIGN(const Packing packing, look_at_head(file, head, zlib_too, is_plain, &known));
    SPK_TRY(set->add(std::move(path), packing, file));
  }
  set->settle(std::move(spool));
  return set;
}

Result<std::unique_ptr<ContainerSet>> ContainerSet::open_as(std::vector<std::string> paths,
                                                            const std::vector<Packing>& packings,
                                                            std::shared_ptr<Spool> spool) {
  std::unique_ptr<ContainerSet> set(new ContainerSet());
  for (size_t i = 0; i < paths.size(); ++i) {
    SPK_ASSIGN(const File file, File::open_read(paths[i]));
    SPK_TRY(set->add(std::move(paths[i]), packings[i], file));
  }
  set->settle(std::move(spool));
  return set;
}

bool ContainerSet::any_packed() const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [](const Container& one) { return one.packing != Packing::kNone; });
}

int64_t ContainerSet::entry_mtime_ns(uint32_t file) const {
  const Container& container = containers_[file];
  return container.packing == Packing::kNone ? container.mtime_ns : kUnknownMtime;
}

std::string ContainerSet::spooled_name(uint32_t file) const {
  const Container& container = containers_[file];
  std::string text;
  append_string(text, container.path);
  append_be64(text, container.size_bytes);
  append_be64(text, static_cast<uint64_t>(container.mtime_ns));
  return xxh3_128(as_bytes(text)).to_hex();
}

Result<std::unique_ptr<ForwardReader>> ContainerSet::read(uint32_t file, size_t window_bytes,
                                                          bool lenient) const {
  const Container& container = containers_[file];
  std::unique_ptr<Spool::Writer> keep;
  if (container.packing != Packing::kNone && spool_ != nullptr) {
    const std::string name = spooled_name(file);
    SPK_ASSIGN(const bool is_there, spool_->holds(name));
    if (is_there) {
      SPK_ASSIGN(File spooled, File::open_read(spool_->path_of(name)));
      return read_plain(std::move(spooled), window_bytes);
    }
    SPK_ASSIGN(Spool::Writer writer, spool_->create(name));
    keep = std::make_unique<Spool::Writer>(std::move(writer));
  }
  SPK_ASSIGN(File opened, File::open_read(container.path));
  SPK_ASSIGN(const EntryInfo info, opened.info());
  if (info.size_bytes != container.size_bytes || info.mtime_ns != container.mtime_ns) {
    return Status(Code::kMismatch, "the file was written to meanwhile")
        .at_path(escape_bytes(container.path))
        .with_hint("run again once nothing is written to the source");
  }
  if (container.packing == Packing::kNone) return read_plain(std::move(opened), window_bytes);
  return read_unpacked(std::move(opened), container.packing, window_bytes, lenient,
                       std::move(keep));
}

Result<std::string> ContainerSet::sorting_place() const {
  if (spool_ == nullptr) return std::filesystem::temp_directory_path().string();
  return spool_->sorting_place();
}

Result<std::unique_ptr<SampleHandle>> ContainerSet::open_sample(const SampleEntry& entry) const {
  auto handle = open_pieces(*files_, entry);
  if (handle.ok()) return handle;
  const Code code = handle.status().code();
  if (code != Code::kNotFound && code != Code::kDenied) return handle;
  return Status(Code::kMismatch,
                str_cat("a container of samples is out of reach: ", handle.status().message()))
      .at_path(handle.status().path())
      .with_hint(kChangedSourceHint);
}

Result<FoundContainers> find_containers(const std::vector<std::string>& files, bool is_folder,
                                        bool zlib_too, bool empty_too,
                                        bool (*is_plain)(ByteSpan head), const char* what) {
  FoundContainers found;
  for (const std::string& path : files) {
    SPK_ASSIGN(const File file, File::open_read(path));
    SPK_ASSIGN(const std::vector<uint8_t> head, read_head(file));
    bool known = false;
    SPK_ASSIGN(const Packing packing, look_at_head(file, head, zlib_too, is_plain, &known));
    // What this build cannot unpack is told when it is opened.
    if (!known && packing != Packing::kNone && !check_can_unpack(packing).ok()) known = true;
    if (known || (head.empty() && empty_too && !is_index_of_another(path, files))) {
      found.paths.push_back(path);
    } else if (is_folder) {
      ++found.others;
    } else {
      return Status(Code::kNotThisFormat, str_cat("not ", what))
          .at_path(escape_bytes(path))
          .with_hint("--source says what SRC is, where it cannot be told");
    }
  }
  return found;
}

Result<bool> holds_container(const std::vector<std::string>& files, bool zlib_too,
                             bool (*is_plain)(ByteSpan head)) {
  size_t looked_at = 0;
  for (const std::string& path : files) {
    auto file = File::open_read(path);
    if (!file.ok()) continue;  // of a folder: another file's matter, or told when it is opened
    SPK_ASSIGN(const std::vector<uint8_t> head, read_head(*file));
    if (head.empty()) continue;
    bool known = false;
    SPK_TRY(look_at_head(*file, head, zlib_too, is_plain, &known).status());
    if (known) return true;
    if (++looked_at == kFilesLookedAt) break;
  }
  return false;
}

Result<bool> holds_container(const SourceLook& look, bool zlib_too,
                             bool (*is_plain)(ByteSpan head)) {
  const auto is_picture = [](const std::string& path) { return is_picture_name(path); };
  if (look.is_folder &&
      (look.has_folders || std::any_of(look.files.begin(), look.files.end(), is_picture))) {
    return false;
  }
  return holds_container(look.files, zlib_too, is_plain);
}

}  // namespace spk
