#include "image/png_decode.h"

#if SPK_HAVE_PNG

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/text.h"

namespace spk::image {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = 8u << 20;  // of what libpng would keep in memory

// All that the C callbacks need. libpng leaves by longjmp, over C frames and the two functions
// below whose frames hold nothing that needs a destructor.
struct Job {
  ByteView* view;
  uint64_t position;
  uint64_t end;
  png_structp png;
  png_infop info;
  std::jmp_buf leave;
  uint8_t* row;
  size_t row_bytes;
  bool no_memory;
  char message[160];
  Status* io;
};

[[noreturn]] void leave_with(Job& job, const char* text) {
  std::strncpy(job.message, text, sizeof job.message - 1);
  std::longjmp(job.leave, 1);
}

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  Job& job = *static_cast<Job*>(png_get_error_ptr(png));
  leave_with(job, text);
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

// Copies `want` bytes; false at the end and on an error of the view.
bool copy_bytes(Job& job, uint8_t* to, size_t want) {
  if (want > job.end - job.position) return false;
  while (want > 0) {
    Result<ByteSpan> piece = job.view->at(job.position, want);
    if (!piece.ok()) {
      *job.io = std::move(piece).status();
      return false;
    }
    if (piece->empty()) return false;
    std::memcpy(to, piece->data(), piece->size());
    to += piece->size();
    want -= piece->size();
    job.position += piece->size();
  }
  return true;
}

void on_read(png_structp png, png_bytep to, size_t want) {
  Job& job = *static_cast<Job*>(png_get_io_ptr(png));
  if (!copy_bytes(job, to, want)) leave_with(job, "the file ends within a chunk");
}

bool read_header(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  job.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning, &job,
                                     allocate, release);
  if (job.png == nullptr) leave_with(job, "cannot be started");
  job.info = png_create_info_struct(job.png);
  if (job.info == nullptr) leave_with(job, "cannot be started");
  png_set_read_fn(job.png, &job, on_read);
  // The pixel limit was held against IHDR before; libpng's own, a million each way, is lower.
  png_set_user_limits(job.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(job.png, kMaxChunkBytes);
  png_set_chunk_cache_max(job.png, 16);
#ifdef PNG_SET_UNKNOWN_CHUNKS_SUPPORTED
  png_set_keep_unknown_chunks(job.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // no metadata
#endif
  png_read_info(job.png, job.info);
  job.row_bytes = png_get_rowbytes(job.png, job.info);
  return true;
}

// Interlaced pictures are read pass by pass as they are stored, so that one row is enough.
bool read_rows(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  const png_uint_32 width = png_get_image_width(job.png, job.info);
  const png_uint_32 height = png_get_image_height(job.png, job.info);
  if (png_get_interlace_type(job.png, job.info) == PNG_INTERLACE_NONE) {
    for (png_uint_32 y = 0; y < height; ++y) png_read_row(job.png, job.row, nullptr);
  } else {
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
      if (PNG_PASS_COLS(width, pass) == 0) continue;
      const png_uint_32 rows = PNG_PASS_ROWS(height, pass);
      for (png_uint_32 y = 0; y < rows; ++y) png_read_row(job.png, job.row, nullptr);
    }
  }
  png_read_end(job.png, nullptr);
  return true;
}

}  // namespace

bool png_decoder_present() noexcept { return true; }

Result<Decoded> decode_png(ByteView& view, uint64_t end) {
  Job job{};
  Status io;
  job.io = &io;
  job.view = &view;
  job.end = std::min(end, view.size());
  const struct Destroy {
    Job& job;
    ~Destroy() { png_destroy_read_struct(&job.png, &job.info, nullptr); }
  } destroy{job};

  Decoded result;
  if (read_header(job)) {
    std::vector<uint8_t> row(job.row_bytes);
    job.row = row.data();
    result.whole = read_rows(job);
  }
  if (!io.ok()) return io;
  if (job.no_memory) return Status(Code::kNoMemory, "no memory left to decode a PNG");
  if (!result.whole) result.complaint = job.message;
  return result;
}

}  // namespace spk::image

#else

namespace spk::image {

bool png_decoder_present() noexcept { return false; }

Result<Decoded> decode_png(ByteView&, uint64_t) {
  return internal_error("a PNG decoder was asked for in a build without libpng");
}

}  // namespace spk::image

#endif
