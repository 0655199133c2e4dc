#include "io/beegfs_layout.h"

#include <bit>
#include <cerrno>
#include <string>

#include "base/text.h"

namespace spk {

namespace {

constexpr unsigned long kGetStripeInfo = 0x800C6619;
constexpr unsigned long kGetStripeTarget = 0x8106661A;
constexpr unsigned long kMakeFileWithHints = 0x4018661B;
constexpr uint16_t kMostTargets = 4096;

struct StripeInfo {
  uint32_t pattern;
  uint32_t chunk_bytes;
  uint16_t target_count;
};
static_assert(sizeof(StripeInfo) == 12);

struct StripeTarget {
  uint16_t index;
  uint16_t target;
  uint16_t node;
  char node_name[256];
};
static_assert(sizeof(StripeTarget) == 262);

struct MakeFile {
  const char* name;
  uint32_t mode;
  uint32_t target_count;
  uint32_t chunk_bytes;
};
static_assert(sizeof(MakeFile) == 24);

}  // namespace

Result<StripeLayout> read_beegfs_layout(int fd, const StripeCalls& calls) {
  StripeLayout layout;
  StripeInfo info = {};
  if (calls.control(fd, kGetStripeInfo, &info) != 0) return layout;
  layout.system = StripeSystem::kBeegfs;
  if (info.chunk_bytes == 0 || info.target_count > kMostTargets) {
    return damaged(str_cat("BeeGFS tells of chunks of ", info.chunk_bytes, " bytes on ",
                           info.target_count, " targets"));
  }
  StripeComponent component;
  component.stripe_bytes = info.chunk_bytes;
  component.stripe_count = info.target_count;
  for (uint16_t i = 0; i < info.target_count; ++i) {
    StripeTarget target = {};
    target.index = i;
    if (calls.control(fd, kGetStripeTarget, &target) != 0) {
      component.targets.clear();  // a directory has none
      break;
    }
    component.targets.push_back(target.target);
  }
  layout.components.push_back(std::move(component));
  return layout;
}

Status check_beegfs_request(uint64_t chunk_bytes, uint32_t target_count) {
  if (chunk_bytes != 0 && (chunk_bytes < kBeegfsLeastChunkBytes || chunk_bytes > UINT32_MAX ||
                           !std::has_single_bit(chunk_bytes))) {
    return invalid_argument(str_cat("--stripe-size ", format_size(chunk_bytes),
                                    ": BeeGFS takes powers of two from 64 KiB to 2 GiB"));
  }
  if (target_count != kAllTargets && target_count > kMostTargets) {
    return invalid_argument(
        str_cat("--stripe-count ", target_count, ": BeeGFS takes ", kMostTargets, " at most"));
  }
  return {};
}

Status make_beegfs_file(int directory_fd, std::string_view name, uint64_t chunk_bytes,
                        uint32_t target_count, const StripeCalls& calls) {
  const std::string text(name);
  // S_IFREG | 0666, of which the umask takes its part.
  MakeFile request = {text.c_str(), 0100666, target_count, static_cast<uint32_t>(chunk_bytes)};
  if (calls.control(directory_fd, kMakeFileWithHints, &request) == 0) return {};
  return Status::from_errno(errno, "the file system did not take the layout (MKFILE_STRIPEHINTS)");
}

}  // namespace spk
