// Any bytes as what file systems answer when they are asked for stripe layouts, and as the record
// of them: refused with a code that callers know, or a layout that can be worked with, that holds
// no more than was told, and that comes back the same from layout.json.
//
// The first byte says whose answer the rest is: an extended attribute of Lustre or CephFS, what
// BeeGFS' ioctls fill in, or a layout.json.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "commands/stripe_text.h"
#include "container/layout_record.h"
#include "io/ceph_layout.h"
#include "io/stripes.h"

namespace {

using namespace spk;  // NOLINT(google-build-using-namespace): a program of its own

void require(bool holds) {
  if (!holds) std::abort();
}

// Answers every attribute with the same bytes; an ioctl with the next of them, and fails where
// there are none left.
class AnyAnswers : public StripeCalls {
 public:
  AnyAnswers(FileSystemKind kind, ByteSpan bytes) : kind_(kind), rest_(bytes) {}
  FileSystemInfo identify(int) const override {
    FileSystemInfo info;
    info.kind = kind_;
    info.name = "any";
    return info;
  }
  ssize_t get_xattr(int, const char*, void* value, size_t size) const override {
    if (rest_.size() > size) return fail(ERANGE);
    if (rest_.empty()) return fail(ENODATA);
    std::memcpy(value, rest_.data(), rest_.size());
    return static_cast<ssize_t>(rest_.size());
  }
  int control(int, unsigned long request, void* argument) const override {
    const bool is_target = request == 0x8106661A;  // its first two bytes are asked with
    const size_t size = is_target ? 4 : 12;
    if (rest_.size() < size) return static_cast<int>(fail(EINVAL));
    std::memcpy(static_cast<uint8_t*>(argument) + (is_target ? 2 : 0), rest_.data(), size);
    rest_ = rest_.subspan(size);
    return 0;
  }

 private:
  static ssize_t fail(int number) {
    errno = number;
    return -1;
  }
  const FileSystemKind kind_;
  mutable ByteSpan rest_;
};

void look_at(const StripeLayout& layout) {
  (void)stripe_text(layout);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{4} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    const StripeComponent* component = layout.at(offset);
    const auto target = stripe_target(layout, offset);
    require(!target || std::count(component->targets.begin(), component->targets.end(), *target));
    (void)stripe_object(layout, offset);
  }
}

void look_at(const LayoutRecord& record) {
  constexpr ChunkPlace kPlaces[] = {{0, 0}, {0, uint64_t{4} << 20}, {1, 0}, {1, UINT64_MAX}};
  for (const LayoutMap& map : record.maps) {
    for (const StripeLayout& layout : map.shards) look_at(layout);
    const std::vector<uint32_t> targets = chunk_targets(map.shards, kPlaces);
    require(targets.empty() || targets.size() == std::size(kPlaces));
    for (const uint32_t target : targets) require(target < std::size(kPlaces));
  }
  const std::string text = layout_record_text(record);
  const auto again = parse_layout_record(text);
  require(again.ok() && layout_record_text(*again) == text);
  require(again->maps.size() == record.maps.size());
  for (size_t i = 0; i < record.maps.size(); ++i) {
    const LayoutMap& was = record.maps[i];
    const LayoutMap& is = again->maps[i];
    require(is.digest == was.digest && is.made == was.made && is.file_system == was.file_system);
    require(is.asked == was.asked && is.refused == was.refused && is.shards == was.shards);
  }
}

void check_answer(FileSystemKind kind, ByteSpan bytes) {
  static const int file = ::memfd_create("shard", MFD_CLOEXEC);
  const AnyAnswers calls(kind, bytes);
  const auto layout = read_stripes(file, calls.identify(file), calls);
  if (!layout.ok()) {
    const Code code = layout.status().code();
    require(code == Code::kDamaged || code == Code::kUnsupported);
    return;
  }
  const size_t target_bytes = kind == FileSystemKind::kLustre ? 24 : 4;
  size_t targets = 0;
  for (const StripeComponent& component : layout->components) targets += component.targets.size();
  require(targets <= bytes.size() / target_bytes);
  if (layout->system == StripeSystem::kCeph && !layout->components.empty()) {
    const StripeComponent& only = layout->components.at(0);
    const auto text =
        format_ceph_layout({only.stripe_bytes, only.stripe_count, only.object_bytes, only.pool});
    require(text.ok() == (only.object_bytes <= kCephMostObjectBytes));
    if (text.ok()) require(*parse_ceph_layout(*text) == *layout);
  }
  LayoutRecord record;
  record.maps.emplace_back().shards = {*layout, StripeLayout(), *layout};
  look_at(record);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ByteSpan rest(data + 1, size - 1);
  switch (data[0]) {
    case 'L': check_answer(FileSystemKind::kLustre, rest); break;
    case 'C': check_answer(FileSystemKind::kCephfs, rest); break;
    case 'B': check_answer(FileSystemKind::kBeegfs, rest); break;
    case 'J': {
      const auto record = parse_layout_record(as_text(rest));
      if (record.ok()) look_at(*record);
      const Code code = record.status().code();
      require(code == Code::kOk || code == Code::kDamaged || code == Code::kUnsupported);
      break;
    }
    default: break;
  }
  return 0;
}
