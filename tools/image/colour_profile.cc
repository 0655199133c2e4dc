#include "image/colour_profile.h"

#include <algorithm>
#include <cstdlib>

#if SPK_HAVE_LCMS
#include <lcms2.h>
#endif

namespace spk::image {

ProfileSpace profile_space(ByteSpan profile) {
  constexpr size_t kHeaderBytes = 128;
  if (profile.size() < kHeaderBytes) return ProfileSpace::kOther;
  const std::string_view space = as_text(profile.subspan(16, 4));
  if (space == "GRAY") return ProfileSpace::kGrey;
  if (space == "RGB ") return ProfileSpace::kRgb;
  if (space == "CMYK") return ProfileSpace::kCmyk;
  return ProfileSpace::kOther;
}

#if SPK_HAVE_LCMS

namespace {

constexpr int kSameWithin = 1;  // of 255

struct CloseContext {
  using pointer = cmsContext;
  void operator()(cmsContext context) const { cmsDeleteContext(context); }
};
struct CloseProfile {
  using pointer = cmsHPROFILE;
  void operator()(cmsHPROFILE profile) const { cmsCloseProfile(profile); }
};
struct CloseTransform {
  using pointer = cmsHTRANSFORM;
  void operator()(cmsHTRANSFORM transform) const { cmsDeleteTransform(transform); }
};

class LcmsConversion final : public ProfileConversion {
 public:
  // False where Little CMS will not have the profile.
  bool open(ByteSpan profile, Ink ink) {
    context_.reset(cmsCreateContext(nullptr, nullptr));
    if (context_ == nullptr) return false;
    cmsSetLogErrorHandlerTHR(context_.get(), [](cmsContext, cmsUInt32Number, const char*) {});
    const std::unique_ptr<void, CloseProfile> from(cmsOpenProfileFromMemTHR(
        context_.get(), profile.data(), static_cast<cmsUInt32Number>(profile.size())));
    const std::unique_ptr<void, CloseProfile> to(cmsCreate_sRGBProfileTHR(context_.get()));
    if (from == nullptr || to == nullptr) return false;
    space_ = profile_space(profile);
    cmsUInt32Number layout = TYPE_RGB_8;
    if (space_ == ProfileSpace::kGrey) layout = TYPE_GRAY_8;
    if (space_ == ProfileSpace::kCmyk) {
      layout = ink == Ink::kZeroIsNone ? TYPE_CMYK_8 : TYPE_CMYK_8_REV;
    }
    // Without a cache of the last colour, which threads cannot share.
    transform_.reset(cmsCreateTransformTHR(context_.get(), from.get(), layout, to.get(), TYPE_RGB_8,
                                           INTENT_PERCEPTUAL, cmsFLAGS_NOCACHE));
    if (transform_ == nullptr) return false;
    is_srgb_ = space_ != ProfileSpace::kCmyk && changes_nothing();
    return true;
  }

  bool is_srgb() const override { return is_srgb_; }

  void run(const uint8_t* from, uint8_t* to, size_t count) const override {
    constexpr size_t kAtOnce = 4096;
    std::vector<uint8_t> grey(space_ == ProfileSpace::kGrey ? kAtOnce : 0);
    const size_t step = space_ == ProfileSpace::kCmyk ? 4 : 3;
    for (size_t done = 0; done < count; done += kAtOnce) {
      const size_t now = std::min(kAtOnce, count - done);
      const uint8_t* source = from + step * done;
      if (space_ == ProfileSpace::kGrey) {
        for (size_t i = 0; i < now; ++i) grey[i] = source[3 * i];
        source = grey.data();
      }
      cmsDoTransform(transform_.get(), source, to + 3 * done, static_cast<cmsUInt32Number>(now));
    }
  }

 private:
  bool changes_nothing() const {
    std::vector<uint8_t> before;
    constexpr int kStep = 17;
    for (int red = 0; red < 256; red += kStep) {
      for (int green = 0; green < 256; green += kStep) {
        for (int blue = 0; blue < 256; blue += kStep) {
          const bool grey = space_ == ProfileSpace::kGrey;
          for (const int value : {red, grey ? red : green, grey ? red : blue}) {
            before.push_back(static_cast<uint8_t>(value));
          }
        }
      }
    }
    std::vector<uint8_t> after(before.size());
    run(before.data(), after.data(), before.size() / 3);
    for (size_t i = 0; i < before.size(); ++i) {
      if (std::abs(int{before[i]} - int{after[i]}) > kSameWithin) return false;
    }
    return true;
  }

  std::unique_ptr<void, CloseContext> context_;
  std::unique_ptr<void, CloseTransform> transform_;
  ProfileSpace space_ = ProfileSpace::kOther;
  bool is_srgb_ = false;
};

std::shared_ptr<const ProfileConversion> make_conversion(ByteSpan profile,
                                                         ProfileConversion::Ink ink) {
  auto conversion = std::make_shared<LcmsConversion>();
  if (profile_space(profile) == ProfileSpace::kOther || !conversion->open(profile, ink)) return {};
  return conversion;
}

}  // namespace

bool can_convert_profiles() noexcept { return true; }

#else

namespace {
std::shared_ptr<const ProfileConversion> make_conversion(ByteSpan, ProfileConversion::Ink) {
  return {};
}
}  // namespace

bool can_convert_profiles() noexcept { return false; }

#endif

std::shared_ptr<const ProfileConversion> ProfileConversions::get(ByteSpan profile,
                                                                 ProfileConversion::Ink ink) {
  constexpr size_t kMostKnown = 8;
  const Hash128 id = xxh3_128(profile);
  const auto find = [&]() -> const Known* {
    for (const Known& known : known_) {
      if (known.id == id && known.ink == ink) return &known;
    }
    return nullptr;
  };
  {
    const std::lock_guard lock(mutex_);
    if (const Known* const known = find()) return known->conversion;
  }
  Known made{id, ink, make_conversion(profile, ink)};  // takes a while
  const std::lock_guard lock(mutex_);
  if (const Known* const known = find()) return known->conversion;
  if (known_.size() == kMostKnown) known_.erase(known_.begin());
  known_.push_back(made);
  return made.conversion;
}

}  // namespace spk::image
