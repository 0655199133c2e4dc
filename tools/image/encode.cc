#include "image/encode.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "image/grow.h"

#if SPK_HAVE_JPEG
#include <jpeglib.h>

#include <cstdio>  // jpeglib.h needs it
#endif
#if SPK_HAVE_PNG
#include <png.h>
#endif
#if SPK_HAVE_WEBP
#include <webp/encode.h>
#endif

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace spk::image {
namespace {

// A TIFF header and one directory with nothing but the orientation.
[[maybe_unused]] std::vector<uint8_t> exif_block(uint32_t orientation) {
  return {'I',
          'I',
          42,
          0,
          8,
          0,
          0,
          0,
          1,
          0,
          0x12,
          0x01,
          3,
          0,
          1,
          0,
          0,
          0,
          static_cast<uint8_t>(orientation),
          0,
          0,
          0,
          0,
          0,
          0,
          0};
}

[[maybe_unused]] Status too_large(const PixelView& view, const char* format, uint32_t most) {
  return unsupported(str_cat("too large for ", format, ": ", view.width, " x ", view.height,
                             " pixels; a side may have ", most));
}

#if SPK_HAVE_JPEG

struct Marker {
  int code;
  std::vector<uint8_t> bytes;
};

std::vector<Marker> markers_of(const EncodeRequest& request) {
  std::vector<Marker> markers;
  if (request.orientation != 1) {
    Marker& exif = markers.emplace_back(Marker{JPEG_APP0 + 1, {'E', 'x', 'i', 'f', 0, 0}});
    const std::vector<uint8_t> block = exif_block(request.orientation);
    exif.bytes.insert(exif.bytes.end(), block.begin(), block.end());
  }
  constexpr size_t kMostInOne = 65519;
  const size_t count = divide_up(request.icc.size(), kMostInOne);
  if (count > 255) return markers;
  for (size_t i = 0; i < count; ++i) {
    Marker& icc = markers.emplace_back(Marker{JPEG_APP0 + 2, {}});
    constexpr char kName[] = "ICC_PROFILE";
    icc.bytes.assign(kName, kName + sizeof kName);
    icc.bytes.push_back(static_cast<uint8_t>(i + 1));
    icc.bytes.push_back(static_cast<uint8_t>(count));
    const ByteSpan part = request.icc.subspan(i * kMostInOne)
                              .first(std::min(kMostInOne, request.icc.size() - i * kMostInOne));
    icc.bytes.insert(icc.bytes.end(), part.begin(), part.end());
  }
  return markers;
}

// libjpeg leaves by longjmp, over C frames and one function that holds nothing with a destructor.
struct JpegJob {
  jpeg_error_mgr errors;
  jpeg_compress_struct jpeg;
  std::jmp_buf leave;
  unsigned char* bytes;
  unsigned long size;
  bool no_memory;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_jpeg(j_common_ptr common) {
  JpegJob& job = *static_cast<JpegJob*>(common->client_data);
  common->err->format_message(common, job.message);
  std::longjmp(job.leave, 1);
}

void no_output(j_common_ptr) {}

bool write_jpeg(JpegJob& job, const PixelView& view, const EncodeRequest& request,
                const std::vector<Marker>& markers) {
  if (setjmp(job.leave) != 0) return false;
  jpeg_create_compress(&job.jpeg);
  jpeg_mem_dest(&job.jpeg, &job.bytes, &job.size);
  job.jpeg.image_width = view.width;
  job.jpeg.image_height = view.height;
  job.jpeg.input_components = static_cast<int>(view.channels);
  job.jpeg.in_color_space = view.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&job.jpeg);
  jpeg_set_quality(&job.jpeg, static_cast<int>(request.quality), TRUE);
  jpeg_start_compress(&job.jpeg, TRUE);
  for (const Marker& marker : markers) {
    jpeg_write_marker(&job.jpeg, marker.code, marker.bytes.data(),
                      static_cast<unsigned int>(marker.bytes.size()));
  }
  const size_t row_bytes = size_t{view.width} * view.channels;
  while (job.jpeg.next_scanline < job.jpeg.image_height) {
    // libjpeg only reads it.
    JSAMPROW row = const_cast<JSAMPROW>(view.pixels + row_bytes * job.jpeg.next_scanline);
    jpeg_write_scanlines(&job.jpeg, &row, 1);
  }
  jpeg_finish_compress(&job.jpeg);
  return true;
}

Result<std::vector<uint8_t>> encode_jpeg(const PixelView& view, const EncodeRequest& request) {
  if (std::max(view.width, view.height) > JPEG_MAX_DIMENSION) {
    return too_large(view, "JPEG", JPEG_MAX_DIMENSION);
  }
  const std::vector<Marker> markers = markers_of(request);
  // Mostly enough, so that libjpeg need not move to larger memory, which is then its own.
  std::vector<uint8_t> room(size_t{view.width} * view.height * view.channels / 2 + 65536 +
                            request.icc.size());
  JpegJob job{};
  job.bytes = room.data();
  job.size = room.size();
  job.jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = leave_jpeg;
  job.errors.output_message = no_output;
  job.jpeg.client_data = &job;
  const bool written = write_jpeg(job, view, request, markers);
  jpeg_destroy_compress(&job.jpeg);
  if (written && job.bytes == room.data()) {
    room.resize(job.size);
    return room;
  }
  const std::unique_ptr<unsigned char, decltype(&std::free)> owned(
      job.bytes == room.data() ? nullptr : job.bytes, &std::free);
  if (!written) {
    return Status(Code::kNoMemory, str_cat("libjpeg cannot write a picture: ", job.message));
  }
  return std::vector<uint8_t>(job.bytes, job.bytes + job.size);
}

#endif

#if SPK_HAVE_PNG

struct PngJob {
  png_structp png;
  png_infop info;
  std::jmp_buf leave;
  std::vector<uint8_t>* out;
  char message[160];
};

[[noreturn]] void leave_png(png_structp png, png_const_charp text) {
  PngJob& job = *static_cast<PngJob*>(png_get_error_ptr(png));
  std::strncpy(job.message, text, sizeof job.message - 1);
  std::longjmp(job.leave, 1);
}

void ignore_png(png_structp, png_const_charp) {}
void flush_png(png_structp) {}

void take_png(png_structp png, png_bytep bytes, size_t size) {
  PngJob& job = *static_cast<PngJob*>(png_get_io_ptr(png));
  if (!append(*job.out, bytes, size)) png_error(png, "no memory left");
}

bool write_png(PngJob& job, const PixelView& view, const EncodeRequest& request,
               std::vector<uint8_t>& exif) {
  if (setjmp(job.leave) != 0) return false;
  job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, leave_png, ignore_png);
  if (job.png == nullptr) return false;
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) return false;
  png_set_write_fn(job.png, &job, take_png, flush_png);
  png_set_user_limits(job.png, 0x7fffffff, 0x7fffffff);
  png_set_IHDR(job.png, job.info, view.width, view.height, 8,
               view.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(job.png, 6);
  if (!request.icc.empty()) {
    // A profile that libpng takes for broken is left out.
    png_set_benign_errors(job.png, 1);
    png_set_iCCP(job.png, job.info, "icc", PNG_COMPRESSION_TYPE_BASE, request.icc.data(),
                 static_cast<png_uint_32>(request.icc.size()));
  }
#ifdef PNG_eXIf_SUPPORTED
  if (!exif.empty()) {
    png_set_eXIf_1(job.png, job.info, static_cast<png_uint_32>(exif.size()), exif.data());
  }
#endif
  png_write_info(job.png, job.info);
  const size_t row_bytes = size_t{view.width} * view.channels;
  for (uint32_t y = 0; y < view.height; ++y) {
    png_write_row(job.png, view.pixels + row_bytes * y);
  }
  png_write_end(job.png, nullptr);
  return true;
}

Result<std::vector<uint8_t>> encode_png(const PixelView& view, const EncodeRequest& request) {
  std::vector<uint8_t> out;
  out.reserve(size_t{view.width} * view.height * view.channels / 2);
  std::vector<uint8_t> exif;
  if (request.orientation != 1) exif = exif_block(request.orientation);
  PngJob job{};
  job.out = &out;
  const bool written = write_png(job, view, request, exif);
  png_destroy_write_struct(&job.png, &job.info);
  if (!written) {
    return Status(Code::kNoMemory, str_cat("libpng cannot write a picture: ", job.message));
  }
  return out;
}

#endif

#if SPK_HAVE_WEBP

void add_chunk(std::vector<uint8_t>& out, const char* name, ByteSpan bytes) {
  out.insert(out.end(), name, name + 4);
  uint8_t size[4];
  store_le<uint32_t>(size, static_cast<uint32_t>(bytes.size()));
  out.insert(out.end(), size, size + 4);
  out.insert(out.end(), bytes.begin(), bytes.end());
  if (bytes.size() % 2 != 0) out.push_back(0);
}

// A lossy WebP file of one chunk into one with a profile and EXIF beside it.
std::vector<uint8_t> extended_webp(ByteSpan simple, const PixelView& view,
                                   const EncodeRequest& request) {
  std::vector<uint8_t> out = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E', 'B', 'P'};
  uint8_t header[10] = {};
  header[0] = static_cast<uint8_t>((request.icc.empty() ? 0 : 0x20) |
                                   (request.orientation == 1 ? 0 : 0x08));
  for (int i = 0; i < 3; ++i) {
    header[4 + i] = static_cast<uint8_t>((view.width - 1) >> (8 * i));
    header[7 + i] = static_cast<uint8_t>((view.height - 1) >> (8 * i));
  }
  add_chunk(out, "VP8X", header);
  if (!request.icc.empty()) add_chunk(out, "ICCP", request.icc);
  out.insert(out.end(), simple.begin() + 12, simple.end());
  if (request.orientation != 1) add_chunk(out, "EXIF", exif_block(request.orientation));
  store_le<uint32_t>(&out[4], static_cast<uint32_t>(out.size() - 8));
  return out;
}

Result<std::vector<uint8_t>> encode_webp(const PixelView& view, const EncodeRequest& request) {
  if (std::max(view.width, view.height) > WEBP_MAX_DIMENSION) {
    return too_large(view, "WebP", WEBP_MAX_DIMENSION);
  }
  std::vector<uint8_t> colours;
  const uint8_t* rgb = view.pixels;
  if (view.channels == 1) {
    const size_t count = size_t{view.width} * view.height;
    colours.resize(3 * count);
    for (size_t i = 0; i < 3 * count; ++i) colours[i] = view.pixels[i / 3];
    rgb = colours.data();
  }
  WebPConfig config;
  WebPPicture picture;
  if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, static_cast<float>(request.quality)) ||
      !WebPPictureInit(&picture)) {
    return internal_error("libwebp's version differs");
  }
  config.thread_level = 0;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  const struct Free {
    WebPPicture& picture;
    WebPMemoryWriter& writer;
    ~Free() {
      WebPPictureFree(&picture);
      WebPMemoryWriterClear(&writer);
    }
  } free{picture, writer};
  picture.width = static_cast<int>(view.width);
  picture.height = static_cast<int>(view.height);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  if (!WebPPictureImportRGB(&picture, rgb, static_cast<int>(3 * view.width)) ||
      !WebPEncode(&config, &picture)) {
    return Status(Code::kNoMemory, str_cat("libwebp cannot write a picture: error ",
                                           static_cast<int>(picture.error_code)));
  }
  const ByteSpan simple(writer.mem, writer.size);
  if (request.icc.empty() && request.orientation == 1) {
    return std::vector<uint8_t>(simple.begin(), simple.end());
  }
  return extended_webp(simple, view, request);
}

