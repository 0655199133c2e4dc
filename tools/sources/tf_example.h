// tf.train.Example, the message in which TensorFlow keeps a sample: named features, each a list of
// byte strings, of floats or of 64-bit integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sources/proto_wire.h"

namespace spk {

struct TfFeature {
  enum class Kind { kNone, kBytes, kFloats, kInts };
  std::string name;
  Kind kind = Kind::kNone;
  // The list's own message, in what was read.
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct TfPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class TfExample {
 public:
  // The message at [begin, end) of what READ reads. kDamaged where it is none.
  static Result<TfExample> parse(WireWalk::Read read, uint64_t begin, uint64_t end);

  const std::vector<TfFeature>& features() const noexcept { return features_; }
  // Null where there is none of that name.
  const TfFeature* find(std::string_view name) const noexcept;
  // The values of a feature of that kind. kUnsupported where there are more than kMostValues.
  static constexpr size_t kMostValues = size_t{1} << 20;
  Result<std::vector<TfPlace>> byte_strings(const TfFeature& feature) const;
  Result<std::vector<float>> floats(const TfFeature& feature) const;
  Result<std::vector<int64_t>> ints(const TfFeature& feature) const;
  Result<std::string> text(const TfPlace& place) const;

 private:
  WireWalk::Read read_;
  std::vector<TfFeature> features_;
};

}  // namespace spk
