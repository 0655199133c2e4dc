// Every kind of JPEG, by libjpeg: crops skip the rows above, the rows below and the columns beside.
#include "picture/rows.h"
// jpeglib.h needs what that includes, and jerror.h needs jpeglib.h.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>

#include "base/checked.h"
#include "base/text.h"

namespace spk::picture {
namespace {

// Of libjpeg-turbo; where there is none, all rows down to the last one needed are decoded.
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000
#define SPK_JPEG_SKIPS 1
#endif

constexpr uint8_t kEoiBytes[2] = {0xff, JPEG_EOI};
// Columns more on each side, so that what chroma is interpolated from is the same as in the whole.
constexpr uint32_t kMargin = 2;
// Each scan of a progressive picture visits every block, however few bytes it has.
constexpr uint64_t kScansAlwaysDecoded = 100;
constexpr uint64_t kMaxScans = 1000;
constexpr uint64_t kMaxScanPixels = uint64_t{20} * 1000 * 1000 * 1000;

// All that the C callbacks need. libjpeg leaves by longjmp, over C frames and the functions below
// that call setjmp, whose frames hold nothing that needs a destructor.
struct Job {
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_decompress_struct jpeg;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  uint64_t max_scans;
  Frame frame;
  uint32_t first_column;  // of what libjpeg gives
  RowSink* sink;
  uint8_t* row;
  int code;  // libjpeg's, where it gave up
  char message[JMSG_LENGTH_MAX];
};

Job& job_of(j_common_ptr common) { return *static_cast<Job*>(common->client_data); }

[[noreturn]] void give_up(j_common_ptr common) {
  Job& job = job_of(common);
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

// Behind the end there is always an EOI marker: where only that is missing, nothing is lost, and
// elsewhere libjpeg says what is.
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

// Called for each row of blocks of a picture in several scans.
void on_progress(j_common_ptr common) {
  const Job& job = job_of(common);
  const auto scans = static_cast<uint64_t>(job.jpeg.input_scan_number);
  if (scans <= job.max_scans) return;
  common->err->msg_code = JERR_BAD_SCAN_SCRIPT;
  common->err->msg_parm.i[0] = static_cast<int>(scans);
  give_up(common);
}

void set_colours(jpeg_decompress_struct& jpeg) {
  switch (jpeg.jpeg_color_space) {
    case JCS_GRAYSCALE: jpeg.out_color_space = JCS_GRAYSCALE; break;
    case JCS_CMYK:
    case JCS_YCCK: jpeg.out_color_space = JCS_CMYK; break;
    default: jpeg.out_color_space = JCS_RGB; break;  // libjpeg refuses what it cannot convert
  }
}

// Reads the header and sets what is to be decoded, down to the size of a row.
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
  set_colours(job.jpeg);
  job.jpeg.scale_num = 1;
  job.jpeg.scale_denom = job.frame.reduction;
  jpeg_calc_output_dimensions(&job.jpeg);
  return true;
}

bool read_rows(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  jpeg_decompress_struct& jpeg = job.jpeg;
  jpeg_start_decompress(&jpeg);
  const Window& window = job.frame.window;
  const uint32_t bottom = window.top + window.height;
  job.first_column = 0;
#if SPK_JPEG_SKIPS
  if (window.width < jpeg.output_width) {
    JDIMENSION left = window.left - std::min(window.left, kMargin);
    JDIMENSION width = std::min(window.left + window.width + kMargin, jpeg.output_width) - left;
    jpeg_crop_scanline(&jpeg, &left, &width);
    job.first_column = left;
  }
  if (window.top > 0) jpeg_skip_scanlines(&jpeg, window.top);
#endif
  JSAMPROW row = job.row;
  uint8_t* const first = job.row + size_t{window.left - job.first_column} *
                                       static_cast<size_t>(jpeg.output_components);
  while (jpeg.output_scanline < bottom) {
    const uint32_t y = jpeg.output_scanline;
    if (jpeg_read_scanlines(&jpeg, &row, 1) != 1) continue;
    if (y < window.top) continue;
    if (jpeg.output_components == 4 && job.frame.channels == 3) cmyk_to_rgb(first, window.width);
    job.sink->row(y - window.top, first);
  }
  return true;
}

Status complaint(const Job& job) {
  const std::string text = str_cat("libjpeg: ", job.message);
  switch (job.code) {
    case JERR_OUT_OF_MEMORY: return Status(Code::kNoMemory, "no memory left to decode a JPEG");
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED: return unsupported(text);
    default: return damaged(text);
  }
}

Frame frame_of(const Header& header, const Request& request) {
  Frame frame;
  frame.reduction = request.max_reduction;
  const uint32_t by = frame.reduction;
  const Window& from = request.window;
  frame.window.left = from.left / by;
  frame.window.top = from.top / by;
  const auto right = static_cast<uint32_t>(divide_up(from.left + from.width, by));
  const auto bottom = static_cast<uint32_t>(divide_up(from.top + from.height, by));
  frame.window.width = right - frame.window.left;
  frame.window.height = bottom - frame.window.top;
  frame.channels = header.channels == 1 ? 1 : header.channels == 4 && request.keep_cmyk ? 4 : 3;
  return frame;
}

}  // namespace

Status decode_jpeg_rows(ByteSpan data, const Header& header, const Request& request, Memory& memory,
                        RowSink& sink) {
  if (header.channels != 1 && header.channels != 3 && header.channels != 4) {
    return unsupported(str_cat("a JPEG of ", header.channels, " components"));
  }
  Job job{};
  job.sink = &sink;
  job.frame = frame_of(header, request);
  const uint64_t pixels = uint64_t{header.width} * header.height;
  job.max_scans = std::clamp(kMaxScanPixels / pixels, kScansAlwaysDecoded, kMaxScans);
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
  if (job.jpeg.image_width != header.width || job.jpeg.image_height != header.height ||
      static_cast<uint32_t>(job.jpeg.num_components) != header.channels ||
      (job.frame.channels == 1) != (job.jpeg.out_color_space == JCS_GRAYSCALE)) {
    return damaged("a JPEG with two frame headers that differ");
  }
  sink.begin(job.frame);
  job.row = memory.need(size_t{job.jpeg.output_width} *
                        static_cast<size_t>(std::max(job.jpeg.output_components, 4)));
  if (!read_rows(job)) return complaint(job);
  return {};
}

}  // namespace spk::picture
