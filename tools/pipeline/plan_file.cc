#include "pipeline/plan_file.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/text.h"
#include "io/atomic_file.h"
#include "pipeline/entry_codec.h"

namespace spk {

namespace {

constexpr std::string_view kMagic = "SPKPLAN\n";
constexpr uint64_t kPreludeBytes = 32;
constexpr uint64_t kChecksumBytes = 8;
constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 30;
constexpr uint64_t kBufferBytes = uint64_t{1} << 20;
constexpr uint64_t kReadBytes = uint64_t{256} << 10;

struct ShardSlice {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t samples = 0;
  uint64_t checksum = 0;
};

void append_fixed_u64(std::string& out, uint64_t value) {
  uint8_t bytes[8];
  store_le(bytes, value);
  out.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void append_info(std::string& out, const PlanInfo& info) {
  append_fixed_u64(out, info.plan_id.low);
  append_fixed_u64(out, info.plan_id.high);
  append_string(out, info.split);
  append_varint(out, info.sample_count);
  append_varint(out, info.total_bytes);
  append_varint(out, info.max_sample_bytes);
  append_varint(out, info.geometry.chunk_bytes);
  append_varint(out, info.geometry.shard_count);
  append_varint(out, info.geometry.blob_align_bytes);
  append_varint(out, info.shuffled ? 1 : 0);
  append_varint(out, static_cast<uint64_t>(info.label_kind));
  append_varint(out, info.label_count);
  append_varint(out, info.listed_rejects);
  append_varint(out, info.classes.size());
  for (const std::string& name : info.classes) append_string(out, name);
  append_varint(out, info.class_counts.size());
  for (const uint64_t count : info.class_counts) append_varint(out, count);
  append_varint(out, info.blobs.size());
  for (const SourceBlob& blob : info.blobs) {
    append_string(out, blob.name);
    append_varint(out, static_cast<uint64_t>(blob.content));
  }
  append_varint(out, info.numbers.size());
  for (const Field& field : info.numbers) {
    append_string(out, field.name);
    append_varint(out, static_cast<uint64_t>(field.kind));
    append_varint(out, field.length);
  }
  append_varint(out, info.settings.size());
  for (const auto& [name, value] : info.settings) {
    append_string(out, name);
    append_string(out, value);
  }
}

// Takes the header apart; each count is held against the bytes that are there.
class HeaderReader {
 public:
  explicit HeaderReader(ByteSpan bytes) : bytes_(bytes) {}
  bool ok() const noexcept { return ok_; }
  bool at_end() const noexcept { return bytes_.empty(); }
  uint64_t fixed() {
    if (bytes_.size() < 8) return fail();
    const uint64_t value = load_le<uint64_t>(bytes_.data());
    bytes_ = bytes_.subspan(8);
    return value;
  }
  uint64_t number(uint64_t most = UINT64_MAX) {
    uint64_t value = 0;
    if (!take_varint(&bytes_, &value) || value > most) return fail();
    return value;
  }
  uint64_t count() { return number(bytes_.size()); }
  std::string text() {
    std::string_view view;
    if (!take_string(&bytes_, &view)) {
      fail();
      return {};
    }
    return std::string(view);
  }

 private:
  uint64_t fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }
  ByteSpan bytes_;
  bool ok_ = true;
};

bool read_info(HeaderReader& in, PlanInfo* info) {
  info->plan_id.low = in.fixed();
  info->plan_id.high = in.fixed();
  info->split = in.text();
  info->sample_count = in.number();
  info->total_bytes = in.number();
  info->max_sample_bytes = in.number();
  info->geometry.chunk_bytes = static_cast<uint32_t>(in.number(UINT32_MAX));
  info->geometry.shard_count = static_cast<uint32_t>(in.number(UINT32_MAX));
  info->geometry.blob_align_bytes = static_cast<uint32_t>(in.number(UINT32_MAX));
  info->shuffled = in.number(1) != 0;
  info->label_kind = static_cast<LabelKind>(in.number(static_cast<uint64_t>(LabelKind::kFloat)));
  info->label_count = static_cast<uint32_t>(in.number(UINT32_MAX));
  info->listed_rejects = in.number();
  for (uint64_t left = in.count(); left != 0 && in.ok(); --left) info->classes.push_back(in.text());
  for (uint64_t left = in.count(); left != 0 && in.ok(); --left) {
    info->class_counts.push_back(in.number());
  }
  for (uint64_t left = in.count(); left != 0 && in.ok(); --left) {
    SourceBlob& blob = info->blobs.emplace_back();
    blob.name = in.text();
    blob.content = static_cast<BlobContent>(in.number(static_cast<uint64_t>(BlobContent::kAny)));
  }
  for (uint64_t left = in.count(); left != 0 && in.ok(); --left) {
    Field& field = info->numbers.emplace_back();
    field.name = in.text();
    field.kind = static_cast<FieldKind>(in.number(static_cast<uint64_t>(FieldKind::kFloat64)));
    field.length = static_cast<uint32_t>(in.number(UINT32_MAX));
  }
  for (uint64_t left = in.count(); left != 0 && in.ok(); --left) {
    std::string name = in.text();
    info->settings.emplace_back(std::move(name), in.text());
  }
  return in.ok();
}

Status bad_plan(const File& file, uint64_t offset, std::string what) {
  return damaged(std::move(what))
      .at_path(file.path())
      .at_offset(offset)
      .with_hint("the plan can be made anew with --restart");
}

class FileCursor : public PlanCursor {
 public:
  FileCursor(const File& file, const ShardSlice& slice) : file_(file), slice_(slice) {
    buffer_.resize(std::min<uint64_t>(kReadBytes, slice.bytes));
  }

