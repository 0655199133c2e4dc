#include "ui/version.h"

#include "base/text.h"
#include "format/constants.h"

namespace spk {

namespace {

// The build sets SPK_HAVE_x to 1 where library x is used; unset reads as 0 here.
struct Feature {
  const char* name;
  bool on;
};
constexpr Feature kFeatures[] = {
#if SPK_HAVE_XXHASH
    {"xxhash", true},
#else
    {"xxhash", false},
#endif
#if SPK_HAVE_URING
    {"io_uring", true},
#else
    {"io_uring", false},
#endif
#if SPK_HAVE_JPEG
    {"jpeg", true},
#else
    {"jpeg", false},
#endif
#if SPK_HAVE_PNG
    {"png", true},
#else
    {"png", false},
#endif
#if SPK_HAVE_WEBP
    {"webp", true},
#else
    {"webp", false},
#endif
#if SPK_HAVE_TIFF
    {"tiff", true},
#else
    {"tiff", false},
#endif
#if SPK_HAVE_GIF
    {"gif", true},
#else
    {"gif", false},
#endif
#if SPK_HAVE_ZLIB
    {"zlib", true},
#else
    {"zlib", false},
#endif
#if SPK_HAVE_ZSTD
    {"zstd", true},
#else
    {"zstd", false},
#endif
#if SPK_HAVE_HDF5
    {"hdf5", true},
#else
    {"hdf5", false},
#endif
#if SPK_HAVE_LMDB
    {"lmdb", true},
#else
    {"lmdb", false},
#endif
#if SPK_HAVE_OPENSSL
    {"sha256", true},
#else
    {"sha256", false},
#endif
};

}  // namespace

const char* program_version() noexcept { return SPK_PROGRAM_VERSION; }

std::string version_text() {
  std::string text = str_cat("stripepack ", program_version(), "\nformat version ", kFormatVersion);
  std::string on;
  std::string off;
  for (const Feature& feature : kFeatures) (feature.on ? on : off) += str_cat(' ', feature.name);
  text += str_cat("\nbuilt with:", on.empty() ? " nothing optional" : on);
  if (!off.empty()) text += str_cat("\nbuilt without:", off);
  return text;
}

}  // namespace spk
