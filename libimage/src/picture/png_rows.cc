#include "picture/rows.h"

#if SPK_HAVE_PNG

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace spk::picture {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8u << 20;  // of what libpng would keep in memory

// As with JPEGs: libpng leaves by longjmp.
struct Job {
  ByteSpan data;
  png_structp png;
  png_infop info;
  std::jmp_buf leave;
  Window window;
  RowSink* sink;
  bool over_background;
  uint32_t background;
  uint32_t channels;  // in `rows`: 4 where pixels are laid over the background
  uint8_t* rows;      // one, or all of an interlaced picture
  size_t row_bytes;
  int passes;
  bool no_memory;
  char message[160];
};

[[noreturn]] void leave_with(Job& job, const char* text) {
  std::strncpy(job.message, text, sizeof job.message - 1);
  std::longjmp(job.leave, 1);
}

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  leave_with(*static_cast<Job*>(png_get_error_ptr(png)), text);
}

void on_warning(png_structp png, png_const_charp text) {
  // Only IDAT's own trouble counts, and not what follows the last row.
  const bool data = std::strncmp(text, "IDAT: ", 6) == 0;
  if (!data || std::strstr(text, "Extra compressed data") != nullptr ||
      std::strstr(text, "Too much image data") != nullptr) {
    return;
  }
  leave_with(*static_cast<Job*>(png_get_error_ptr(png)), text);
}

png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) static_cast<Job*>(png_get_mem_ptr(png))->no_memory = true;
  return memory;
}
void release(png_structp, png_voidp memory) { std::free(memory); }

void on_read(png_structp png, png_bytep to, size_t want) {
  Job& job = *static_cast<Job*>(png_get_io_ptr(png));
  if (want > job.data.size()) leave_with(job, "the file ends within a chunk");
  std::memcpy(to, job.data.data(), want);
  job.data = job.data.subspan(want);
}

// 8-bit grey or RGB: 16 bits are scaled, fewer bits spread, palettes looked up, alpha dropped.
void set_transforms(Job& job) {
  png_set_scale_16(job.png);
  png_set_expand_gray_1_2_4_to_8(job.png);
  if (png_get_color_type(job.png, job.info) == PNG_COLOR_TYPE_PALETTE) {
    png_set_palette_to_rgb(job.png);
  }
  if (!job.over_background) {
    png_set_strip_alpha(job.png);
    return;
  }
  const bool has_alpha = (png_get_color_type(job.png, job.info) & PNG_COLOR_MASK_ALPHA) != 0 ||
                         png_get_valid(job.png, job.info, PNG_INFO_tRNS) != 0;
  if (!has_alpha) return;
  png_set_tRNS_to_alpha(job.png);
  png_set_gray_to_rgb(job.png);
}

// A row, or what of it is in the window, to the sink.
void give_row(Job& job, uint32_t y, uint8_t* pixels) {
  if (job.channels == 4) lay_over(job.background, pixels, job.window.width);
  job.sink->row(y, pixels);
}

bool begin(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning, &job,
                                     allocate, release);
  if (job.png == nullptr) leave_with(job, "cannot be started");
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) leave_with(job, "cannot be started");
  png_set_read_fn(job.png, &job, on_read);
  png_set_user_limits(job.png, kMaxSide, kMaxSide);
  png_set_chunk_malloc_max(job.png, kMaxChunkBytes);
  png_set_chunk_cache_max(job.png, 16);
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
  png_set_keep_unknown_chunks(job.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // no metadata
#endif
  png_read_info(job.png, job.info);
  set_transforms(job);
  job.passes = png_set_interlace_handling(job.png);
  png_read_update_info(job.png, job.info);
  job.row_bytes = png_get_rowbytes(job.png, job.info);
  job.channels = png_get_channels(job.png, job.info);
  return true;
}

bool read_rows(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  const Window& window = job.window;
  const size_t first = size_t{window.left} * job.channels;
  if (job.passes == 1) {
    for (uint32_t y = 0; y < window.top + window.height; ++y) {
      png_read_row(job.png, job.rows, nullptr);
      if (y >= window.top) give_row(job, y - window.top, job.rows + first);
    }
    return true;
  }
  const uint32_t height = png_get_image_height(job.png, job.info);
  for (int pass = 0; pass < job.passes; ++pass) {
    for (uint32_t y = 0; y < height; ++y) {
      png_read_row(job.png, job.rows + job.row_bytes * y, nullptr);
    }
  }
  for (uint32_t y = 0; y < window.height; ++y) {
    give_row(job, y, job.rows + job.row_bytes * (y + window.top) + first);
  }
  return true;
}

Status complaint(const Job& job) {
  if (job.no_memory) return Status(Code::kNoMemory, "no memory left to decode a PNG");
  return damaged(str_cat("libpng: ", job.message));
}

}  // namespace

Status decode_png_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                       RowSink& sink) {
  Job job{};
  job.data = data;
  job.sink = &sink;
  job.window = request.window;
  job.over_background = request.background.has_value();
  job.background = request.background.value_or(0);
  const struct Destroy {
    Job& job;
    ~Destroy() { png_destroy_read_struct(&job.png, &job.info, nullptr); }
  } destroy{job};
  if (!begin(job)) return complaint(job);
  const bool laid_over = job.over_background && job.channels == 4;
  if ((job.channels != 1 && job.channels != 3 && !laid_over) ||
      job.row_bytes != size_t{header.width} * job.channels) {
    return internal_error("libpng gives rows of another size than was asked for");
  }
  sink.begin({std::min(job.channels, 3u), 1, job.window});
  job.rows = memory.need(job.row_bytes * (job.passes == 1 ? 1 : header.height));
  if (!read_rows(job)) return complaint(job);
  return {};
}

}  // namespace spk::picture

#else

namespace spk::picture {

Status decode_png_rows(ByteSpan, const Header&, const Request&, Memory&, RowSink&) {
  return unsupported("a PNG picture, but this build has no libpng");
}

}  // namespace spk::picture

#endif
