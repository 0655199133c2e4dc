#include "image/jpeg_decode.h"

#if SPK_HAVE_JPEG

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <vector>
// jpeglib.h comes first.
#include <jerror.h>

#include "base/text.h"

namespace spk::image {
namespace {

constexpr uint8_t kEoiBytes[2] = {0xff, JPEG_EOI};

// All that the C callbacks need. libjpeg leaves by longjmp, over C frames and the two functions
// below whose frames hold nothing that needs a destructor.
struct Job {
  jpeg_error_mgr errors;  // first: libjpeg's client pointer is this
  jpeg_source_mgr source;
  jpeg_decompress_struct jpeg;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  ByteView* view;
  const JpegDecodeRequest* request;
  uint64_t position;  // of what the source manager gives next
  bool eoi_given;
  bool ran_dry;    // libjpeg wanted bytes behind the end
  bool no_memory;  // the machine's trouble, not the picture's
  uint8_t* row;    // of row_bytes, the caller's
  size_t row_bytes;
  char message[JMSG_LENGTH_MAX];
  Status* io;  // where an error of the view goes
};

Job& job_of(j_common_ptr common) { return *static_cast<Job*>(common->client_data); }
Job& job_of(j_decompress_ptr jpeg) { return *static_cast<Job*>(jpeg->client_data); }

[[noreturn]] void leave_with_message(j_common_ptr common) {
  Job& job = job_of(common);
  common->err->format_message(common, job.message);
  job.no_memory = common->err->msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(job.leave, 1);
}

void on_message(j_common_ptr common, int level) {
  if (level >= 0) return;  // a trace
  switch (common->err->msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:  // fields that mean nothing in a sequential scan
      return;                  // metadata, or no effect on the picture
    default: leave_with_message(common);
  }
}

void ignore_output(j_common_ptr) {}
void ignore_source(j_decompress_ptr) {}

// Points libjpeg at the next piece of the file. Not allowed to have objects with destructors on the
// stack when it longjmps: the error of the view is moved out in a function of its own.
bool next_piece(Job& job) {
  if (job.position < job.request->end) {
    const size_t want = static_cast<size_t>(
        std::min<uint64_t>(ByteView::kWindowBytes, job.request->end - job.position));
    Result<ByteSpan> piece = job.view->at(job.position, want);
    if (!piece.ok()) {
      *job.io = std::move(piece).status();
      return false;
    }
    if (!piece->empty()) {
      job.source.next_input_byte = piece->data();
      job.source.bytes_in_buffer = piece->size();
      job.position += piece->size();
      return true;
    }
    job.position = job.request->end;
  }
  if (job.eoi_given || !job.request->append_eoi) {
    job.ran_dry = true;
    return false;
  }
  job.eoi_given = true;
  job.source.next_input_byte = kEoiBytes;
  job.source.bytes_in_buffer = sizeof kEoiBytes;
  return true;
}

boolean fill_input(j_decompress_ptr jpeg) {
  Job& job = job_of(jpeg);
  if (next_piece(job)) return TRUE;
  if (job.ran_dry) ERREXIT(jpeg, JERR_INPUT_EOF);
  std::longjmp(job.leave, 1);
}

void skip_input(j_decompress_ptr jpeg, long count) {
  Job& job = job_of(jpeg);
  if (count <= 0) return;
  const size_t bytes = static_cast<size_t>(count);
  if (bytes <= job.source.bytes_in_buffer) {
    job.source.next_input_byte += bytes;
    job.source.bytes_in_buffer -= bytes;
    return;
  }
  job.position += bytes - job.source.bytes_in_buffer;
  job.source.bytes_in_buffer = 0;
}

void make_source(Job& job) {
  job.source = {};
  job.source.init_source = ignore_source;
  job.source.fill_input_buffer = fill_input;
  job.source.skip_input_data = skip_input;
  job.source.resync_to_restart = jpeg_resync_to_restart;
  job.source.term_source = ignore_source;
  job.jpeg.src = &job.source;
}

// Called for each row of blocks of a multi-scan picture. The walk limits the scans, but it ends at
// the first suspicion; this limits what comes behind.
void on_progress(j_common_ptr common) {
  const Job& job = job_of(common);
  const auto scans = static_cast<uint64_t>(job.jpeg.input_scan_number);
  if (scans > job.request->max_scans) {
    common->err->msg_code = JERR_BAD_SCAN_SCRIPT;
    common->err->msg_parm.i[0] = static_cast<int>(scans);
    leave_with_message(common);
  }
}

// Reads the header and sets the row's size. False where libjpeg complained.
bool read_header(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  jpeg_create_decompress(&job.jpeg);
  make_source(job);
  job.progress.progress_monitor = on_progress;
  job.jpeg.progress = &job.progress;
  jpeg_read_header(&job.jpeg, TRUE);
  // Every code is read and checked at any scale; the smallest spares the transform.
  job.jpeg.scale_num = 1;
  job.jpeg.scale_denom = 8;
  job.jpeg.out_color_space = job.jpeg.jpeg_color_space;
  job.jpeg.do_fancy_upsampling = FALSE;
  job.jpeg.dct_method = JDCT_IFAST;
  jpeg_calc_output_dimensions(&job.jpeg);
  job.row_bytes = size_t{job.jpeg.output_width} * static_cast<size_t>(job.jpeg.output_components);
  return true;
}

bool read_rows(Job& job) {
  if (setjmp(job.leave) != 0) return false;
  jpeg_start_decompress(&job.jpeg);
  JSAMPROW row = job.row;
  while (job.jpeg.output_scanline < job.jpeg.output_height) {
    jpeg_read_scanlines(&job.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&job.jpeg);  // reads on to EOI
  return true;
}

}  // namespace

bool jpeg_decoder_present() noexcept { return true; }

Result<Decoded> decode_jpeg(ByteView& view, const JpegDecodeRequest& request) {
  Job job{};
  Status io;
  job.io = &io;
  job.view = &view;
  job.request = &request;
  job.jpeg.err = jpeg_std_error(&job.errors);
  job.errors.error_exit = leave_with_message;
  job.errors.emit_message = on_message;
  job.errors.output_message = ignore_output;
  job.jpeg.client_data = &job;
  const struct Destroy {
    Job& job;
    ~Destroy() { jpeg_destroy_decompress(&job.jpeg); }
  } destroy{job};

  Decoded result;
  if (!read_header(job)) {
    if (!io.ok()) return io;
    if (job.no_memory) return Status(Code::kNoMemory, "no memory left to decode a JPEG");
    result.complaint = job.message;
    return result;
  }
  const uint64_t pixels = uint64_t{job.jpeg.image_height} * job.jpeg.image_width;
  if (pixels > request.max_pixels) {
    result.complaint = str_cat("over the pixel limit: ", format_count(pixels), " pixels");
    return result;
  }
  const bool buffers_all = jpeg_has_multiple_scans(&job.jpeg) != FALSE;
  const auto lock = heavy_decode_lock(buffers_all ? pixels : 0);
  std::vector<uint8_t> row(job.row_bytes);
  job.row = row.data();
  result.whole = read_rows(job);
  if (!io.ok()) return io;
  if (job.no_memory) return Status(Code::kNoMemory, "no memory left to decode a JPEG");
  if (!result.whole) result.complaint = job.message;
  result.end = job.position - (job.eoi_given ? 0 : job.source.bytes_in_buffer);
  return result;
}

}  // namespace spk::image

#else

namespace spk::image {

bool jpeg_decoder_present() noexcept { return false; }

Result<Decoded> decode_jpeg(ByteView&, const JpegDecodeRequest&) {
  return internal_error("a JPEG decoder was asked for in a build without libjpeg");
}

}  // namespace spk::image

#endif
