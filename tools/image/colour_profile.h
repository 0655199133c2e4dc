// Colours by their ICC profile to sRGB.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "image/probe.h"

namespace spk::image {

// What the pixels of a profile are, as its header says.
enum class ProfileSpace { kOther, kGrey, kRgb, kCmyk };
ProfileSpace profile_space(ByteSpan profile);

// Whether this build has Little CMS.
bool can_convert_profiles() noexcept;

// From one profile to sRGB, by the perceptual intent. Thread-safe.
class ProfileConversion {
 public:
  enum class Ink { kZeroIsNone, kZeroIsFull };  // of CMYK

  virtual ~ProfileConversion() = default;
  // The profile is sRGB's, up to rounding: colours need no conversion.
  virtual bool is_srgb() const = 0;
  // COUNT pixels: of RGB in 3 bytes each, in place; of grey as RGB with three equal bytes, in
  // place; of CMYK from 4 bytes each to 3 in TO, which may be FROM.
  virtual void run(const uint8_t* from, uint8_t* to, size_t count) const = 0;
};

// Conversions that have been made, for pictures of one origin mostly have one profile. Thread-safe.
class ProfileConversions {
 public:
  // Null where the profile cannot be used. INK: of CMYK.
  std::shared_ptr<const ProfileConversion> get(ByteSpan profile, ProfileConversion::Ink ink);

 private:
  struct Known {
    Hash128 id;
    ProfileConversion::Ink ink;
    std::shared_ptr<const ProfileConversion> conversion;
  };
  std::mutex mutex_;
  std::vector<Known> known_;  // the last few
};

}  // namespace spk::image
