#include "image/cmyk_jpeg.h"

#if SPK_HAVE_JPEG

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
// jpeglib.h comes first.
#include <jerror.h>

#include "base/text.h"

namespace spk::image {
namespace {

constexpr uint8_t kEoiBytes[2] = {0xff, JPEG_EOI};
constexpr int kMostScans = 1000;

// libjpeg leaves by longjmp, over C frames and two functions that hold nothing with a destructor.
struct Job {
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  jpeg_decompress_struct jpeg;
  std::jmp_buf leave;
  int code;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void give_up(j_common_ptr common) {
  Job& job = *static_cast<Job*>(common->client_data);
  common->err->format_message(common, job.message);
  job.code = common->err->msg_code;
  std::longjmp(job.leave, 1);
}

void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;  // a trace
  switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL: return;  // metadata, or no effect on the picture
    default: give_up(common);
  }
}

void ignore_output(j_common_ptr) {}
void ignore_source(j_decompress_ptr) {}

boolean fill_input(j_decompress_ptr jpeg) {
  jpeg->src->next_input_byte = kEoiBytes;
  jpeg->src->bytes_in_buffer = sizeof kEoiBytes;
  return TRUE;
}

void skip_input(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  const size_t bytes = std::min(static_cast<size_t>(count), jpeg->src->bytes_in_buffer);
  jpeg->src->next_input_byte += bytes;
  jpeg->src->bytes_in_buffer -= bytes;
}

void on_progress(j_common_ptr common) {
  const Job& job = *static_cast<const Job*>(common->client_data);
  if (job.jpeg.input_scan_number <= kMostScans) return;
  common->err->msg_code = JERR_BAD_SCAN_SCRIPT;
  common->err->msg_parm.i[0] = job.jpeg.input_scan_number;
  give_up(common);
}

bool begin(Job& job, ByteSpan data) {
  if (setjmp(job.leave) != 0) return false;
  jpeg_create_decompress(&job.jpeg);
  job.source.next_input_byte = data.data();
  job.source.bytes_in_buffer = data.size();
  job.source.init_source = ignore_source;
  job.source.fill_input_buffer = fill_input;
  job.source.skip_input_data = skip_input;
  job.source.resync_to_restart = jpeg_resync_to_restart;
  job.source.term_source = ignore_source;
  job.jpeg.src = &job.source;
  job.progress.progress_monitor = on_progress;
  job.jpeg.progress = &job.progress;
  jpeg_read_header(&job.jpeg, TRUE);
  return true;
}

bool read_rows(Job& job, uint8_t* pixels) {
  if (setjmp(job.leave) != 0) return false;
  job.jpeg.out_color_space = JCS_CMYK;
  jpeg_start_decompress(&job.jpeg);
  const size_t row_bytes = size_t{4} * job.jpeg.output_width;
  while (job.jpeg.output_scanline < job.jpeg.output_height) {
    JSAMPROW row = pixels + row_bytes * job.jpeg.output_scanline;
    jpeg_read_scanlines(&job.jpeg, &row, 1);
  }
  return true;
}

Status complaint(const Job& job) {
  if (job.code == JERR_OUT_OF_MEMORY) {
    return Status(Code::kNoMemory, "no memory left to decode a JPEG");
  }
  return damaged(str_cat("libjpeg: ", job.message));
}

}  // namespace

Result<std::vector<uint8_t>> read_cmyk_jpeg(ByteSpan data, uint32_t width, uint32_t height) {
  Job job{};
  job.jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = give_up;
  job.errors.emit_message = on_message;
  job.errors.output_message = ignore_output;
  job.jpeg.client_data = &job;
  const struct Destroy {
    Job& job;
    ~Destroy() { jpeg_destroy_decompress(&job.jpeg); }
  } destroy{job};
  if (!begin(job, data)) return complaint(job);
  if (job.jpeg.image_width != width || job.jpeg.image_height != height ||
      job.jpeg.num_components != 4) {
    return damaged("a JPEG with two frame headers that differ");
  }
  std::vector<uint8_t> pixels(size_t{4} * width * height);
  if (!read_rows(job, pixels.data())) return complaint(job);
  return pixels;
}

}  // namespace spk::image

#else

namespace spk::image {

Result<std::vector<uint8_t>> read_cmyk_jpeg(ByteSpan, uint32_t, uint32_t) {
  return internal_error("a JPEG decoder was asked for in a build without libjpeg");
}

}  // namespace spk::image

#endif
