#include "sources/pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "base/varint.h"
#include "sources/file_sample.h"

namespace spk {

namespace {

class PiecesHandle : public SampleHandle {
 public:
  struct Part {
    Piece piece;
    uint64_t start = 0;  // in the sample
    std::shared_ptr<const File> file;
  };
  PiecesHandle(std::vector<Part> parts, uint64_t size_bytes)
      : parts_(std::move(parts)), size_bytes_(size_bytes) {}

  uint64_t size_bytes() const override { return size_bytes_; }

  Status read_at(uint64_t offset, MutableByteSpan into) override {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                 [](uint64_t at, const Part& one) { return at < one.start; });
    if (part != parts_.begin()) --part;
    for (; !into.empty(); ++part) {
      if (part == parts_.end()) return internal_error("read behind the end of a sample");
      const uint64_t skip = offset - part->start;
      const MutableByteSpan now =
          into.first(std::min<uint64_t>(into.size(), part->piece.bytes - skip));
      SPK_TRY(read_part(*part, skip, now));
      into = into.subspan(now.size());
      offset += now.size();
    }
    return {};
  }

 private:
  static Status read_part(const Part& part, uint64_t skip, MutableByteSpan into) {
    if (into.empty()) return {};
    if (!part.piece.literal.empty()) {
      std::memcpy(into.data(), part.piece.literal.data() + skip, into.size());
      return {};
    }
    const uint64_t at = part.piece.offset + skip;
    SPK_ASSIGN(const uint64_t got, part.file->read_some(at, into));
    if (got == into.size()) return {};
    return Status(Code::kMismatch, str_cat("the file ends at ", at + got, ", within a sample"))
        .at_path(part.file->path())
        .at_offset(at + got)
        .with_hint(kChangedSourceHint);
  }

  std::vector<Part> parts_;
  uint64_t size_bytes_;
};

}  // namespace

std::string encode_pieces(const std::vector<Piece>& pieces) {
  std::string text;
  append_varint(text, pieces.size());
  for (const Piece& piece : pieces) {
    append_string(text, piece.literal);
    if (!piece.literal.empty()) continue;
    append_varint(text, piece.file);
    append_varint(text, piece.offset);
    append_varint(text, piece.bytes);
  }
  return text;
}

Result<std::vector<Piece>> decode_pieces(std::string_view text) {
  ByteSpan bytes = as_bytes(text);
  const auto bad = [] { return damaged("the place of a sample in its source is not whole"); };
  uint64_t count = 0;
  if (!take_varint(&bytes, &count) || count > bytes.size()) return bad();
  std::vector<Piece> pieces(count);
  for (Piece& piece : pieces) {
    std::string_view literal;
    if (!take_string(&bytes, &literal)) return bad();
    piece.literal = literal;
    piece.bytes = literal.size();
    if (!literal.empty()) continue;
    uint64_t file = 0;
    if (!take_varint(&bytes, &file) || file > UINT32_MAX || !take_varint(&bytes, &piece.offset) ||
        !take_varint(&bytes, &piece.bytes)) {
      return bad();
    }
    piece.file = static_cast<uint32_t>(file);
  }
  if (!bytes.empty()) return bad();
  return pieces;
}

Result<std::shared_ptr<const File>> ContainerFiles::open(uint32_t file, int64_t mtime_ns) const {
  if (file >= paths_.size()) return internal_error("a sample of a file that was not listed");
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = places_.find(file); found != places_.end()) {
      opened_.splice(opened_.begin(), opened_, found->second);
      return opened_.front().second;
    }
  }
  SPK_ASSIGN(File opened, File::open_read(paths_[file]));
  if (mtime_ns != kUnknownMtime) {
    SPK_ASSIGN(const EntryInfo info, opened.info());
    if (!same_mtime(mtime_ns, info.mtime_ns)) {
      return Status(Code::kMismatch, "the file was written to since it was listed")
          .at_path(paths_[file])
          .with_hint(kChangedSourceHint);
    }
  }
  auto shared = std::make_shared<const File>(std::move(opened));
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(file); found != places_.end()) return found->second->second;
  opened_.emplace_front(file, shared);
  places_[file] = opened_.begin();
  if (opened_.size() > kOpenAtMost) {
    places_.erase(opened_.back().first);
    opened_.pop_back();
  }
  return shared;
}

Result<std::unique_ptr<SampleHandle>> open_pieces(const ContainerFiles& files,
                                                  const SampleEntry& entry) {
  SPK_ASSIGN(std::vector<Piece> pieces, decode_pieces(entry.path));
  std::vector<PiecesHandle::Part> parts;
  parts.reserve(pieces.size());
  uint64_t bytes = 0;
  for (Piece& piece : pieces) {
    PiecesHandle::Part part;
    part.start = bytes;
    if (!checked_add(bytes, piece.bytes, &bytes)) return internal_error("a sample of 2^64 bytes");
    if (piece.literal.empty() && piece.bytes != 0) {
      SPK_ASSIGN(part.file, files.open(piece.file, entry.mtime_ns));
    }
    part.piece = std::move(piece);
    parts.push_back(std::move(part));
  }
  return std::unique_ptr<SampleHandle>(std::make_unique<PiecesHandle>(std::move(parts), bytes));
}

Status BytesHandle::read_at(uint64_t offset, MutableByteSpan into) {
  if (offset > bytes_.size() || into.size() > bytes_.size() - offset) {
    return internal_error("read behind the end of a sample");
  }
  std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  return {};
}

Result<std::vector<uint8_t>> read_all(SampleHandle& handle) {
  std::vector<uint8_t> bytes(handle.size_bytes());
  SPK_TRY(handle.read_at(0, bytes));
  return bytes;
}

}  // namespace spk
