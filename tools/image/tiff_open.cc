#include "image/tiff_open.h"

#if SPK_HAVE_TIFF

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace spk::image {
namespace {

#if TIFFLIB_VERSION >= 20221213
constexpr tmsize_t kMaxAllocation = tmsize_t{512} << 20;
#endif

tmsize_t on_read(thandle_t handle, void* to, tmsize_t want) {
  TiffInput& in = *static_cast<TiffInput*>(handle);
  tmsize_t got = 0;
  while (got < want) {
    Result<ByteSpan> piece = in.view->at(in.position, static_cast<size_t>(want - got));
    if (!piece.ok()) {
      in.io = std::move(piece).status();
      return -1;
    }
    if (piece->empty()) break;
    std::memcpy(static_cast<uint8_t*>(to) + got, piece->data(), piece->size());
    got += static_cast<tmsize_t>(piece->size());
    in.position += piece->size();
  }
  return got;
}

tmsize_t on_write(thandle_t, void*, tmsize_t) { return -1; }

toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  TiffInput& in = *static_cast<TiffInput*>(handle);
  switch (whence) {
    case SEEK_SET: in.position = offset; break;
    case SEEK_CUR: in.position += offset; break;
    case SEEK_END: in.position = in.view->size() + offset; break;
    default: return static_cast<toff_t>(-1);
  }
  return in.position;
}

int on_close(thandle_t) { return 0; }
toff_t on_size(thandle_t handle) { return static_cast<TiffInput*>(handle)->view->size(); }

void keep_first_message(TiffInput& in, const char* format, va_list arguments) {
  if (in.message[0] == '\0') {  // the first is nearest to the cause
    (void)std::vsnprintf(in.message, sizeof in.message, format, arguments);
  }
}

#if TIFFLIB_VERSION >= 20221213  // 4.5.0

int on_error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  keep_first_message(*static_cast<TiffInput*>(user), format, arguments);
  return 1;  // handled: nothing is printed
}
int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

#else

// Older releases have handlers for the whole process; the handle tells whose message it is.
void on_any_error(thandle_t handle, const char*, const char* format, va_list arguments) {
  if (handle != nullptr) keep_first_message(*static_cast<TiffInput*>(handle), format, arguments);
}

#endif

}  // namespace

#if TIFFLIB_VERSION >= 20221213

// m: no mapping; O: values of tags are read when asked for.
TIFF* open_tiff(TiffInput& in) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, &in);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, &in);
  TIFF* tiff = TIFFClientOpenExt("picture", "rmO", &in, on_read, on_write, on_seek, on_close,
                                 on_size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  return tiff;
}

#else

TIFF* open_tiff(TiffInput& in) {
  static const bool handlers_set = [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetErrorHandlerExt(on_any_error);
    TIFFSetWarningHandler(nullptr);
    return true;
  }();
  static_cast<void>(handlers_set);
  return TIFFClientOpen("picture", "rm", &in, on_read, on_write, on_seek, on_close, on_size,
                        nullptr, nullptr);
}

#endif

}  // namespace spk::image

#endif