  // Reads the slice once, so that no entry of a damaged one is ever handed out.
  Status verify() {
    Xxh3Stream hash;
    for (uint64_t done = 0; done < slice_.bytes;) {
      const uint64_t bytes = std::min<uint64_t>(buffer_.size(), slice_.bytes - done);
      SPK_TRY(file_.read_exact(slice_.offset + done, {buffer_.data(), bytes}));
      hash.update({buffer_.data(), bytes});
      done += bytes;
    }
    if (hash.digest_64() != slice_.checksum) {
      return bad_plan(file_, slice_.offset, "the checksum of a shard's samples is wrong");
    }
    return {};
  }

  Result<bool> next(SampleEntry* entry) override {
    if (given_ == slice_.samples) {
      if (at_ != filled_ || read_ != slice_.bytes) {
        return bad_plan(file_, slice_.offset, "bytes are left after a shard's last sample");
      }
      return false;
    }
    for (;;) {
      ByteSpan rest{buffer_.data() + at_, filled_ - at_};
      Status status = take_entry(&rest, entry);
      if (status.ok()) {
        at_ = filled_ - rest.size();
        ++given_;
        return true;
      }
      if (read_ == slice_.bytes) {
        return bad_plan(file_, slice_.offset + read_ - rest.size(), status.message());
      }
      SPK_TRY(fill());
    }
  }

