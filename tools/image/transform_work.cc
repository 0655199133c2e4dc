// One picture on its way through a transform.
#include <algorithm>

#include "base/text.h"
#include "image/cmyk_jpeg.h"
#include "image/encode.h"
#include "image/formats.h"
#include "image/metadata.h"
#include "image/still.h"
#include "image/transform.h"

#if SPK_HAVE_IMAGE
#include "image/mask.h"
#include "picture/decode.h"
#include "picture/header.h"
#endif

namespace spk {

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

class Transformer::Work {
 public:
  Work(const Transformer& owner, ByteSpan data, const RawSize& raw)
      : owner_(owner), options_(owner.options_), data_(data), raw_(raw) {}
  Result<Transformed> run();

 private:
  Status look();
  Status look_at_raw();
  Status look_at_encoded();
  Status look_at_profile();
  void choose_channels();
  bool fits() const;
  picture::Ops decoder_ops() const;
  uint64_t room_bytes() const;
  // True where DECODED has what the resampler takes, false where that decodes itself.
  Result<bool> decode_apart(std::vector<uint8_t>* decoded, uint32_t* channels);
  Status make(Scratch& scratch);
  void recolour(std::vector<uint8_t>& pixels) const;
  void pad(const std::vector<uint8_t>& from, std::vector<uint8_t>& to) const;
  Status encode(const uint8_t* pixels);
  // Takes what is said of the picture for its reject; passes on what is said of the machine.
  Status reject_by(const Status& status);
  void warn(const char* kind) { out_.warnings.emplace_back(kind); }
  bool is_raw() const { return raw_.height != 0; }
  bool decoded_apart() const { return image::is_still(format_) || (cmyk_ && conversion_); }
  uint32_t background() const { return options_.background.value_or(0xffffff); }

