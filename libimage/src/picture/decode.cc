#include "picture/decode.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace spk::picture {
namespace {

// Up to here the fast decoder, which reduces nothing, is faster than libjpeg's reduction.
constexpr uint32_t kPlainReduction = 2;
constexpr size_t kKeptBytes = size_t{32} << 20;  // of each memory, between pictures

// An axis of what is shown, as one of what is stored: where that is turned around, it is counted
// from the other end. Its output pixels then come in the opposite order; the canvas heeds that.
Axis stored(const Axis& shown, bool flip, uint32_t size) {
  if (!flip) return shown;
  Axis axis = shown;
  axis.origin = size - (shown.origin + shown.count * shown.scale);
  axis.begin = size - shown.end;
  axis.end = size - shown.begin;
  return axis;
}

// The pixels that an axis looks at.
void set_range(const Axis& axis, Interpolation interpolation, uint32_t& begin, uint32_t& size) {
  // More for each side than the filter reaches, since a chroma pixel may cover several.
  const double spread = interpolation == Interpolation::kLanczos ? 3 : 1;
  const double reach = std::max(filter_reach(interpolation, axis.scale), spread) + 4 * spread;
  const double low = std::max(axis.origin - reach, static_cast<double>(axis.begin));
  const double high =
      std::min(axis.origin + axis.count * axis.scale + reach, static_cast<double>(axis.end));
  begin = std::min(static_cast<uint32_t>(low), axis.end - 1);
  size = std::max(static_cast<uint32_t>(std::ceil(high)), begin + 1) - begin;
}

// Where chroma is coarser in both directions alike, libjpeg reduces it by so much less than luma.
// It cannot where the directions differ: then this is by how much it stays coarser.
uint32_t chroma_spread(const JpegMarkers& markers) {
  uint32_t most_across = 1;
  uint32_t most_down = 1;
  for (const JpegComponent& component : markers.components) {
    most_across = std::max<uint32_t>(most_across, component.h);
    most_down = std::max<uint32_t>(most_down, component.v);
  }
  uint32_t spread = 1;
  for (const JpegComponent& component : markers.components) {
    if (component.h == 0 || component.v == 0) continue;  // there is none
    const uint32_t across = most_across / component.h;
    const uint32_t down = most_down / component.v;
    if (across != down) spread = std::max({spread, across, down});
  }
  return markers.component_count == 1 ? 1 : spread;
}

class Task {
 public:
  Task(const Source& source, const Ops& ops, Scratch& scratch)
      : source_(source), ops_(ops), scratch_(scratch) {}

  Status look(Size& size) {
    if (source_.raw.width != 0) {
      header_.width = source_.raw.width;
      header_.height = source_.raw.height;
      header_.orientation = source_.raw.orientation;
    } else {
      SPK_ASSIGN(header_, read_header(source_.data));
    }
    const uint64_t pixels = this->pixels();
    if (pixels > ops_.max_pixels) {
      return unsupported(str_cat("over the pixel limit: ", header_.width, " x ", header_.height,
                                 " = ", format_count(pixels), " pixels, the limit is ",
                                 format_count(ops_.max_pixels)))
          .with_hint("max_pixels raises it");
    }
    if (ops_.exif_orientation) turn_ = turn_of(header_.orientation);
    const uint32_t width = turn_.transpose ? header_.height : header_.width;
    const uint32_t height = turn_.transpose ? header_.width : header_.height;
    const Plan plan = make_plan(width, height, ops_, source_.sample);
    size = {plan.x.count, plan.y.count};
    SPK_TRY(check_room(size));
    across_ = stored(turn_.transpose ? plan.y : plan.x, turn_.flip_x, header_.width);
    down_ = stored(turn_.transpose ? plan.x : plan.y, turn_.flip_y, header_.height);
    if (plan.flip) turn_ = mirrored(turn_);
    return {};
  }

  uint64_t pixels() const { return uint64_t{header_.width} * header_.height; }

  Status run() {
    const Canvas canvas =
        Canvas::make(source_.out.data(), across_.count, down_.count, turn_, ops_.planar);
    Request request;
    request.background = ops_.background;
    if (across_.is_copy() && down_.is_copy()) {
      request.window = {across_.begin, down_.begin, across_.count, down_.count};
      CanvasSink sink(canvas);
      return decode_rows(request, sink);
    }
    set_range(across_, ops_.interpolation, request.window.left, request.window.width);
    set_range(down_, ops_.interpolation, request.window.top, request.window.height);
    if (source_.raw.width == 0 && header_.format == Format::kJpeg) {
      SPK_ASSIGN(const JpegMarkers markers, read_jpeg_markers(source_.data));
      request.max_reduction = reduction_of(markers);
      Planes planes;
      if (request.max_reduction <= kPlainReduction &&
          decode_plain_jpeg(source_.data, markers, request.window, scratch_.plain_jpeg,
                            scratch_.planes, planes)) {
        resample(planes, canvas);
        return {};
      }
    }
    PlaneSink sink(scratch_.planes);
    SPK_TRY(decode_rows(request, sink));
    resample(sink.planes(), canvas);
    return {};
  }

