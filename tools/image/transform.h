// Pictures made anew while packing: turned, resized, recoloured, encoded. What comes out depends on
// the picture, the options and the versions of the picture libraries alone.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "image/colour_profile.h"
#include "image/probe.h"
#include "image/transform_geometry.h"
#include "pipeline/transform_options.h"

namespace spk {

// 8-bit pixels, HWC, where a sample is that and no encoded picture (height is not 0).
struct RawSize {
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;
};

struct Transformed {
  bool same = false;           // it fits already: its own bytes are taken
  std::vector<uint8_t> bytes;  // otherwise
  RawSize size;                // of what comes out; unset where `same`
  std::string reject;          // not empty: why there is nothing
  // What is worth telling of the picture, by kind.
  std::vector<std::string> warnings;
  PictureGeometry geometry;  // where each pixel went, for what belongs to it; unset where `reject`
};

// kInvalidArgument where options contradict each other or no picture can become what they ask for,
// as far as they tell; kUnsupported where this build cannot do it.
Status check_transform(const TransformOptions& options,
                       uint64_t max_pixels = PackOptions{}.max_pixels,
                       uint64_t memory_bytes = UINT64_MAX);

// kUnknown where the picture keeps its format, or has none.
PictureFormat picture_format_of(EncodeAs encode) noexcept;

// A guess at what a sample of so many bytes becomes, from the options alone; the same on every run.
uint64_t estimated_bytes(const TransformOptions& options, uint64_t bytes);

class Transformer {
 public:
  // Pixels being decoded take about `memory_bytes` at most, or what one picture needs if that is
  // more. REQUIRES check_transform(options).
  Transformer(const TransformOptions& options, uint64_t max_pixels, uint64_t memory_bytes);
  ~Transformer();
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  // RAW: where DATA are pixels. A Status tells of the machine, never of the picture. Thread-safe.
  Result<Transformed> run(ByteSpan data, const RawSize& raw) const;
  // What belongs to the picture pixel by pixel, a PNG of its size: the same way, each pixel being
  // that which is nearest; lossless. Thread-safe.
  Result<Transformed> run_mask(ByteSpan data, const PictureGeometry& geometry) const;

 private:
  class Work;
  struct Scratch;
  class Room;

  std::unique_ptr<Scratch> borrow() const;
  void give_back(std::unique_ptr<Scratch> scratch) const;

  const TransformOptions options_;
  const uint64_t max_pixels_;
  const uint64_t memory_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable room_freed_;
  mutable uint64_t in_use_bytes_ = 0;
  mutable std::vector<std::unique_ptr<Scratch>> spare_;
  mutable image::ProfileConversions conversions_;
};

}  // namespace spk
