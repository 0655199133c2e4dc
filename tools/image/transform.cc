#include "image/transform.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "image/encode.h"
#include "image/metadata.h"

#if SPK_HAVE_IMAGE
#include "picture/decode.h"
#include "picture/header.h"
#endif

namespace spk {

namespace {

constexpr uint32_t kMostSide = 65535;

PictureFormat format_of(EncodeAs encode) {
  switch (encode) {
    case EncodeAs::kJpeg: return PictureFormat::kJpeg;
    case EncodeAs::kPng: return PictureFormat::kPng;
    case EncodeAs::kWebp: return PictureFormat::kWebp;
    default: return PictureFormat::kUnknown;
  }
}

// Rounds half up, exactly.
[[maybe_unused]] uint64_t in_proportion(uint64_t side, uint64_t to, uint64_t of) {
  return std::max<uint64_t>((2 * side * to + of) / (2 * of), 1);
}

}  // namespace

Status check_transform(const TransformOptions& options) {
  if (!options.on()) return {};
#if !SPK_HAVE_IMAGE
  return unsupported("this build has no picture library, which transforms need")
      .with_hint("build with libjpeg and SPK_BUILD_IMAGE=ON");
#endif
  if (options.width > kMostSide || options.height > kMostSide) {
    return invalid_argument(str_cat("--resize ", options.width, "x", options.height,
                                    " is too large: a side may have ", kMostSide, " pixels"));
  }
  if (options.width != options.height && options.mode != ResizeMode::kExact) {
    return invalid_argument("--resize WxH goes with --resize-mode exact only")
        .with_hint("the other modes take one number, such as --resize 256");
  }
  if (options.only_if_bigger && !options.resizes()) {
    return invalid_argument("--only-if-bigger needs --resize");
  }
  if (options.encode != EncodeAs::kSame && options.encode != EncodeAs::kRaw &&
      !image::can_encode(format_of(options.encode))) {
    return unsupported(
               str_cat("this build cannot encode ", picture_format_name(format_of(options.encode))))
        .with_hint("build with libpng and libwebp, or choose another --encode");
  }
  return {};
}

uint64_t estimated_bytes(const TransformOptions& options, uint64_t bytes) {
  const uint64_t channels = options.colour == ColourMode::kGray ? 1 : 3;
  uint64_t pixels = uint64_t{options.width} * options.height;
  // Photographs are mostly of 4 : 3.
  if (options.mode == ResizeMode::kKeepRatio) pixels = pixels * 4 / 3;
  if (options.mode == ResizeMode::kKeepRatioLargest) pixels = pixels * 3 / 4;
  if (options.encode == EncodeAs::kRaw) {
    // Of a picture whose size stays, about ten times what JPEG takes.
    return options.resizes() ? std::max<uint64_t>(pixels * channels, 1) : 10 * bytes;
  }
  if (!options.resizes()) return bytes;
  const uint64_t encoded = options.encode == EncodeAs::kPng ? pixels * channels * 2 / 3
                                                            : pixels * (options.quality + 20) / 400;
  return std::max<uint64_t>(std::min(encoded, bytes), 1);
}

#if SPK_HAVE_IMAGE

struct Transformer::Scratch {
  picture::Scratch decoder;
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> padded;
};

// A part of the memory for decoding; waits until it is free.
class Transformer::Room {
 public:
  Room(const Transformer& owner, uint64_t bytes) : owner_(owner), bytes_(bytes) {
    std::unique_lock lock(owner_.mutex_);
    owner_.room_freed_.wait(lock, [&] {
      return owner_.in_use_bytes_ == 0 || owner_.in_use_bytes_ + bytes_ <= owner_.memory_bytes_;
    });
    owner_.in_use_bytes_ += bytes_;
  }
  ~Room() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.in_use_bytes_ -= bytes_;
    owner_.room_freed_.notify_all();
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

 private:
  const Transformer& owner_;
  const uint64_t bytes_;
};

// One picture.
class Transformer::Work {
 public:
  Work(const Transformer& owner, ByteSpan data, const RawSize& raw)
      : owner_(owner), options_(owner.options_), data_(data), raw_(raw) {}
  Result<Transformed> run();

