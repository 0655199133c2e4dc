#include "io/cache_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "io/file.h"

namespace spk {

namespace {

constexpr uint64_t kMostBytes = 64 << 10;

// The first bytes of a file of the kernel's; empty where there is none.
std::string read_text(const std::string& path) {
  const Result<File> file = File::open_read(path);
  if (!file.ok()) return {};
  std::vector<uint8_t> bytes(kMostBytes);
  const Result<uint64_t> got = file->read_some(0, bytes);
  if (!got.ok()) return {};
  return std::string(as_text(ByteSpan(bytes).first(*got)));
}

// The number that TEXT begins with, after spaces; none where it says "max".
std::optional<uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data()) return {};
  return number;
}

uint64_t available_bytes(const std::string& root) {
  const std::string text = read_text(root + "/proc/meminfo");
  constexpr std::string_view kName = "MemAvailable:";
  const size_t at = text.find(kName);
  if (at == std::string::npos) return UINT64_MAX;
  const auto kib = leading_number(std::string_view(text).substr(at + kName.size()));
  return kib && *kib <= UINT64_MAX / 1024 ? *kib * 1024 : UINT64_MAX;
}

// The least limit of the group GROUP ("/a/b") and those above it. In a container the path may be
// one of the host's, of which only the last part, the root, is to be seen.
uint64_t group_limit(const std::string& tree, std::string_view group,
                     std::initializer_list<const char*> files) {
  uint64_t least = UINT64_MAX;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.remove_suffix(1);
    for (const char* file : files) {
      const auto limit = leading_number(read_text(str_cat(tree, group, "/", file)));
      if (limit) least = std::min(least, *limit);
    }
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/') == std::string_view::npos ? 0 : group.rfind('/'));
  }
}

bool names_memory(std::string_view controllers) {
  return str_cat(",", controllers, ",").find(",memory,") != std::string::npos;
}

}  // namespace

uint64_t cache_memory_bytes(const std::string& root) {
  uint64_t least = available_bytes(root);
  const std::string groups = read_text(root + "/proc/self/cgroup");
  std::string_view rest = groups;
  while (!rest.empty()) {
    // "0::/a/b" of version 2, "4:cpu,memory:/a/b" of version 1.
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string_view group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least,
                       group_limit(root + "/sys/fs/cgroup", group, {"memory.max", "memory.high"}));
    } else if (names_memory(controllers)) {
      least = std::min(
          least, group_limit(root + "/sys/fs/cgroup/memory", group, {"memory.limit_in_bytes"}));
    }
  }
  return least;
}

}  // namespace spk