#endif

}  // namespace

bool can_encode(PictureFormat format) noexcept {
  switch (format) {
#if SPK_HAVE_JPEG
    case PictureFormat::kJpeg: return true;
#endif
#if SPK_HAVE_PNG
    case PictureFormat::kPng: return true;
#endif
#if SPK_HAVE_WEBP
    case PictureFormat::kWebp: return true;
#endif
    default: return false;
  }
}

uint32_t most_side(PictureFormat format) noexcept {
  switch (format) {
#if SPK_HAVE_JPEG
    case PictureFormat::kJpeg: return JPEG_MAX_DIMENSION;
#endif
#if SPK_HAVE_WEBP
    case PictureFormat::kWebp: return WEBP_MAX_DIMENSION;
#endif
    default: return UINT32_MAX;
  }
}

Result<std::vector<uint8_t>> encode_picture([[maybe_unused]] const PixelView& view,
                                            const EncodeRequest& request) {
  switch (request.format) {
#if SPK_HAVE_JPEG
    case PictureFormat::kJpeg: return encode_jpeg(view, request);
#endif
#if SPK_HAVE_PNG
    case PictureFormat::kPng: return encode_png(view, request);
#endif
#if SPK_HAVE_WEBP
    case PictureFormat::kWebp: return encode_webp(view, request);
#endif
    default: break;
  }
  return unsupported(
      str_cat("this build has no encoder for ", picture_format_name(request.format)));
}

}  // namespace spk::image