 private:
  Status look();
  Status plan_size();
  bool fits() const;
  picture::Ops decoder_ops() const;
  uint64_t room_bytes() const;
  Status make(Scratch& scratch, Transformed* out);
  void recolour(std::vector<uint8_t>& pixels) const;
  void pad(const std::vector<uint8_t>& from, std::vector<uint8_t>& to) const;
  Status encode(const uint8_t* pixels, Transformed* out) const;
  bool is_raw() const { return raw_.height != 0; }
  uint32_t background() const { return options_.background.value_or(0xffffff); }

  const Transformer& owner_;
  const TransformOptions& options_;
  const ByteSpan data_;
  const RawSize raw_;
  std::string reject_;
  picture::Header header_;
  PictureFormat format_ = PictureFormat::kUnknown;
  bool alpha_ = false;        // pixels are laid over the background
  bool grey_ = false;         // no colours are in it
  uint32_t channels_ = 3;     // of what comes out
  uint32_t shown_width_ = 0;  // after the turn, before resizing
  uint32_t shown_height_ = 0;
  uint32_t inner_width_ = 0;  // after resizing, before the border
  uint32_t inner_height_ = 0;
  uint32_t width_ = 0;  // of what comes out
  uint32_t height_ = 0;
  bool crops_ = false;
};

Status Transformer::Work::look() {
  if (is_raw()) {
    if (raw_.channels != 1 && raw_.channels != 3) {
      reject_ = str_cat("cannot be transformed: pixels of ", raw_.channels, " channels");
      return {};
    }
    header_.width = raw_.width;
    header_.height = raw_.height;
    header_.channels = raw_.channels;
  } else {
    auto header = picture::read_header(data_);
    if (!header.ok()) {
      reject_ = str_cat("cannot be transformed: ", header.status().message());
      return {};
    }
    header_ = *header;
    if (!picture::can_decode(header_.format)) {
      reject_ = "cannot be transformed: this build has no decoder for it";
      return {};
    }
    switch (header_.format) {
      case picture::Format::kJpeg: format_ = PictureFormat::kJpeg; break;
      case picture::Format::kPng: format_ = PictureFormat::kPng; break;
      case picture::Format::kWebp: format_ = PictureFormat::kWebp; break;
    }
  }
  const uint64_t pixels = uint64_t{header_.width} * header_.height;
  if (pixels > owner_.max_pixels_) {
    reject_ = str_cat("over the pixel limit: ", format_count(pixels), " pixels, the limit is ",
                      format_count(owner_.max_pixels_));
    return {};
  }
  grey_ = header_.channels <= 2;
  const bool alpha_channel =
      header_.channels == 2 || (header_.channels == 4 && format_ != PictureFormat::kJpeg);
  alpha_ =
      options_.background.has_value() &&
      (alpha_channel || (format_ == PictureFormat::kPng && image::png_has_transparency(data_)));
  const uint32_t colour = background();
  const bool grey_ground =
      (colour >> 16 & 255) == (colour & 255) && (colour >> 8 & 255) == (colour & 255);
  const bool stays_grey =
      grey_ && ((!alpha_ && options_.mode != ResizeMode::kBorder) || grey_ground);
  switch (options_.colour) {
    case ColourMode::kSame: channels_ = stays_grey ? 1 : 3; break;
    case ColourMode::kRgb: channels_ = 3; break;
    case ColourMode::kGray: channels_ = 1; break;
  }
  const bool transposed = options_.orient && header_.orientation >= 5;
  shown_width_ = transposed ? header_.height : header_.width;
  shown_height_ = transposed ? header_.width : header_.height;
  return plan_size();
}

Status Transformer::Work::plan_size() {
  inner_width_ = width_ = shown_width_;
  inner_height_ = height_ = shown_height_;
  if (!options_.resizes()) return {};
  const uint64_t shorter = std::min(shown_width_, shown_height_);
  const uint64_t longer = std::max(shown_width_, shown_height_);
  const bool by_longer =
      options_.mode == ResizeMode::kKeepRatioLargest || options_.mode == ResizeMode::kBorder;
  const bool bigger = options_.mode == ResizeMode::kExact
                          ? shown_width_ > options_.width || shown_height_ > options_.height
                          : (by_longer ? longer : shorter) > options_.width;
  if (options_.only_if_bigger && !bigger) return {};
  uint64_t width = options_.width;
  uint64_t height = options_.height;
  if (options_.mode == ResizeMode::kCenterCrop) {
    crops_ = true;
  } else if (options_.mode != ResizeMode::kExact) {
    const uint64_t of = by_longer ? longer : shorter;
    width = in_proportion(shown_width_, options_.width, of);
    height = in_proportion(shown_height_, options_.width, of);
  }
  if (std::max(width, height) > kMostSide || width * height > owner_.max_pixels_) {
    reject_ = str_cat("cannot be transformed: it would have ", width, " x ", height, " pixels");
    return {};
  }
  inner_width_ = width_ = static_cast<uint32_t>(width);
  inner_height_ = height_ = static_cast<uint32_t>(height);
  if (options_.mode == ResizeMode::kBorder) width_ = height_ = options_.width;
  return {};
}

bool Transformer::Work::fits() const {
  if (width_ != header_.width || height_ != header_.height) return false;
  if (crops_ && shown_width_ != shown_height_) return false;
  if (is_raw()) {
    if (options_.encode != EncodeAs::kSame && options_.encode != EncodeAs::kRaw) return false;
  } else {
    if (options_.encode == EncodeAs::kRaw) return false;
    if (options_.encode != EncodeAs::kSame && format_of(options_.encode) != format_) return false;
    if (options_.orient && header_.orientation != 1) return false;
  }
  if (alpha_) return false;
  return options_.colour == ColourMode::kSame || header_.channels == channels_;
}

picture::Ops Transformer::Work::decoder_ops() const {
  picture::Ops ops;
  ops.max_pixels = owner_.max_pixels_;
  ops.exif_orientation = options_.orient;
  ops.pixels_left = 2;  // what is stored for good is to be as good as from all pixels
  if (alpha_) ops.background = background();
  switch (options_.filter) {
    case ResizeFilter::kArea: ops.interpolation = picture::Interpolation::kArea; break;
    case ResizeFilter::kLanczos: ops.interpolation = picture::Interpolation::kLanczos; break;
    case ResizeFilter::kBilinear: ops.interpolation = picture::Interpolation::kBilinear; break;
  }
  if (inner_width_ == shown_width_ && inner_height_ == shown_height_ && !crops_) return ops;
  ops.kind = crops_ ? picture::Kind::kCenterCrop : picture::Kind::kResize;
  ops.width = inner_width_;
  ops.height = inner_height_;
  ops.short_side = options_.width;
  return ops;
}

// About what is in memory at once: the decoded planes (of a JPEG those that libjpeg has reduced),
// the result on its ways, and the coefficients of a JPEG in several scans, which are not told from
// others here.
uint64_t Transformer::Work::room_bytes() const {
  const uint64_t pixels = uint64_t{header_.width} * header_.height;
  uint64_t decoded = 3 * pixels;
  if (format_ == PictureFormat::kJpeg) {
    const uint32_t shorter = std::min(shown_width_, shown_height_);
    const uint32_t made = std::max(std::min(inner_width_, inner_height_), 1u);
    const uint64_t reduction = std::clamp(shorter / made / 4, 1u, 4u);
    decoded = 3 * pixels / (reduction * reduction) + pixels / 2;
  }
  const uint64_t made = uint64_t{std::max(width_, inner_width_)} * std::max(height_, inner_height_);
  return decoded + 8 * made;
}

void Transformer::Work::recolour(std::vector<uint8_t>& pixels) const {
  if (channels_ == 3) return;
  const size_t count = size_t{inner_width_} * inner_height_;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t red = pixels[3 * i];
    const uint32_t green = pixels[3 * i + 1];
    const uint32_t blue = pixels[3 * i + 2];
    // The weights of ITU-R BT.601; they add up to 65536, so that grey stays what it is.
    pixels[i] = static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
  }
}

