#include "image/cmyk_jpeg.h"

#if SPK_HAVE_IMAGE

#include <algorithm>

#include "picture/rows.h"

namespace spk::image {

namespace {

class CmykSink final : public picture::RowSink {
 public:
  void begin(const picture::Frame& frame) override {
    row_bytes_ = size_t{4} * frame.window.width;
    pixels_.resize(row_bytes_ * frame.window.height);
  }
  void row(uint32_t y, const uint8_t* pixels) noexcept override {
    std::copy_n(pixels, row_bytes_, pixels_.data() + row_bytes_ * y);
  }
  std::vector<uint8_t> take() { return std::move(pixels_); }

 private:
  size_t row_bytes_ = 0;
  std::vector<uint8_t> pixels_;
};

}  // namespace

Result<std::vector<uint8_t>> read_cmyk_jpeg(ByteSpan data) {
  SPK_ASSIGN(const picture::Header header, picture::read_header(data));
  picture::Request request;
  request.window = {0, 0, header.width, header.height};
  request.keep_cmyk = true;
  picture::Memory memory;
  CmykSink sink;
  SPK_TRY(picture::decode_jpeg_rows(data, header, request, memory, sink));
  return sink.take();
}

}  // namespace spk::image

#endif
