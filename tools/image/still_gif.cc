// The first frame of a GIF, on its screen.
#include "image/still.h"

#if SPK_HAVE_GIF

#include <gif_lib.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace spk::image {
namespace {

// A few bytes can promise many pixels that nobody sees.
constexpr int64_t kMostFrameOfScreen = 16;

struct Input {
  ByteSpan data;
  size_t at = 0;
};

int on_read(GifFileType* gif, GifByteType* to, int want) {
  Input& in = *static_cast<Input*>(gif->UserData);
  const size_t got = std::min(static_cast<size_t>(want), in.data.size() - in.at);
  if (got != 0) std::memcpy(to, in.data.data() + in.at, got);
  in.at += got;
  return static_cast<int>(got);
}

Status complaint(int error) {
  if (error == D_GIF_ERR_NOT_ENOUGH_MEM) {
    return Status(Code::kNoMemory, "no memory left to decode a GIF");
  }
  const char* const text = GifErrorString(error);
  return damaged(str_cat("giflib: ", text != nullptr ? text : "unknown error"));
}

// An open file; closes itself.
class Gif {
 public:
  explicit Gif(ByteSpan data) : input_{data} { file_ = DGifOpen(&input_, on_read, &error_); }
  ~Gif() {
    int ignored = 0;
    if (file_ != nullptr) DGifCloseFile(file_, &ignored);
  }
  Gif(const Gif&) = delete;
  Gif& operator=(const Gif&) = delete;
  GifFileType* file() const { return file_; }
  Status failed() const { return complaint(file_ == nullptr ? error_ : file_->Error); }

 private:
  Input input_;
  int error_ = 0;
  GifFileType* file_ = nullptr;
};

// Moves on to the next frame. False at the trailer.
Result<bool> next_frame(const Gif& gif, int* transparent) {
  for (;;) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(gif.file(), &type) == GIF_ERROR) return gif.failed();
    if (type == TERMINATE_RECORD_TYPE) return false;
    if (type == IMAGE_DESC_RECORD_TYPE) return true;
    if (type != EXTENSION_RECORD_TYPE) return damaged("gif: an unknown block");
    int code = 0;
    GifByteType* bytes = nullptr;
    if (DGifGetExtension(gif.file(), &code, &bytes) == GIF_ERROR) return gif.failed();
    // The first byte is how many follow.
    if (code == GRAPHICS_EXT_FUNC_CODE && bytes != nullptr && bytes[0] >= 4) {
      *transparent = (bytes[1] & 1) != 0 ? bytes[4] : -1;
    }
    while (bytes != nullptr) {
      if (DGifGetExtensionNext(gif.file(), &bytes) == GIF_ERROR) return gif.failed();
    }
  }
}

struct Colour {
  uint8_t red = 0;
  uint8_t green = 0;
  uint8_t blue = 0;
};

Colour colour_of(const ColorMapObject* map, int index) {
  if (map == nullptr || index < 0 || index >= map->ColorCount) return {};
  const GifColorType& colour = map->Colors[index];
  return {colour.Red, colour.Green, colour.Blue};
}

// The rows of an interlaced frame come in four passes.
std::vector<int> row_order(int height, bool interlaced) {
  std::vector<int> order;
  order.reserve(static_cast<size_t>(height));
  constexpr int kFirst[] = {0, 4, 2, 1};
  constexpr int kStep[] = {8, 8, 4, 2};
  for (int pass = 0; pass < (interlaced ? 4 : 1); ++pass) {
    for (int y = interlaced ? kFirst[pass] : 0; y < height; y += interlaced ? kStep[pass] : 1) {
      order.push_back(y);
    }
  }
  return order;
}