  const Transformer& owner_;
  const TransformOptions& options_;
  const ByteSpan data_;
  const RawSize raw_;
  Transformed out_;
  PictureFormat format_ = PictureFormat::kUnknown;
  image::StillInfo still_;  // of those that are decoded apart from the others
  Size2 stored_;
  uint32_t orientation_ = 1;
  uint32_t own_channels_ = 3;  // with alpha
  bool cmyk_ = false;
  bool has_alpha_ = false;
  bool alpha_ = false;     // pixels are laid over the background
  bool grey_ = false;      // no colours are in it
  uint32_t channels_ = 3;  // of what comes out
  std::shared_ptr<const image::ProfileConversion> conversion_;  // null: colours stay
  PictureGeometry geometry_;
};

Status Transformer::Work::reject_by(const Status& status) {
  const bool refused = status.code() == Code::kUnsupported || status.code() == Code::kNotThisFormat;
  if (!refused && status.code() != Code::kDamaged) return status;
  out_.reject =
      str_cat(refused ? "cannot be transformed: " : "cannot be decoded: ", status.message());
  return {};
}

Status Transformer::Work::look_at_raw() {
  if (raw_.channels != 1 && raw_.channels != 3) {
    out_.reject = str_cat("cannot be transformed: pixels of ", raw_.channels, " channels");
    return {};
  }
  stored_ = {raw_.width, raw_.height};
  own_channels_ = raw_.channels;
  return {};
}

Status Transformer::Work::look_at_encoded() {
  MemoryView view(data_);
  SPK_ASSIGN(const image::Sniffed sniffed, image::sniff(view));
  format_ = sniffed.format;
  if (image::is_still(format_)) {
    auto info = image::look_at_still(data_, format_);
    if (!info.ok()) return reject_by(info.status());
    still_ = *info;
    stored_ = {still_.width, still_.height};
    orientation_ = still_.orientation;
    has_alpha_ = still_.alpha;
    cmyk_ = still_.channels == 4;
    own_channels_ = still_.channels + (has_alpha_ ? 1 : 0);
    if (std::max(still_.width, still_.height) > picture::kMaxSide) {
      out_.reject =
          str_cat("cannot be transformed: a side may have ", picture::kMaxSide, " pixels");
    }
    return {};
  }
  auto header = picture::read_header(data_);
  if (!header.ok()) {
    if (header.status().code() == Code::kNoMemory) return header.status();
    out_.reject = str_cat("cannot be transformed: ", header.status().message());
    return {};
  }
  if (!picture::can_decode(header->format)) {
    out_.reject = "cannot be transformed: this build has no decoder for it";
    return {};
  }
  switch (header->format) {
    case picture::Format::kJpeg: format_ = PictureFormat::kJpeg; break;
    case picture::Format::kPng: format_ = PictureFormat::kPng; break;
    case picture::Format::kWebp: format_ = PictureFormat::kWebp; break;
  }
  stored_ = {header->width, header->height};
  orientation_ = header->orientation;
  own_channels_ = header->channels;
  cmyk_ = format_ == PictureFormat::kJpeg && header->channels == 4;
  has_alpha_ = header->channels == 2 || (header->channels == 4 && !cmyk_) ||
               (format_ == PictureFormat::kPng && image::png_has_transparency(data_));
  return {};
}

// Chooses the conversion to sRGB. A profile that cannot be used never costs a picture.
Status Transformer::Work::look_at_profile() {
  const bool converts = options_.profile == ProfileMode::kSrgb;
  if (is_raw() || (!converts && !cmyk_)) return {};
  const std::vector<uint8_t> profile = image::embedded_profile(data_, format_);
  if (profile.empty()) return {};
  const image::ProfileSpace space = image::profile_space(profile);
  if (!converts) {
    if (space == image::ProfileSpace::kCmyk) warn("CMYK was made RGB without its colour profile");
    return {};
  }
  const bool usable =
      cmyk_ ? space == image::ProfileSpace::kCmyk
            : space == image::ProfileSpace::kRgb || (space == image::ProfileSpace::kGrey && grey_);
  if (usable) {
    const auto ink = format_ == PictureFormat::kJpeg ? image::ProfileConversion::Ink::kZeroIsFull
                                                     : image::ProfileConversion::Ink::kZeroIsNone;
    conversion_ = owner_.conversions_.get(profile, ink);
  }
  if (!conversion_) {
    warn("colour profile cannot be used");
  } else if (conversion_->is_srgb()) {
    conversion_.reset();  // it stays with the picture
  }
  return {};
}

void Transformer::Work::choose_channels() {
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
}

Status Transformer::Work::look() {
  SPK_TRY(is_raw() ? look_at_raw() : look_at_encoded());
  if (!out_.reject.empty()) return {};
  const uint64_t pixels = uint64_t{stored_.width} * stored_.height;
  if (pixels > owner_.max_pixels_) {
    out_.reject = str_cat("over the pixel limit: ", format_count(pixels), " pixels, the limit is ",
                          format_count(owner_.max_pixels_));
    return {};
  }
  grey_ = own_channels_ <= 2;
  alpha_ = options_.background.has_value() && has_alpha_;
  choose_channels();
  SPK_TRY(look_at_profile());
  auto geometry = plan_geometry(options_, stored_, orientation_, owner_.max_pixels_);
  if (!geometry.ok()) return reject_by(geometry.status());
  geometry_ = *geometry;
  out_.geometry = geometry_;
  return {};
}

bool Transformer::Work::fits() const {
  if (!geometry_.keeps_places() || alpha_ || conversion_) return false;
  if (is_raw()) {
    if (options_.encode != EncodeAs::kSame && options_.encode != EncodeAs::kRaw) return false;
  } else {
    if (options_.encode == EncodeAs::kRaw) return false;
    if (options_.encode != EncodeAs::kSame && picture_format_of(options_.encode) != format_) {
      return false;
    }
  }
  return options_.colour == ColourMode::kSame || own_channels_ == channels_;
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
  image::set_places(geometry_, &ops);
  return ops;
}

// About what is in memory at once: the decoded planes (of a JPEG those that libjpeg has reduced),
// the result on its ways, and the coefficients of a JPEG in several scans, which are not told from
// others here.
uint64_t Transformer::Work::room_bytes() const {
  const uint64_t pixels = uint64_t{stored_.width} * stored_.height;
  uint64_t decoded = 3 * pixels;
  if (format_ == PictureFormat::kJpeg && !decoded_apart()) {
    const uint32_t shorter = std::min(geometry_.shown.width, geometry_.shown.height);
    const uint32_t made = std::max(std::min(geometry_.inner.width, geometry_.inner.height), 1u);
    const uint64_t reduction = std::clamp(shorter / made / 4, 1u, 4u);
    decoded = 3 * pixels / (reduction * reduction) + pixels / 2;
  }
  if (decoded_apart()) decoded += 4 * pixels + still_.work_bytes;
  const uint64_t made = uint64_t{std::max(geometry_.made.width, geometry_.inner.width)} *
                        std::max(geometry_.made.height, geometry_.inner.height);
  return decoded + 8 * made;
}

Result<bool> Transformer::Work::decode_apart(std::vector<uint8_t>* decoded, uint32_t* channels) {
  if (!decoded_apart()) return false;
  const size_t count = size_t{stored_.width} * stored_.height;
  if (image::is_still(format_)) {
    image::StillRequest request;
    if (alpha_) request.background = background();
    request.keep_cmyk = cmyk_ && conversion_;
    SPK_ASSIGN(image::Still still, image::read_still(data_, format_, still_, request));
    if (still.has_more) {
      warn(format_ == PictureFormat::kGif ? "only the first frame was taken"
                                          : "only the first page was taken");
    }
    *decoded = std::move(still.pixels);
    *channels = still.channels;
  } else {
    SPK_ASSIGN(*decoded, image::read_cmyk_jpeg(data_));
    *channels = 4;
  }
  if (*channels == 4) {
    conversion_->run(decoded->data(), decoded->data(), count);
    decoded->resize(3 * count);
    *channels = 3;
  }
  return true;
}

void Transformer::Work::recolour(std::vector<uint8_t>& pixels) const {
  const size_t count = size_t{geometry_.inner.width} * geometry_.inner.height;
  if (conversion_ && !cmyk_) conversion_->run(pixels.data(), pixels.data(), count);
  if (channels_ == 3) return;
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
  const size_t row = size_t{geometry_.made.width} * channels_;
  to.resize(row * geometry_.made.height);
  for (size_t i = 0; i < to.size(); ++i) to[i] = fill[channels_ == 1 ? 0 : i % 3];
  const Size2 border = geometry_.border();
  const size_t inner_row = size_t{geometry_.inner.width} * channels_;
  for (size_t y = 0; y < geometry_.inner.height; ++y) {
    std::copy_n(from.data() + inner_row * y, inner_row,
                to.data() + row * (border.height + y) + size_t{border.width} * channels_);
  }
}

Status Transformer::Work::encode(const uint8_t* pixels) {
  const auto [width, height] = geometry_.made;
  out_.size = {height, width, channels_};
  const bool as_raw =
      options_.encode == EncodeAs::kRaw || (is_raw() && options_.encode == EncodeAs::kSame);
  if (as_raw) {
    out_.bytes.assign(pixels, pixels + size_t{width} * height * channels_);
    return {};
  }
  image::EncodeRequest request;
  request.format =
      options_.encode == EncodeAs::kSame ? format_ : picture_format_of(options_.encode);
  if (image::is_still(request.format)) request.format = PictureFormat::kPng;  // loses nothing
  request.quality = options_.quality;
  std::vector<uint8_t> icc;
  if (!is_raw() && !options_.strip_metadata) {
    if (!conversion_) icc = image::icc_profile(data_, format_, channels_);
    request.icc = icc;
    if (!options_.orient) request.orientation = orientation_;
  }
  // WebP has no grey pictures.
  if (request.format == PictureFormat::kWebp) out_.size.channels = 3;
  auto encoded = image::encode_picture({pixels, width, height, channels_}, request);
  if (!encoded.ok()) return reject_by(encoded.status());
  out_.bytes = std::move(encoded).value();
  return {};
}

Status Transformer::Work::make(Scratch& scratch) {
  const auto [width, height] = geometry_.inner;
  scratch.pixels.resize(size_t{3} * width * height);
  picture::Source source;
  source.data = data_;
  source.out = scratch.pixels;
  if (is_raw()) source.raw = {raw_.width, raw_.height, raw_.channels};
  std::vector<uint8_t> decoded;
  uint32_t channels = 0;
  const Result<bool> apart = decode_apart(&decoded, &channels);
  if (!apart.ok()) return reject_by(apart.status());
  if (*apart) {
    source.data = decoded;
    source.raw = {stored_.width, stored_.height, channels, orientation_};
  }
  picture::Size size;
  const Status made = picture::decode(source, decoder_ops(), scratch.decoder, nullptr, size);
  if (!made.ok()) {
    if (made.code() == Code::kNoMemory || made.code() == Code::kInternal) return made;
    out_.reject = str_cat("cannot be decoded: ", made.message());
    return {};
  }
  if (size.width != width || size.height != height) {
    return internal_error("a picture came out in another size than was planned");
  }
  decoded = {};
  recolour(scratch.pixels);
  if (geometry_.inner == geometry_.made) return encode(scratch.pixels.data());
  pad(scratch.pixels, scratch.padded);
  return encode(scratch.padded.data());
}

Result<Transformed> Transformer::Work::run() {
  SPK_TRY(look());
  if (!out_.reject.empty()) return std::move(out_);
  if (fits()) {
    out_.same = true;
    if (!options_.strip_metadata || is_raw()) return std::move(out_);
    if (image::is_still(format_)) {
      warn("metadata of GIF, BMP and TIFF stays where they are kept");
      return std::move(out_);
    }
    out_.bytes = image::without_metadata(data_, format_);
    out_.same = out_.bytes.size() == data_.size();
    out_.size = {stored_.height, stored_.width, own_channels_};
    return std::move(out_);
  }
  const Room room(owner_, room_bytes());
  std::unique_ptr<Scratch> scratch = owner_.borrow();
  const Status made = make(*scratch);
  owner_.give_back(std::move(scratch));
  if (!made.ok()) return made;
  return std::move(out_);
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

Result<Transformed> Transformer::run_mask(ByteSpan data, const PictureGeometry& geometry) const {
  const auto pixels = [](const Size2& size) { return uint64_t{size.width} * size.height; };
  const Room room(*this, 4 * (pixels(geometry.stored) + pixels(geometry.made)));
  return image::transform_mask(data, geometry);
}

#else

struct Transformer::Scratch {};

Result<Transformed> Transformer::run(ByteSpan, const RawSize&) const {
  return internal_error("a transform was asked for in a build without the picture library");
}

Result<Transformed> Transformer::run_mask(ByteSpan, const PictureGeometry&) const {
  return internal_error("a transform was asked for in a build without the picture library");
}

#endif

Transformer::Transformer(const TransformOptions& options, uint64_t max_pixels,
                         uint64_t memory_bytes)
    : options_(options), max_pixels_(max_pixels), memory_bytes_(memory_bytes) {}
Transformer::~Transformer() = default;

}  // namespace spk
