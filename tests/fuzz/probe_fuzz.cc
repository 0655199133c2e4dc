// Any bytes at all must be told apart without a crash, a hang or much memory, and a view of windows
// must give what a view of memory gives.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "image/probe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using spk::CheckMode;
  spk::ProbeOptions options;
  options.max_pixels = uint64_t{1} << 20;
  bool structure_rejects = false;
  for (CheckMode mode : {CheckMode::kNone, CheckMode::kStructure, CheckMode::kDecode}) {
    options.check = mode;
    spk::MemoryView memory({data, size});
    const auto result = spk::probe_picture(memory, options);
    if (!result.ok()) std::abort();  // memory cannot fail to be read
    spk::CallbackView windows(size, [&](uint64_t offset, spk::MutableByteSpan into) {
      if (offset > size || into.size() > size - offset) std::abort();
      std::memcpy(into.data(), data + offset, into.size());
      return spk::Status();
    });
    const auto other = spk::probe_picture(windows, options);
    if (!other.ok() || other->reject != result->reject || other->height != result->height ||
        other->width != result->width || other->channels != result->channels ||
        other->format != result->format || other->warnings != result->warnings) {
      std::abort();
    }
    if (mode == CheckMode::kNone && !result->reject.empty()) std::abort();
    const bool accepted = mode != CheckMode::kNone && result->reject.empty();
    if (accepted && (result->height == 0 || result->width == 0 || result->channels == 0 ||
                     uint64_t{result->height} * result->width > options.max_pixels)) {
      std::abort();
    }
    if (mode == CheckMode::kStructure) structure_rejects = !result->reject.empty();
    // What the structure alone condemns, decoding does not save.
    if (mode == CheckMode::kDecode && structure_rejects && result->reject.empty()) std::abort();
  }
  return 0;
}
