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
#include "image/probe.h"
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
};

// kInvalidArgument where options contradict each other, kUnsupported where this build cannot do
// what they ask for.
Status check_transform(const TransformOptions& options);

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
};

}  // namespace spk