 private:
  Status fill() {
    std::move(buffer_.begin() + static_cast<std::ptrdiff_t>(at_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
    filled_ -= at_;
    at_ = 0;
    if (filled_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const uint64_t bytes = std::min<uint64_t>(buffer_.size() - filled_, slice_.bytes - read_);
    SPK_TRY(file_.read_exact(slice_.offset + read_, {buffer_.data() + filled_, bytes}));
    filled_ += bytes;
    read_ += bytes;
    return {};
  }

  const File& file_;
  ShardSlice slice_;
  std::vector<uint8_t> buffer_;
  uint64_t at_ = 0;
  uint64_t filled_ = 0;
  uint64_t read_ = 0;
  uint64_t given_ = 0;
};

class FilePlan : public Plan {
 public:
  static Result<std::unique_ptr<Plan>> load(const std::string& path);
  const PlanInfo& info() const override { return info_; }
  Result<std::unique_ptr<PlanCursor>> shard(uint32_t shard) const override {
    if (shard >= slices_.size()) {
      return invalid_argument(str_cat("shard ", shard, " of a plan of ", slices_.size()));
    }
    auto cursor = std::make_unique<FileCursor>(file_, slices_[shard]);
    SPK_TRY(cursor->verify());
    return std::unique_ptr<PlanCursor>(std::move(cursor));
  }

 private:
  Status read_slices(HeaderReader& in, uint64_t begin, uint64_t file_bytes);

  File file_;
  PlanInfo info_;
  std::vector<ShardSlice> slices_;
};

Status FilePlan::read_slices(HeaderReader& in, uint64_t begin, uint64_t file_bytes) {
  uint64_t samples = 0;
  uint64_t end = begin;
  for (uint32_t shard = 0; shard < info_.geometry.shard_count && in.ok(); ++shard) {
    ShardSlice slice;
    slice.offset = in.fixed();
    slice.bytes = in.fixed();
    slice.samples = in.fixed();
    slice.checksum = in.fixed();
    const PositionRange range =
        shard_positions(info_.sample_count, info_.geometry.shard_count, shard);
    if (slice.offset != end || slice.samples != range.size() ||
        !range_fits(slice.offset, slice.bytes, file_bytes)) {
      return bad_plan(file_, 0, str_cat("the place of shard ", shard, " is wrong"));
    }
    end += slice.bytes;
    samples += slice.samples;
    slices_.push_back(slice);
  }
  if (!in.ok() || !in.at_end() || samples != info_.sample_count || end != file_bytes) {
    return bad_plan(file_, 0, "the header does not fit the file");
  }
  return {};
}

Result<std::unique_ptr<Plan>> FilePlan::load(const std::string& path) {
  auto plan = std::make_unique<FilePlan>();
  SPK_ASSIGN(plan->file_, File::open_read(path));
  const File& file = plan->file_;
  SPK_ASSIGN(const uint64_t size, file.size());
  uint8_t prelude[kPreludeBytes] = {};
  SPK_ASSIGN(const uint64_t got, file.read_some(0, prelude));
  if (as_text({prelude, static_cast<size_t>(std::min<uint64_t>(got, kMagic.size()))}) != kMagic) {
    return Status(Code::kNotThisFormat, "not a plan file").at_path(path);
  }
  if (got < kPreludeBytes) return bad_plan(file, got, "the file is cut short");
  const uint32_t version = load_le<uint32_t>(prelude + 8);
  if (version != kPlanFileVersion) {
    return unsupported(
               str_cat("plan file version ", version, "; this program knows ", kPlanFileVersion))
        .at_path(path)
        .with_hint("continue with the program that made it, or use --restart");
  }
  const uint64_t header_bytes = load_le<uint64_t>(prelude + 16);
  const uint64_t file_bytes = load_le<uint64_t>(prelude + 24);
  if (file_bytes != size) {
    return bad_plan(file, size,
                    str_cat("the file has ", size, " bytes, its header says ", file_bytes));
  }
  if (header_bytes > kMostHeaderBytes ||
      !range_fits(kPreludeBytes, header_bytes + kChecksumBytes, size)) {
    return bad_plan(file, 16, "the length of the header is wrong");
  }
  const uint64_t head_bytes = kPreludeBytes + header_bytes;
  std::vector<uint8_t> head(head_bytes + kChecksumBytes);
  SPK_TRY(file.read_exact(0, head));
  const ByteSpan checked = ByteSpan(head).first(head_bytes);
  if (xxh3_64(checked) != load_le<uint64_t>(head.data() + head_bytes)) {
    return bad_plan(file, head_bytes, "the checksum of the header is wrong");
  }
  HeaderReader in(checked.subspan(kPreludeBytes));
  if (!read_info(in, &plan->info_) || plan->info_.geometry.shard_count == 0) {
    return bad_plan(file, kPreludeBytes, "the header is not whole");
  }
  SPK_TRY(plan->read_slices(in, head.size(), size));
  return std::unique_ptr<Plan>(std::move(plan));
}

}  // namespace

Result<std::unique_ptr<Plan>> Plan::load(const std::string& path) { return FilePlan::load(path); }

PlanFileWriter::PlanFileWriter(const Directory& directory, const PlanInfo& info)
    : directory_(&directory),
      info_(info),
      temporary_name_(str_cat("plan.tmp.", unique_token())),
      slices_(info.geometry.shard_count) {}

Result<PlanFileWriter> PlanFileWriter::create(const Directory& directory, const PlanInfo& info) {
  PlanFileWriter writer(directory, info);
  SPK_ASSIGN(writer.file_, File::create(directory, writer.temporary_name_));
  // The header's length depends on nothing that is still to come.
  writer.written_to_ = writer.encode_head().size();
  writer.slices_[0].offset = writer.written_to_;
  writer.buffer_.reserve(kBufferBytes);
  return writer;
}

PlanFileWriter::~PlanFileWriter() {
  if (!file_.is_open()) return;
  file_ = File();
  (void)directory_->unlink(temporary_name_);
}

std::string PlanFileWriter::encode_head() const {
  std::string header;
  append_info(header, info_);
  for (const Slice& slice : slices_) {
    append_fixed_u64(header, slice.offset);
    append_fixed_u64(header, slice.bytes);
    append_fixed_u64(header, slice.samples);
    append_fixed_u64(header, slice.checksum);
  }
  std::string head(kMagic);
  uint8_t version[8] = {};
  store_le(version, kPlanFileVersion);
  head.append(reinterpret_cast<const char*>(version), sizeof version);
  append_fixed_u64(head, header.size());
  append_fixed_u64(head, written_to_);
  head += header;
  append_fixed_u64(head, xxh3_64(as_bytes(head)));
  return head;
}

Status PlanFileWriter::flush() {
  SPK_TRY(file_.write_all(written_to_, buffer_));
  slice_hash_.update(buffer_);
  written_to_ += buffer_.size();
  buffer_.clear();
  return {};
}

void PlanFileWriter::close_slice() {
  Slice& slice = slices_[shard_];
  slice.bytes = written_to_ - slice.offset;
  slice.checksum = slice_hash_.digest_64();
  slice_hash_ = Xxh3Stream();
}

Status PlanFileWriter::add(ByteSpan record) {
  while (slices_[shard_].samples ==
         shard_positions(info_.sample_count, info_.geometry.shard_count, shard_).size()) {
    if (shard_ + 1 == slices_.size()) return internal_error("more samples than planned");
    SPK_TRY(flush());
    close_slice();
    slices_[++shard_].offset = written_to_;
  }
  if (buffer_.size() + record.size() > kBufferBytes) SPK_TRY(flush());
  buffer_.insert(buffer_.end(), record.begin(), record.end());
  ++slices_[shard_].samples;
  return {};
}

Status PlanFileWriter::finish(const Hash128& plan_id, const std::string& name) {
  SPK_TRY(flush());
  close_slice();
  if (shard_ + 1 != slices_.size() ||
      slices_[shard_].samples !=
          shard_positions(info_.sample_count, info_.geometry.shard_count, shard_).size()) {
    return internal_error("fewer samples than planned");
  }
  info_.plan_id = plan_id;
  SPK_TRY(file_.write_all(0, as_bytes(encode_head())));
  SPK_TRY(file_.sync());
  Status status = file_.close();
  if (status.ok()) status = directory_->rename(temporary_name_, name);
  if (!status.ok()) {
    (void)directory_->unlink(temporary_name_);
    return status;
  }
  return directory_->sync();
}

}  // namespace spk
