#include "io/process_identity.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace spk {

namespace {

struct Facts {
  bool there = false;
  char state = '?';
  uint64_t threads = 0;
  uint64_t begun = 0;  // in ticks since the system began
};

// Words of /proc/PID/stat behind the name, which may hold spaces and brackets; counted as in
// proc(5), where the state is number 3.
constexpr size_t kState = 3;
constexpr size_t kThreads = 20;
constexpr size_t kBegun = 22;

Facts facts_of(uint32_t pid) noexcept {
  char path[32] = "/proc/";
  char* const end = std::to_chars(path + 6, path + 20, pid).ptr;
  std::memcpy(end, "/stat", 6);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024];
  ssize_t got;
  do {
    got = ::read(fd, text, sizeof text);
  } while (got < 0 && errno == EINTR);
  ::close(fd);
  std::string_view rest(text, got > 0 ? static_cast<size_t>(got) : 0);
  const size_t name_end = rest.rfind(") ");
  if (name_end == std::string_view::npos) return {};
  rest.remove_prefix(name_end + 2);
  Facts facts;
  for (size_t word = kState; word <= kBegun && !rest.empty(); ++word) {
    const std::string_view value = rest.substr(0, rest.find(' '));
    const auto number = [&](uint64_t& into) {
      std::from_chars(value.data(), value.data() + value.size(), into);
    };
    if (word == kState && !value.empty()) facts.state = value.front();
    if (word == kThreads) number(facts.threads);
    if (word == kBegun) {
      number(facts.begun);
      facts.there = true;
    }
    rest.remove_prefix(value.size() < rest.size() ? value.size() + 1 : rest.size());
  }
  return facts;
}

uint64_t identity_of(uint32_t pid, uint64_t begun) noexcept {
  return uint64_t{pid} << 32 | (begun & UINT32_MAX);
}

}  // namespace

uint64_t process_identity() noexcept {
  const auto pid = static_cast<uint32_t>(::getpid());
  return identity_of(pid, facts_of(pid).begun);
}

bool is_this_process(uint64_t identity) noexcept {
  return identity >> 32 == static_cast<uint32_t>(::getpid());
}

bool is_process_alive(uint64_t identity) noexcept {
  const auto pid = static_cast<uint32_t>(identity >> 32);
  if (pid == 0) return false;
  const Facts facts = facts_of(pid);
  if (!facts.there) return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
  // Ended, but its parent has not asked yet. Other threads may go on when the first has ended.
  if ((facts.state == 'Z' || facts.state == 'X') && facts.threads <= 1) return false;
  return (identity & UINT32_MAX) == 0 || identity_of(pid, facts.begun) == identity;
}

uint64_t process_namespace() noexcept {
  struct stat facts = {};
  return ::stat("/proc/self/ns/pid", &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace spk