void Transformer::Work::pad(const std::vector<uint8_t>& from, std::vector<uint8_t>& to) const {
  const uint32_t colour = background();
  uint8_t fill[3] = {static_cast<uint8_t>(colour >> 16), static_cast<uint8_t>(colour >> 8),
                     static_cast<uint8_t>(colour)};
  if (channels_ == 1) {
    fill[0] =
        static_cast<uint8_t>((19595 * fill[0] + 38470 * fill[1] + 7471 * fill[2] + 32768) >> 16);
  }
  const size_t row = size_t{width_} * channels_;
  to.resize(row * height_);
  for (size_t i = 0; i < to.size(); ++i) to[i] = fill[channels_ == 1 ? 0 : i % 3];
  const size_t left = (width_ - inner_width_) / 2;
  const size_t top = (height_ - inner_height_) / 2;
  const size_t inner_row = size_t{inner_width_} * channels_;
  for (size_t y = 0; y < inner_height_; ++y) {
    std::copy_n(from.data() + inner_row * y, inner_row,
                to.data() + row * (top + y) + left * channels_);
  }
}

Status Transformer::Work::encode(const uint8_t* pixels, Transformed* out) const {
  out->size = {height_, width_, channels_};
  const bool as_raw =
      options_.encode == EncodeAs::kRaw || (is_raw() && options_.encode == EncodeAs::kSame);
  if (as_raw) {
    out->bytes.assign(pixels, pixels + size_t{width_} * height_ * channels_);
    return {};
  }
  image::EncodeRequest request;
  request.format = options_.encode == EncodeAs::kSame ? format_ : format_of(options_.encode);
  request.quality = options_.quality;
  std::vector<uint8_t> icc;
  if (!is_raw() && !options_.strip_metadata) {
    icc = image::icc_profile(data_, format_, channels_);
    request.icc = icc;
    if (!options_.orient) request.orientation = header_.orientation;
  }
  // WebP has no grey pictures.
  if (request.format == PictureFormat::kWebp) out->size.channels = 3;
  auto encoded = image::encode_picture({pixels, width_, height_, channels_}, request);
  if (!encoded.ok()) {
    if (encoded.status().code() != Code::kUnsupported) return std::move(encoded).status();
    out->reject = str_cat("cannot be transformed: ", encoded.status().message());
    return {};
  }
  out->bytes = std::move(encoded).value();
  return {};
}

