// Which libraries decide what pictures become.
#if SPK_HAVE_JPEG
#include <cstdio>  // jpeglib.h needs it
// jpeglib.h comes last.
#include <jpeglib.h>
#endif
#if SPK_HAVE_GIF
#include <gif_lib.h>
#endif
#if SPK_HAVE_LCMS
#include <lcms2.h>
#endif
#if SPK_HAVE_PNG
#include <png.h>
#endif
#if SPK_HAVE_TIFF
#include <tiffio.h>
#endif
#if SPK_HAVE_WEBP
#include <webp/decode.h>
#include <webp/encode.h>
#endif
#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/text.h"
#include "image/encode.h"

namespace spk::image {
namespace {

#if SPK_HAVE_WEBP
std::string webp_version(int version) {
  return str_cat(version >> 16, ".", version >> 8 & 255, ".", version & 255);
}
#endif

#if SPK_HAVE_TIFF
// It says "LIBTIFF, Version 4.5.0", a copyright behind that.
std::string tiff_version() {
  std::string_view text = TIFFGetVersion();
  text = text.substr(0, text.find('\n'));
  return std::string(text.substr(text.rfind(' ') + 1));
}
#endif

}  // namespace

std::vector<std::pair<std::string, std::string>> codec_versions(
    [[maybe_unused]] bool converts_profiles) {
  std::vector<std::pair<std::string, std::string>> found;
#if SPK_HAVE_JPEG
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  constexpr int kTurbo = LIBJPEG_TURBO_VERSION_NUMBER;
  found.emplace_back("libjpeg", str_cat("turbo ", kTurbo / 1000000, ".", kTurbo / 1000 % 1000, ".",
                                        kTurbo % 1000));
#else
  found.emplace_back("libjpeg", str_cat(JPEG_LIB_VERSION));
#endif
#endif
#if SPK_HAVE_PNG
  found.emplace_back("libpng", png_get_libpng_ver(nullptr));
#endif
#if SPK_HAVE_ZLIB
  found.emplace_back("zlib", zlibVersion());
#endif
#if SPK_HAVE_WEBP
  found.emplace_back("libwebp", str_cat(webp_version(WebPGetDecoderVersion()), " ",
                                        webp_version(WebPGetEncoderVersion())));
#endif
#if SPK_HAVE_GIF
  found.emplace_back("giflib", str_cat(GIFLIB_MAJOR, ".", GIFLIB_MINOR, ".", GIFLIB_RELEASE));
#endif
#if SPK_HAVE_TIFF
  found.emplace_back("libtiff", tiff_version());
#endif
#if SPK_HAVE_LCMS
  if (converts_profiles) {
    const int version = cmsGetEncodedCMMversion();  // 2140 is 2.14
    found.emplace_back("lcms2", str_cat(version / 1000, ".", version % 1000 / 10));
  }
#endif
  return found;
}

}  // namespace spk::image