Status read_frame(const Gif& gif, int transparent, const StillInfo& info,
                  const StillRequest& request, std::vector<uint8_t>* pixels) {
  const GifFileType& file = *gif.file();
  const GifImageDesc& frame = file.Image;
  const ColorMapObject* const map = frame.ColorMap != nullptr ? frame.ColorMap : file.SColorMap;
  if (frame.Width <= 0 || frame.Height <= 0) return damaged("gif: a frame without pixels");
  if (map == nullptr) return damaged("gif: a frame without colours");
  if (int64_t{frame.Width} * frame.Height > kMostFrameOfScreen * info.width * info.height) {
    return unsupported("gif: a frame that is much larger than its screen");
  }
  Colour ground = colour_of(file.SColorMap, file.SBackGroundColor);
  if (request.background) {
    ground = {static_cast<uint8_t>(*request.background >> 16),
              static_cast<uint8_t>(*request.background >> 8),
              static_cast<uint8_t>(*request.background)};
  }
  for (size_t i = 0; i < pixels->size(); i += 3) {
    (*pixels)[i] = ground.red;
    (*pixels)[i + 1] = ground.green;
    (*pixels)[i + 2] = ground.blue;
  }
  std::vector<GifPixelType> row(static_cast<size_t>(frame.Width));
  for (const int y : row_order(frame.Height, frame.Interlace)) {
    if (DGifGetLine(gif.file(), row.data(), frame.Width) == GIF_ERROR) return gif.failed();
    const int64_t to_y = int64_t{frame.Top} + y;
    if (to_y < 0 || to_y >= info.height) continue;
    for (int x = 0; x < frame.Width; ++x) {
      const int64_t to_x = int64_t{frame.Left} + x;
      const int index = row[static_cast<size_t>(x)];
      if (to_x < 0 || to_x >= info.width || (request.background && index == transparent)) continue;
      const Colour colour = colour_of(map, index);
      uint8_t* const to =
          &(*pixels)[3 * (static_cast<size_t>(to_y) * info.width + static_cast<size_t>(to_x))];
      to[0] = colour.red;
      to[1] = colour.green;
      to[2] = colour.blue;
    }
  }
  return {};
}

}  // namespace

Result<StillInfo> look_at_gif(ByteSpan data) {
  const Gif gif(data);
  if (gif.file() == nullptr) return gif.failed();
  if (gif.file()->SWidth <= 0 || gif.file()->SHeight <= 0) {
    return damaged("gif: a screen without pixels");
  }
  StillInfo info;
  info.width = static_cast<uint32_t>(gif.file()->SWidth);
  info.height = static_cast<uint32_t>(gif.file()->SHeight);
  int transparent = -1;
  SPK_ASSIGN(const bool found, next_frame(gif, &transparent));
  if (!found) return damaged("gif: no picture before the trailer");
  // A frame that leaves some of the screen free is transparent there.
  if (DGifGetImageDesc(gif.file()) == GIF_ERROR) return gif.failed();
  const GifImageDesc& frame = gif.file()->Image;
  info.alpha = transparent >= 0 || frame.Left > 0 || frame.Top > 0 ||
               frame.Left + frame.Width < gif.file()->SWidth ||
               frame.Top + frame.Height < gif.file()->SHeight;
  return info;
}

Result<Still> read_gif(ByteSpan data, const StillInfo& info, const StillRequest& request) {
  const Gif gif(data);
  if (gif.file() == nullptr) return gif.failed();
  int transparent = -1;
  SPK_ASSIGN(const bool found, next_frame(gif, &transparent));
  if (!found) return damaged("gif: no picture before the trailer");
  if (DGifGetImageDesc(gif.file()) == GIF_ERROR) return gif.failed();
  Still still;
  still.pixels.resize(size_t{3} * info.width * info.height);
  SPK_TRY(read_frame(gif, transparent, info, request, &still.pixels));
  // What lies behind is not taken, so that damage there does no harm.
  const Result<bool> more = next_frame(gif, &transparent);
  still.has_more = more.ok() && *more;
  return still;
}

}  // namespace spk::image

#else

namespace spk::image {

Result<StillInfo> look_at_gif(ByteSpan) {
  return unsupported("this build has no giflib (libgif-dev, SPK_WITH_GIF)");
}
Result<Still> read_gif(ByteSpan, const StillInfo&, const StillRequest&) {
  return unsupported("this build has no giflib (libgif-dev, SPK_WITH_GIF)");
}

}  // namespace spk::image

#endif
