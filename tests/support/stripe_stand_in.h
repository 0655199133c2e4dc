// Stand-ins for file systems that cannot be run here: they answer the extended attributes and
// ioctls that Lustre's and BeeGFS' headers document, over files of an ordinary directory. They
// prove that our side speaks as documented, not that a real Lustre or BeeGFS agrees.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "io/stripe_calls.h"

namespace spk {

class LustreStandIn : public StripeCalls {
 public:
  uint32_t target_count = 8;
  bool refuses_layouts = false;
  std::vector<uint8_t> directory_default;    // value of lustre.lov of directories
  std::vector<uint8_t> answer;               // where set: what every file answers
  mutable std::vector<std::string> created;  // names with "+delayed" where so asked
  mutable std::vector<std::vector<uint8_t>> layouts_set;

  FileSystemInfo identify(int fd) const override {
    FileSystemInfo info = StripeCalls::identify(fd);
    info.kind = FileSystemKind::kLustre;
    info.name = "lustre";
    info.network = true;
    return info;
  }
  ssize_t get_xattr(int fd, const char* name, void* value, size_t size) const override {
    if (std::string(name) != "lustre.lov") return fail(EOPNOTSUPP);
    const std::vector<uint8_t>& stored = is_directory(fd)  ? directory_default
                                         : !answer.empty() ? answer
                                                           : files_[inode(fd)];
    if (stored.empty()) return fail(ENODATA);
    if (stored.size() > size) return fail(ERANGE);
    std::memcpy(value, stored.data(), stored.size());
    return static_cast<ssize_t>(stored.size());
  }
  // As the metadata server does: the objects are chosen when the layout is set.
  int set_xattr(int fd, const char* name, const void* value, size_t size) const override {
    if (std::string(name) != "lustre.lov") return fail(EOPNOTSUPP);
    const auto* bytes = static_cast<const uint8_t*>(value);
    layouts_set.emplace_back(bytes, bytes + size);
    if (refuses_layouts) return fail(EINVAL);
    std::vector<uint8_t> stored(bytes, bytes + size);
    uint32_t count = load_le<uint16_t>(bytes + 28);
    if (count == 0) count = 1;
    if (count == 0xFFFF || count > target_count) count = target_count;
    store_le<uint16_t>(stored.data() + 28, static_cast<uint16_t>(count));
    const uint16_t asked_start = load_le<uint16_t>(bytes + 30);
    const uint32_t start = asked_start == 0xFFFF ? 5 : asked_start;
    if (start >= target_count) return fail(EINVAL);
    for (uint32_t i = 0; i < count; ++i) {
      std::vector<uint8_t> object(24, 0);
      store_le<uint32_t>(object.data() + 20, (start + i) % target_count);
      stored.insert(stored.end(), object.begin(), object.end());
    }
    files_[inode(fd)] = stored;
    return 0;
  }
  int control(int, unsigned long request, void* argument) const override {
    if (request != 0x800866A8) return static_cast<int>(fail(ENOTTY));
    *static_cast<long*>(argument) = static_cast<long>(target_count);
    return 0;
  }
  int create(int directory_fd, const char* name, int more_flags) const override {
    created.push_back(std::string(name) + (more_flags != 0 ? "+delayed" : ""));
    return StripeCalls::create(directory_fd, name, 0);
  }

 protected:
  static ssize_t fail(int number) {
    errno = number;
    return -1;
  }
  static bool is_directory(int fd) {
    struct stat info;
    return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  }
  static ino_t inode(int fd) {
    struct stat info;
    return ::fstat(fd, &info) == 0 ? info.st_ino : 0;
  }

 private:
  mutable std::map<ino_t, std::vector<uint8_t>> files_;
};

class BeegfsStandIn : public StripeCalls {
 public:
  uint32_t chunk_bytes = 512u << 10;
  std::vector<uint16_t> targets = {101, 102, 103, 104};
  bool refuses_hints = false;
  mutable std::vector<std::string> made;  // "NAME MODE TARGETS CHUNK"

  FileSystemInfo identify(int fd) const override {
    FileSystemInfo info = StripeCalls::identify(fd);
    info.kind = FileSystemKind::kBeegfs;
    info.name = "beegfs";
    info.network = true;
    return info;
  }
  int control(int fd, unsigned long request, void* argument) const override {
    struct stat info;
    if (::fstat(fd, &info) != 0) return -1;
    auto* bytes = static_cast<uint8_t*>(argument);
    const auto file = files_.find(info.st_ino);
    if (request == 0x800C6619) {  // {u32 pattern, u32 chunk, u16 targets}
      const bool known = file != files_.end();
      store_le<uint32_t>(bytes, 1);
      store_le<uint32_t>(bytes + 4, known ? file->second.first : chunk_bytes);
      store_le<uint16_t>(
          bytes + 8, static_cast<uint16_t>(known ? file->second.second.size() : targets.size()));
      return 0;
    }
    if (request == 0x8106661A) {  // {u16 index in, u16 target, u16 node, char[256]}
      const uint16_t index = load_le<uint16_t>(bytes);
      if (file == files_.end() || index >= file->second.second.size()) return fail(EINVAL);
      store_le<uint16_t>(bytes + 2, file->second.second[index]);
      return 0;
    }
    if (request == 0x4018661B) return make(fd, bytes);
    return fail(ENOTTY);
  }

 private:
  static int fail(int number) {
    errno = number;
    return -1;
  }
  int make(int directory_fd, const uint8_t* argument) const {
    const char* name = nullptr;
    std::memcpy(&name, argument, sizeof name);
    const uint32_t mode = load_le<uint32_t>(argument + 8);
    uint32_t count = load_le<uint32_t>(argument + 12);
    uint32_t chunk = load_le<uint32_t>(argument + 16);
    made.push_back(std::string(name) + " " + std::to_string(mode) + " " + std::to_string(count) +
                   " " + std::to_string(chunk));
    if (refuses_hints) return fail(EPERM);
    const int fd = StripeCalls::create(directory_fd, name, 0);
    if (fd < 0) return -1;
    if (count == 0 || count > targets.size()) count = static_cast<uint32_t>(targets.size());
    if (chunk == 0) chunk = chunk_bytes;
    struct stat info;
    if (::fstat(fd, &info) == 0) {
      files_[info.st_ino] = {chunk, {targets.begin(), targets.begin() + count}};
    }
    ::close(fd);
    return 0;
  }
  mutable std::map<ino_t, std::pair<uint32_t, std::vector<uint16_t>>> files_;
};

}  // namespace spk
