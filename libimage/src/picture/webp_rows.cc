#include "picture/rows.h"

#if SPK_HAVE_WEBP

#include <webp/decode.h>

#include "base/text.h"

namespace spk::picture {
namespace {

const char* status_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA: return "not enough data";
    case VP8_STATUS_BITSTREAM_ERROR: return "bitstream error";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "unsupported feature";
    case VP8_STATUS_SUSPENDED: return "suspended";
    default: return "invalid";
  }
}

}  // namespace

Status decode_webp_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                        RowSink& sink) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return internal_error("libwebp's version differs");
  if (WebPGetFeatures(data.data(), data.size(), &config.input) == VP8_STATUS_OK &&
      (static_cast<uint32_t>(config.input.width) != header.width ||
       static_cast<uint32_t>(config.input.height) != header.height)) {
    return damaged("a WebP whose picture is not as large as its canvas");
  }
  // libwebp crops at even places only; the odd column and row are left out here.
  const Window& window = request.window;
  const uint32_t left = window.left & 1;
  const uint32_t top = window.top & 1;
  const uint32_t width = window.width + left;
  const uint32_t height = window.height + top;
  config.options.use_cropping = 1;
  config.options.crop_left = static_cast<int>(window.left - left);
  config.options.crop_top = static_cast<int>(window.top - top);
  config.options.crop_width = static_cast<int>(width);
  config.options.crop_height = static_cast<int>(height);
  const bool over = request.background.has_value() && header.channels == 4;
  const uint32_t channels = over ? 4 : 3;
  const size_t stride = size_t{channels} * width;
  sink.begin({3, 1, window});
  uint8_t* const rows = memory.need(stride * height);
  config.output.colorspace = over ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = rows;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size = stride * height;
  const VP8StatusCode status = WebPDecode(data.data(), data.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    return Status(Code::kNoMemory, "no memory left to decode a WebP");
  }
  if (status != VP8_STATUS_OK) return damaged(str_cat("libwebp: ", status_text(status)));
  for (uint32_t y = 0; y < window.height; ++y) {
    uint8_t* const row = rows + stride * (y + top) + size_t{channels} * left;
    if (over) lay_over(*request.background, row, window.width);
    sink.row(y, row);
  }
  return {};
}

}  // namespace spk::picture

#else

namespace spk::picture {

Status decode_webp_rows(ByteSpan, const Header&, const Request&, Memory&, RowSink&) {
  return unsupported("a WebP picture, but this build has no libwebp");
}

}  // namespace spk::picture

#endif
