#include "sources/unpacker.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"

#if SPK_HAVE_ZLIB
#include <zlib.h>
#endif
#if SPK_HAVE_ZSTD
#include <zstd.h>
#endif

namespace spk {

namespace {

#if SPK_HAVE_ZLIB
constexpr int kGzipWindow = 15 + 16;  // zlib's spelling of "a gzip header, the largest window"
constexpr int kZlibWindow = 15;
constexpr int kRawWindow = -15;

uInt as_uint(size_t bytes) {
  return static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
}

class Inflater : public Unpacker {
 public:
  static Result<std::unique_ptr<Unpacker>> make(int window) {
    auto inflater = std::make_unique<Inflater>();
    inflater->window_ = window;
    if (inflateInit2(&inflater->stream_, window) != Z_OK) {
      return Status(Code::kNoMemory, "no memory to unpack");
    }
    inflater->is_open_ = true;
    return std::unique_ptr<Unpacker>(std::move(inflater));
  }
  Inflater() = default;
  ~Inflater() override {
    if (is_open_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Status step(ByteSpan* in, MutableByteSpan out, size_t* made) override {
    *made = 0;
    if (ended_ && !begin_next(in)) return trailing(*in);
    if (ended_) return {};
    stream_.next_in = const_cast<Bytef*>(in->data());
    stream_.avail_in = as_uint(in->size());
    stream_.next_out = out.data();
    stream_.avail_out = as_uint(out.size());
    const uInt had_in = stream_.avail_in, had_out = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    *in = in->subspan(had_in - stream_.avail_in);
    *made = had_out - stream_.avail_out;
    if (code == Z_STREAM_END) ended_ = true;
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) return {};
    if (code == Z_MEM_ERROR) return Status(Code::kNoMemory, "no memory to unpack");
    return damaged(str_cat("the packed data are damaged: ",
                           stream_.msg != nullptr ? stream_.msg : "they cannot be unpacked"));
  }
  bool at_border() const override { return ended_; }

 private:
  // gzip files may be several, one behind the other, with zeros behind the last. False where *in
  // holds something else.
  bool begin_next(ByteSpan* in) {
    if (in->empty()) return true;
    if (window_ != kGzipWindow) return false;
    if (in->front() == 0) {
      padded_ = true;
      const auto end = std::find_if(in->begin(), in->end(), [](uint8_t b) { return b != 0; });
      *in = in->subspan(static_cast<size_t>(end - in->begin()));
      return in->empty();
    }
    if (padded_ || in->front() != 0x1f || inflateReset(&stream_) != Z_OK) return false;
    ended_ = false;
    return true;
  }
  static Status trailing(ByteSpan in) {
    return damaged(
        str_cat("other bytes follow the packed data (0x", to_hex(in.front()).substr(14), ")"));
  }

  z_stream stream_ = {};
  int window_ = 0;
  bool is_open_ = false;
  bool ended_ = false;
  bool padded_ = false;
};
#endif

#if SPK_HAVE_ZSTD
class ZstdUnpacker : public Unpacker {
 public:
  ZstdUnpacker() : stream_(ZSTD_createDStream()) {}
  ~ZstdUnpacker() override { ZSTD_freeDStream(stream_); }
  ZstdUnpacker(const ZstdUnpacker&) = delete;
  ZstdUnpacker& operator=(const ZstdUnpacker&) = delete;
  bool is_open() const { return stream_ != nullptr; }

  Status step(ByteSpan* in, MutableByteSpan out, size_t* made) override {
    *made = 0;
    if (in->empty() && at_border_) return {};
    ZSTD_inBuffer input = {in->data(), in->size(), 0};
    ZSTD_outBuffer output = {out.data(), out.size(), 0};
    const size_t left = ZSTD_decompressStream(stream_, &output, &input);
    if (ZSTD_isError(left) != 0) {
      return damaged(str_cat("the packed data are damaged: ", ZSTD_getErrorName(left)));
    }
    *in = in->subspan(input.pos);
    *made = output.pos;
    at_border_ = left == 0;
    return {};
  }
  bool at_border() const override { return at_border_; }

 private:
  ZSTD_DStream* stream_;
  bool at_border_ = false;
};
#endif

}  // namespace

Status check_can_unpack(Packing packing) {
  if (packing == Packing::kNone) return {};
  [[maybe_unused]] const auto lacks = [packing](const char* library, const char* package) {
    return unsupported(str_cat("the file is packed with ", packing_name(packing),
                               ", and this build has no ", library))
        .with_hint(str_cat("build with it (`apt install ", package, "`), or unpack the file"));
  };
#if !SPK_HAVE_ZLIB
  if (packing != Packing::kZstd) return lacks("zlib", "zlib1g-dev");
#endif
#if !SPK_HAVE_ZSTD
  if (packing == Packing::kZstd) return lacks("libzstd", "libzstd-dev");
#endif
  return {};
}

Result<std::unique_ptr<Unpacker>> make_unpacker(Packing packing) {
  SPK_TRY(check_can_unpack(packing));
#if SPK_HAVE_ZSTD
  if (packing == Packing::kZstd) {
    auto unpacker = std::make_unique<ZstdUnpacker>();
    if (!unpacker->is_open()) return Status(Code::kNoMemory, "no memory to unpack");
    return std::unique_ptr<Unpacker>(std::move(unpacker));
  }
#endif
#if SPK_HAVE_ZLIB
  if (packing == Packing::kGzip) return Inflater::make(kGzipWindow);
  if (packing == Packing::kZlib) return Inflater::make(kZlibWindow);
#endif
  return internal_error("asked to unpack what is not packed");
}

Result<std::unique_ptr<Unpacker>> make_raw_inflater() {
#if SPK_HAVE_ZLIB
  return Inflater::make(kRawWindow);
#else
  return unsupported("the archive's members are packed with deflate, and this build has no zlib")
      .with_hint("build with it (`apt install zlib1g-dev`), or pack the archive with `zip -0`");
#endif
}

}  // namespace spk
