#if SPK_HAVE_IMAGE

#include "image/mask.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "image/grow.h"
#include "picture/orientation.h"

#if SPK_HAVE_PNG
#include <png.h>

#include <csetjmp>
#include <cstring>
#endif

namespace spk::image {

void set_places(const PictureGeometry& geometry, picture::Ops* ops) {
  if (geometry.inner == geometry.shown && !geometry.crops) return;
  ops->kind = !geometry.crops            ? picture::Kind::kResize
              : geometry.short_side != 0 ? picture::Kind::kCenterCrop
                                         : picture::Kind::kCoverCrop;
  ops->width = geometry.inner.width;
  ops->height = geometry.inner.height;
  ops->short_side = geometry.short_side;
}

#if SPK_HAVE_PNG

namespace {

constexpr png_alloc_size_t kMostChunkBytes = 8u << 20;
constexpr size_t kSignatureBytes = 8;

// libpng leaves by longjmp, over C frames and functions that hold nothing with a destructor.
struct Job {
  ByteSpan in;
  size_t at;
  png_structp reader;
  png_infop info;
  png_structp writer;
  png_infop written;
  std::jmp_buf leave;
  bool no_memory;
  char message[160];
  png_uint_32 width;
  png_uint_32 height;
  size_t pixel_bytes;  // one byte where it has fewer bits
  std::vector<uint8_t>* out;
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  Job& job = *static_cast<Job*>(png_get_error_ptr(png));
  std::strncpy(job.message, text, sizeof job.message - 1);
  std::longjmp(job.leave, 1);
}

// Damage to the pixels that libpng would make light of.
void on_warning(png_structp png, png_const_charp text) {
  if (std::strncmp(text, "IDAT: ", 6) == 0 && std::strstr(text, "Extra compressed") == nullptr &&
      std::strstr(text, "Too much image data") == nullptr) {
    on_error(png, text);
  }
}

void ignore_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t want) {
  Job& job = *static_cast<Job*>(png_get_io_ptr(png));
  if (want > job.in.size() - job.at) png_error(png, "the file ends within a chunk");
  std::memcpy(to, job.in.data() + job.at, want);
  job.at += want;
}

void on_write(png_structp png, png_bytep bytes, size_t size) {
  Job& job = *static_cast<Job*>(png_get_io_ptr(png));
  if (append(*job.out, bytes, size)) return;
  job.no_memory = true;
  png_error(png, "no memory left");
}

void ignore_flush(png_structp) {}

bool read_header(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  job.reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning);
  if (job.reader == nullptr) return false;
  job.info = png_create_info_struct(job.reader);
  if (job.info == nullptr) return false;
  png_set_read_fn(job.reader, &job, on_read);
  png_set_user_limits(job.reader, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(job.reader, kMostChunkBytes);
  png_set_chunk_cache_max(job.reader, 16);
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
  png_set_keep_unknown_chunks(job.reader, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
#endif
  png_read_info(job.reader, job.info);
  job.width = png_get_image_width(job.reader, job.info);
  job.height = png_get_image_height(job.reader, job.info);
  png_set_packing(job.reader);
  png_set_interlace_handling(job.reader);
  png_read_update_info(job.reader, job.info);
  job.pixel_bytes = png_get_rowbytes(job.reader, job.info) / job.width;
  return true;
}

bool read_rows(Job& job, uint8_t** rows) {
  if (setjmp(job.leave) != 0) return false;
  png_read_image(job.reader, rows);
  png_read_end(job.reader, nullptr);
  return true;
}

// The same kind of PNG with other pixels. The reader's info is what the file said, but for the
// depth, which packing has raised to 8.
bool write_picture(Job& job, int depth, const Size2& size, uint8_t** rows) {
  if (setjmp(job.leave) != 0) return false;
  job.writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, on_error, ignore_warning);
  if (job.writer == nullptr) return false;
  job.written = png_create_info_struct(job.writer);
  if (job.written == nullptr) return false;
  png_set_write_fn(job.writer, &job, on_write, ignore_flush);
  png_set_user_limits(job.writer, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(job.writer, job.written, size.width, size.height, depth,
               png_get_color_type(job.reader, job.info), PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_colorp palette = nullptr;
  int colours = 0;
  if (png_get_PLTE(job.reader, job.info, &palette, &colours) != 0) {
    png_set_PLTE(job.writer, job.written, palette, colours);
  }
  png_bytep alphas = nullptr;
  png_color_16p clear = nullptr;
  int alpha_count = 0;
  if (png_get_tRNS(job.reader, job.info, &alphas, &alpha_count, &clear) != 0) {
    png_set_tRNS(job.writer, job.written, alphas, alpha_count, clear);
  }
  png_set_compression_level(job.writer, 6);
  png_write_info(job.writer, job.written);
  png_set_packing(job.writer);
  png_write_image(job.writer, rows);
  png_write_end(job.writer, nullptr);
  return true;
}

// The pixel of what is shown that is nearest to the middle of each that is made.
std::vector<uint32_t> nearest(const picture::Axis& axis) {
  std::vector<uint32_t> from(axis.count);
  for (uint32_t i = 0; i < axis.count; ++i) {
    const double middle = axis.origin + (i + 0.5) * axis.scale;
    from[i] = static_cast<uint32_t>(std::clamp(std::floor(middle), static_cast<double>(axis.begin),
                                               static_cast<double>(axis.end - 1)));
  }
  return from;
}

void move_pixels(const PictureGeometry& geometry, const std::vector<uint8_t>& from,
                 size_t pixel_bytes, std::vector<uint8_t>* to) {
  picture::Ops ops;
  set_places(geometry, &ops);
  const picture::Plan plan =
      picture::make_plan(geometry.shown.width, geometry.shown.height, ops, 0);
  const std::vector<uint32_t> across = nearest(plan.x);
  const std::vector<uint32_t> down = nearest(plan.y);
  const picture::Turn turn = picture::turn_of(geometry.orientation);
  const Size2 border = geometry.border();
  for (size_t y = 0; y < geometry.inner.height; ++y) {
    uint8_t* out = &(*to)[((border.height + y) * geometry.made.width + border.width) * pixel_bytes];
    for (size_t x = 0; x < geometry.inner.width; ++x, out += pixel_bytes) {
      size_t column = turn.transpose ? down[y] : across[x];
      size_t row = turn.transpose ? across[x] : down[y];
      if (turn.flip_x) column = geometry.stored.width - 1 - column;
      if (turn.flip_y) row = geometry.stored.height - 1 - row;
      std::copy_n(&from[(row * geometry.stored.width + column) * pixel_bytes], pixel_bytes, out);
    }
  }
}

std::vector<uint8_t*> rows_of(std::vector<uint8_t>& pixels, const Size2& size, size_t pixel_bytes) {
  std::vector<uint8_t*> rows(size.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = &pixels[y * size.width * pixel_bytes];
  return rows;
}

// A reject, unless it is the machine's fault.
Result<Transformed> given_up(const Job& job) {
  if (job.no_memory) return Status(Code::kNoMemory, "no memory left to make a mask");
  Transformed out;
  out.reject = str_cat("cannot be decoded: libpng: ", escape_bytes(job.message));
  return out;
}

}  // namespace

Result<Transformed> transform_mask(ByteSpan data, const PictureGeometry& geometry) {
  Transformed out;
  if (geometry.keeps_places()) {
    out.same = true;
    return out;
  }
  if (data.size() < kSignatureBytes || png_sig_cmp(data.data(), 0, kSignatureBytes) != 0) {
    out.reject = "cannot be transformed: masks must be PNG";
    return out;
  }
  Job job{};
  job.in = data;
  job.out = &out.bytes;
  const struct Destroy {
    Job& job;
    ~Destroy() {
      png_destroy_read_struct(&job.reader, &job.info, nullptr);
      png_destroy_write_struct(&job.writer, &job.written);
    }
  } destroy{job};
  if (!read_header(job)) return given_up(job);
  if (job.width != geometry.stored.width || job.height != geometry.stored.height) {
    out.reject =
        str_cat("cannot be transformed: it has ", job.width, " x ", job.height,
                " pixels, the picture ", geometry.stored.width, " x ", geometry.stored.height);
    return out;
  }
  const int depth = data.size() > 24 ? data[24] : 8;  // of IHDR, which comes first
  std::vector<uint8_t> pixels(size_t{job.width} * job.height * job.pixel_bytes);
  std::vector<uint8_t*> rows = rows_of(pixels, geometry.stored, job.pixel_bytes);
  if (!read_rows(job, rows.data())) return given_up(job);
  std::vector<uint8_t> moved(size_t{geometry.made.width} * geometry.made.height * job.pixel_bytes);
  move_pixels(geometry, pixels, job.pixel_bytes, &moved);
  rows = rows_of(moved, geometry.made, job.pixel_bytes);
  if (!write_picture(job, depth, geometry.made, rows.data())) return given_up(job);
  return out;
}

#else

Result<Transformed> transform_mask(ByteSpan, const PictureGeometry&) {
  return internal_error("a mask was to be made anew in a build without libpng");
}

#endif

}  // namespace spk::image

#endif
