#include "sources/forward_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "sources/unpacker.h"

namespace spk {

namespace {

class PlainReader : public ForwardReader {
 public:
  PlainReader(File file, size_t window_bytes)
      : ForwardReader(file.path(), window_bytes), file_(std::move(file)) {}
  Result<uint64_t> end() const override { return file_.size(); }

 protected:
  Result<uint64_t> fetch(uint64_t offset, MutableByteSpan into) override {
    return file_.read_some(offset, into);
  }

 private:
  File file_;
};

class UnpackingReader : public ForwardReader {
 public:
  UnpackingReader(File file, std::unique_ptr<Unpacker> unpacker, size_t window_bytes, bool lenient,
                  std::unique_ptr<Spool::Writer> keep)
      : ForwardReader(file.path(), window_bytes),
        file_(std::move(file)),
        unpacker_(std::move(unpacker)),
        lenient_(lenient),
        keep_(std::move(keep)),
        packed_(kPieceBytes) {}

  Result<uint64_t> end() const override { return at_; }
  Status finish() override {
    if (keep_ == nullptr) return {};
    while (!ended_) SPK_TRY(skip_to(at_ + kPieceBytes));
    return keep_->finish();
  }

 protected:
  Result<uint64_t> fetch(uint64_t offset, MutableByteSpan into) override {
    SPK_TRY(skip_to(offset));
    if (at_ < offset) return uint64_t{0};
    return unpack(into);
  }

 private:
  static constexpr size_t kPieceBytes = size_t{128} << 10;

  Status skip_to(uint64_t offset) {
    if (offset > at_ && scratch_.empty()) scratch_.resize(kPieceBytes);
    while (at_ < offset && !ended_) {
      const auto now = static_cast<size_t>(std::min<uint64_t>(scratch_.size(), offset - at_));
      SPK_TRY(unpack(MutableByteSpan(scratch_).first(now)).status());
    }
    return {};
  }

  // The next bytes; fewer than asked only at the end.
  Result<uint64_t> unpack(MutableByteSpan into) {
    size_t done = 0;
    while (done < into.size() && !ended_) {
      if (input_.empty() && !input_ended_) SPK_TRY(read_input());
      size_t made = 0;
      const size_t before = input_.size();
      Status status = unpacker_->step(&input_, into.subspan(done), &made);
      done += made;
      if (status.ok() && made == 0 && input_.size() == before && input_ended_) {
        ended_ = true;
        if (!unpacker_->at_border()) status = damaged("the packed data end early");
      }
      if (!status.ok()) {
        ended_ = true;
        if (!lenient_) {
          return std::move(status)
              .at_path(escape_bytes(path()))
              .at_offset(file_at_ - input_.size());
        }
      }
    }
    at_ += done;
    if (keep_ != nullptr) SPK_TRY(keep_->append(into.first(done)));
    return uint64_t{done};
  }

  Status read_input() {
    SPK_ASSIGN(const uint64_t got, file_.read_some(file_at_, packed_));
    file_at_ += got;
    input_ = ByteSpan(packed_).first(got);
    input_ended_ = got < packed_.size();
    return {};
  }

  File file_;
  std::unique_ptr<Unpacker> unpacker_;
  bool lenient_;
  std::unique_ptr<Spool::Writer> keep_;
  std::vector<uint8_t> packed_;
  std::vector<uint8_t> scratch_;
  ByteSpan input_;        // of packed_, what is not unpacked yet
  uint64_t file_at_ = 0;  // in the packed file, behind packed_
  uint64_t at_ = 0;       // in the unpacked data
  bool input_ended_ = false;
  bool ended_ = false;
};

}  // namespace

Packing packing_of(ByteSpan head, bool zlib_too) noexcept {
  const auto starts = [&](std::initializer_list<uint8_t> bytes) {
    return head.size() >= bytes.size() && std::equal(bytes.begin(), bytes.end(), head.begin());
  };
  if (starts({0x1f, 0x8b, 8})) return Packing::kGzip;
  if (starts({0x28, 0xb5, 0x2f, 0xfd})) return Packing::kZstd;
  const bool zlib = head.size() >= 2 && (head[0] & 0x8f) == 8 && (head[1] & 0x20) == 0 &&
                    (head[0] * 256u + head[1]) % 31 == 0;
  return zlib && zlib_too ? Packing::kZlib : Packing::kNone;
}

const char* packing_name(Packing packing) noexcept {
  switch (packing) {
    case Packing::kNone: return "plain";
    case Packing::kGzip: return "gzip";
    case Packing::kZlib: return "zlib";
    case Packing::kZstd: return "zstd";
  }
  return "unknown";
}

Result<ByteSpan> ForwardReader::at(uint64_t offset, size_t bytes) {
  const uint64_t end = start_ + filled_;
  if (offset < start_) return internal_error("a forward reader was asked to go back");
  if (offset + bytes > end) {
    const size_t kept = offset < end ? static_cast<size_t>(end - offset) : 0;
    if (kept != 0) std::memmove(window_.data(), window_.data() + (offset - start_), kept);
    if (window_.size() < bytes) window_.resize(bytes);
    start_ = offset;
    filled_ = kept;
    SPK_ASSIGN(const uint64_t got, fetch(offset + kept, MutableByteSpan(window_).subspan(kept)));
    filled_ += got;
  }
  const auto skip = static_cast<size_t>(offset - start_);
  return ByteSpan(window_).subspan(skip, std::min(bytes, filled_ - skip));
}

std::unique_ptr<ForwardReader> read_plain(File file, size_t window_bytes) {
  return std::make_unique<PlainReader>(std::move(file), window_bytes);
}

Result<std::unique_ptr<ForwardReader>> read_unpacked(File file, Packing packing,
                                                     size_t window_bytes, bool lenient,
                                                     std::unique_ptr<Spool::Writer> keep) {
  SPK_ASSIGN(std::unique_ptr<Unpacker> unpacker, make_unpacker(packing));
  return std::unique_ptr<ForwardReader>(std::make_unique<UnpackingReader>(
      std::move(file), std::move(unpacker), window_bytes, lenient, std::move(keep)));
}

std::vector<uint8_t> unpack_head(ByteSpan packed_head, Packing packing, size_t bytes) {
  auto unpacker = make_unpacker(packing);
  std::vector<uint8_t> head(bytes);
  size_t done = 0;
  while (unpacker.ok() && done < bytes) {
    size_t made = 0;
    const size_t before = packed_head.size();
    const Status status =
        (*unpacker)->step(&packed_head, MutableByteSpan(head).subspan(done), &made);
    done += made;
    if (!status.ok() || (made == 0 && packed_head.size() == before)) break;
  }
  head.resize(done);
  return head;
}

}  // namespace spk