Status Transformer::Work::make(Scratch& scratch, Transformed* out) {
  scratch.pixels.resize(size_t{3} * inner_width_ * inner_height_);
  picture::Source source;
  source.data = data_;
  source.out = scratch.pixels;
  if (is_raw()) source.raw = {raw_.width, raw_.height, raw_.channels};
  picture::Size size;
  const Status decoded = picture::decode(source, decoder_ops(), scratch.decoder, nullptr, size);
  if (!decoded.ok()) {
    if (decoded.code() == Code::kNoMemory || decoded.code() == Code::kInternal) return decoded;
    out->reject = str_cat("cannot be decoded: ", decoded.message());
    return {};
  }
  if (size.width != inner_width_ || size.height != inner_height_) {
    return internal_error("a picture came out in another size than was planned");
  }
  recolour(scratch.pixels);
  if (inner_width_ == width_ && inner_height_ == height_) return encode(scratch.pixels.data(), out);
  pad(scratch.pixels, scratch.padded);
  return encode(scratch.padded.data(), out);
}

Result<Transformed> Transformer::Work::run() {
  Transformed out;
  SPK_TRY(look());
  if (!reject_.empty()) {
    out.reject = std::move(reject_);
    return out;
  }
  if (fits()) {
    if (!options_.strip_metadata || is_raw()) {
      out.same = true;
      return out;
    }
    out.bytes = image::without_metadata(data_, format_);
    out.same = out.bytes.size() == data_.size();
    out.size = {header_.height, header_.width, header_.channels};
    return out;
  }
  const Room room(owner_, room_bytes());
  std::unique_ptr<Scratch> scratch = owner_.borrow();
  const Status made = make(*scratch, &out);
  owner_.give_back(std::move(scratch));
  if (!made.ok()) return made;
  return out;
}

std::unique_ptr<Transformer::Scratch> Transformer::borrow() const {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return std::make_unique<Scratch>();
  std::unique_ptr<Scratch> scratch = std::move(spare_.back());
  spare_.pop_back();
  return scratch;
}

void Transformer::give_back(std::unique_ptr<Scratch> scratch) const {
  constexpr size_t kKeptBytes = size_t{8} << 20;
  if (scratch->pixels.capacity() > kKeptBytes || scratch->padded.capacity() > kKeptBytes) return;
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(scratch));
}

Result<Transformed> Transformer::run(ByteSpan data, const RawSize& raw) const {
  return Work(*this, data, raw).run();
}

#else

struct Transformer::Scratch {};

Result<Transformed> Transformer::run(ByteSpan, const RawSize&) const {
  return internal_error("a transform was asked for in a build without the picture library");
}

#endif

Transformer::Transformer(const TransformOptions& options, uint64_t max_pixels,
                         uint64_t memory_bytes)
    : options_(options), max_pixels_(max_pixels), memory_bytes_(memory_bytes) {}
Transformer::~Transformer() = default;

}  // namespace spk
