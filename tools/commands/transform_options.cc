#include "commands/transform_options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "commands/options.h"
#include "image/transform.h"

namespace spk {

namespace {

constexpr char kGroup[] = "Pictures made anew";

// All of the text, without a sign.
bool read_number(std::string_view text, int base, uint32_t* value) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, *value, base);
  return !text.empty() && read.ec == std::errc() && read.ptr == end;
}

void take_size(const std::string& word, TransformOptions* options) {
  const size_t cross = word.find('x');
  const bool one = cross == word.npos;
  const std::string_view text = word;
  uint32_t width = 0;
  uint32_t height = 0;
  bool good = read_number(one ? text : text.substr(0, cross), 10, &width) && width != 0;
  if (one) {
    height = width;
  } else {
    good = good && read_number(text.substr(cross + 1), 10, &height) && height != 0;
  }
  if (!good) {
    throw CLI::ValidationError("--resize", "'" + word + "' is neither N nor WxH");
  }
  options->width = width;
  options->height = height;
  options->box = !one;
  if (!one) options->mode = ResizeMode::kExact;  // unless --resize-mode, which comes later, says so
}

void take_background(const std::string& word, TransformOptions* options) {
  uint32_t colour = 0;
  if (word.size() != 6 || !read_number(word, 16, &colour)) {
    throw CLI::ValidationError("--background", "'" + word + "' is not RRGGBB, such as ffffff");
  }
  options->background = colour;
}

}  // namespace

void add_transform_options(CLI::App& sub, TransformOptions* options) {
  sub.add_option_function<std::string>(
         "--resize", [options](const std::string& word) { take_size(word, options); },
         "Resize pictures: N pixels or WxH, see --resize-mode; WxH alone means exactly")
      ->type_name("N|WxH")
      ->group(kGroup);
  add_choice_option<ResizeMode>(sub, "--resize-mode", &options->mode,
                                {{"keep_ratio", ResizeMode::kKeepRatio},
                                 {"keep_ratio_largest", ResizeMode::kKeepRatioLargest},
                                 {"center_crop", ResizeMode::kCenterCrop},
                                 {"border", ResizeMode::kBorder},
                                 {"exact", ResizeMode::kExact}},
                                "N is the shorter side (default), the longer one, the side of the "
                                "middle square, the longer one and a border, both sides. WxH: what "
                                "fits inside, what covers it, its middle, with a border, exactly")
      ->group(kGroup);
  sub.add_flag("--only-if-bigger", options->only_if_bigger,
               "Resize only what gets smaller; the rest stays as it is")
      ->group(kGroup);
  add_choice_option<ResizeFilter>(sub, "--interpolation", &options->filter,
                                  {{"area", ResizeFilter::kArea},
                                   {"lanczos", ResizeFilter::kLanczos},
                                   {"bilinear", ResizeFilter::kBilinear}},
                                  "How pixels are weighed; default area")
      ->group(kGroup);
  add_choice_option<EncodeAs>(sub, "--encode", &options->encode,
                              {{"jpeg", EncodeAs::kJpeg},
                               {"png", EncodeAs::kPng},
                               {"webp", EncodeAs::kWebp},
                               {"raw", EncodeAs::kRaw}},
                              "Format to store; raw: bytes of pixels; default the picture's own")
      ->group(kGroup);
  sub.add_option("--quality", options->quality, "Of JPEG and WebP, 1 to 100; default 95")
      ->check(CLI::Range(1, 100))
      ->group(kGroup);
  add_choice_option<ColourMode>(sub, "--color", &options->colour,
                                {{"rgb", ColourMode::kRgb}, {"gray", ColourMode::kGray}},
                                "Colours to store; default the picture's own")
      ->group(kGroup);
  sub.add_flag("--orient", options->orient, "Turn pictures upright as their EXIF says")
      ->group(kGroup);
  sub.add_flag("--strip-metadata", options->strip_metadata,
               "Drop EXIF, XMP and text, and the colour profile of what is made anew")
      ->group(kGroup);
  sub.add_option_function<std::string>(
         "--background", [options](const std::string& word) { take_background(word, options); },
         "Colour below transparent pixels and of borders; default: alpha dropped, borders white")
      ->type_name("RRGGBB")
      ->group(kGroup);
  add_choice_option<ProfileMode>(sub, "--icc", &options->profile,
                                 {{"keep", ProfileMode::kKeep}, {"srgb", ProfileMode::kSrgb}},
                                 "Colour profiles: kept with the pixels (default), or the colours "
                                 "made sRGB by them")
      ->group(kGroup);
  sub.add_option("--mask-field", options->mask_fields,
                 "A field of PNG masks, which go where the picture goes: each pixel the nearest, "
                 "without loss; may be given several times")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->group(kGroup);
}

Status check_transform_options(const CLI::App& sub, const PackOptions& pack) {
  const TransformOptions& options = pack.transform;
  for (const char* name : {"--resize-mode", "--interpolation"}) {
    if (sub.count(name) != 0 && !options.resizes()) {
      return invalid_argument(std::string(name) + " needs --resize");
    }
  }
  if (sub.count("--quality") != 0 && !options.on()) {
    return invalid_argument("--quality needs --encode, --resize or another option of that kind");
  }
  if (options.only_if_bigger && !options.resizes()) {
    return invalid_argument("--only-if-bigger needs --resize");
  }
  if (!options.mask_fields.empty() && !options.resizes() && !options.orient) {
    return invalid_argument("--mask-field needs --resize or --orient");
  }
  return check_transform(options, pack.max_pixels, pack.memory_bytes);
}

}  // namespace spk