 private:
  Status check_room(const Size& size) const {
    if (size.width > kMaxSide || size.height > kMaxSide) {
      return unsupported(str_cat("the result would be of ", size.width, " x ", size.height,
                                 " pixels; a side may have ", kMaxSide));
    }
    const uint64_t need = uint64_t{3} * size.width * size.height;
    if (need <= source_.out.size()) return {};
    return invalid_argument(str_cat("room for ", source_.out.size(), " bytes, but ", size.width,
                                    " x ", size.height, " pixels need ", need));
  }

  // By how much a JPEG may be reduced while it is decoded: as long as there are as many pixels as
  // are made of them, or more, chroma's included.
  uint32_t reduction_of(const JpegMarkers& markers) const {
    const double least = std::min(across_.scale, down_.scale) / chroma_spread(markers);
    uint32_t reduction = 1;
    while (reduction < 8 && least >= ops_.pixels_left * 2 * reduction) reduction *= 2;
    return reduction;
  }

  Status decode_rows(const Request& request, RowSink& sink) {
    if (source_.raw.width != 0) return give_raw_rows(request, sink);
    switch (header_.format) {
      case Format::kJpeg:
        return decode_jpeg_rows(source_.data, header_, request, scratch_.decoder, sink);
      case Format::kPng:
        return decode_png_rows(source_.data, header_, request, scratch_.decoder, sink);
      case Format::kWebp:
        return decode_webp_rows(source_.data, header_, request, scratch_.decoder, sink);
    }
    return internal_error("a format without a decoder");
  }

  Status give_raw_rows(const Request& request, RowSink& sink) const {
    const RawPixels& raw = source_.raw;
    if (source_.data.size() != size_t{raw.width} * raw.height * raw.channels ||
        (raw.channels != 1 && raw.channels != 3)) {
      return invalid_argument("pixels of another size than was told");
    }
    const Window& window = request.window;
    sink.begin({raw.channels, 1, window});
    for (uint32_t y = 0; y < window.height; ++y) {
      const size_t at = (size_t{y} + window.top) * raw.width + window.left;
      sink.row(y, source_.data.data() + at * raw.channels);
    }
    return {};
  }

  void resample(const Planes& planes, const Canvas& canvas) {
    const size_t width = across_.count;
    const size_t height = down_.count;
    // Three planes, and a row of each of the three colours.
    uint8_t* const made = scratch_.resampled.need(3 * width * (height + 1));
    uint8_t* plane[3] = {made, made, made};
    for (int i = 0; i < planes.count(); ++i) {
      plane[i] = made + width * height * static_cast<size_t>(i);
      const Plane& from = planes.planes[static_cast<size_t>(i)];
      const auto kind = [&](uint32_t per, uint32_t per_luma) {
        const bool coarser = per > per_luma;
        return coarser && ops_.interpolation == Interpolation::kArea ? Interpolation::kAreaOfSlopes
                                                                     : ops_.interpolation;
      };
      scratch_.resampler.run(from, across_, down_, plane[i],
                             kind(from.per_x, planes.planes[0].per_x),
                             kind(from.per_y, planes.planes[0].per_y));
    }
    uint8_t* const colours = made + 3 * width * height;
    for (uint32_t y = 0; y < down_.count; ++y) {
      const uint8_t* row[3] = {plane[0] + width * y, plane[1] + width * y, plane[2] + width * y};
      if (planes.model == ColourModel::kYcc) {
        ycc_to_rgb(row[0], row[1], row[2], colours, colours + width, colours + 2 * width,
                   across_.count);
        for (size_t i = 0; i < 3; ++i) row[i] = colours + width * i;
      }
      canvas.write_planar(y, row[0], row[1], row[2], across_.count);
    }
  }

  const Source& source_;
  const Ops& ops_;
  Scratch& scratch_;
  Header header_;
  Turn turn_;
  Axis across_;  // of what is stored
  Axis down_;
};

}  // namespace

void Scratch::trim() noexcept {
  plain_jpeg.scan.drop_if_over(kKeptBytes);
  decoder.drop_if_over(kKeptBytes);
  planes.drop_if_over(kKeptBytes);
  resampled.drop_if_over(kKeptBytes);
}

Status decode(const Source& source, const Ops& ops, Scratch& scratch, std::mutex* heavy,
              Size& size) {
  Task task(source, ops, scratch);
  SPK_TRY(task.look(size));
  std::unique_lock<std::mutex> lock;
  if (heavy != nullptr && task.pixels() > kHeavyPixels) lock = std::unique_lock(*heavy);
  SPK_TRY(task.run());
  scratch.trim();
  return {};
}

}  // namespace spk::picture
