#include "pipeline/external_sort.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/text.h"
#include "io/atomic_file.h"

namespace spk {

namespace {

constexpr uint64_t kHeaderBytes = 8;  // length of the key, length of the payload
constexpr uint64_t kMostBufferBytes = uint64_t{1} << 20;
constexpr uint64_t kLeastBufferBytes = uint64_t{16} << 10;
constexpr size_t kSmallGroup = 24;
constexpr size_t kDeepestPrefix = 64 * 8;  // bounds the recursion of sort_by_prefix

int compare_bytes(ByteSpan a, ByteSpan b) noexcept {
  const size_t common = std::min(a.size(), b.size());
  const int order = common == 0 ? 0 : std::memcmp(a.data(), b.data(), common);
  if (order != 0) return order;
  return a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

struct Record {
  ByteSpan key;
  ByteSpan payload;
};

Record record_at(const uint8_t* at) noexcept {
  const uint32_t key_bytes = load_le<uint32_t>(at);
  const uint32_t payload_bytes = load_le<uint32_t>(at + 4);
  return {{at + kHeaderBytes, key_bytes}, {at + kHeaderBytes + key_bytes, payload_bytes}};
}

bool record_less(const Record& a, const Record& b) noexcept {
  const int order = compare_bytes(a.key, b.key);
  return order != 0 ? order < 0 : compare_bytes(a.payload, b.payload) < 0;
}

// Collects records and writes them in large pieces.
class RunWriter {
 public:
  RunWriter(const File& file, uint64_t offset, uint64_t buffer_bytes)
      : file_(file), offset_(offset), buffer_bytes_(buffer_bytes) {
    buffer_.reserve(buffer_bytes);
  }
  Status add(const uint8_t* record, uint64_t bytes) {
    if (buffer_.size() + bytes > buffer_bytes_) SPK_TRY(flush());
    if (bytes > buffer_bytes_) {
      SPK_TRY(file_.write_all(offset_, {record, bytes}));
      offset_ += bytes;
      return {};
    }
    buffer_.insert(buffer_.end(), record, record + bytes);
    return {};
  }
  Status flush() {
    SPK_TRY(file_.write_all(offset_, buffer_));
    offset_ += buffer_.size();
    buffer_.clear();
    return {};
  }
  uint64_t offset() const noexcept { return offset_; }

 private:
  const File& file_;
  uint64_t offset_;
  uint64_t buffer_bytes_;
  std::vector<uint8_t> buffer_;
};

// Reads the records of one run; the current one lies whole in the buffer.
class RunReader {
 public:
  RunReader(const File& file, uint64_t begin, uint64_t end, uint64_t buffer_bytes)
      : file_(&file), offset_(begin), end_(end), buffer_(buffer_bytes) {}

  Result<bool> next() {
    at_ += record_bytes_;
    record_bytes_ = 0;
    if (at_ == filled_ && offset_ == end_) return false;
    SPK_TRY(have(kHeaderBytes));
    const uint64_t bytes = kHeaderBytes + uint64_t{load_le<uint32_t>(buffer_.data() + at_)} +
                           load_le<uint32_t>(buffer_.data() + at_ + 4);
    SPK_TRY(have(bytes));
    record_bytes_ = bytes;
    return true;
  }
  const uint8_t* record() const noexcept { return buffer_.data() + at_; }
  uint64_t record_bytes() const noexcept { return record_bytes_; }

 private:
  // Makes `bytes` bytes available from at_ on.
  Status have(uint64_t bytes) {
    if (filled_ - at_ >= bytes) return {};
    if (bytes > filled_ - at_ + (end_ - offset_)) {
      return Status(Code::kDamaged, "a sorted run is cut short").at_path(file_->path());
    }
    std::memmove(buffer_.data(), buffer_.data() + at_, filled_ - at_);
    filled_ -= at_;
    at_ = 0;
    if (bytes > buffer_.size()) buffer_.resize(bytes);
    const uint64_t more = std::min<uint64_t>(buffer_.size() - filled_, end_ - offset_);
    SPK_TRY(file_->read_exact(offset_, {buffer_.data() + filled_, more}));
    filled_ += more;
    offset_ += more;
    return {};
  }

  const File* file_;
  uint64_t offset_;
  uint64_t end_;
  std::vector<uint8_t> buffer_;
  uint64_t at_ = 0;
  uint64_t filled_ = 0;
  uint64_t record_bytes_ = 0;
};

}  // namespace

// Eight bytes of the key from some depth on, so that most comparisons touch no record. The low four
// bits of `packed` say how many of the eight are there; the rest is the record's place.
struct ExternalSorter::Ref {
  uint64_t prefix;
  uint64_t packed;
  uint64_t place() const noexcept { return packed >> 4; }
  uint64_t present() const noexcept { return packed & 15; }
};

namespace {

template <typename Ref>
void load_prefix(const uint8_t* region, size_t depth, Ref* ref) noexcept {
  const uint64_t place = ref->place();
  const ByteSpan key = record_at(region + place).key;
  const size_t present = key.size() > depth ? std::min<size_t>(8, key.size() - depth) : 0;
  uint8_t bytes[8] = {};
  if (present != 0) std::memcpy(bytes, key.data() + depth, present);
  ref->prefix = load_be<uint64_t>(bytes);
  ref->packed = place << 4 | present;
}

// Sorts by eight bytes of the key at a time. Keys share long prefixes (folders), so that comparing
// whole keys would go back to memory for each comparison.
template <typename Ref>
void sort_by_prefix(const uint8_t* region, Ref* begin, Ref* end, size_t depth) noexcept {
  const auto whole_less = [region](const Ref& a, const Ref& b) {
    return record_less(record_at(region + a.place()), record_at(region + b.place()));
  };
  for (Ref* ref = begin; ref != end; ++ref) load_prefix(region, depth, ref);
  std::sort(begin, end, [](const Ref& a, const Ref& b) {
    return a.prefix != b.prefix ? a.prefix < b.prefix : a.present() < b.present();
  });
  for (Ref* group = begin; group != end;) {
    Ref* after = group + 1;
    while (after != end && after->prefix == group->prefix && after->present() == group->present()) {
      ++after;
    }
    const bool key_ended = group->present() < 8;
    if (after - group > 1) {
      if (key_ended || static_cast<size_t>(after - group) <= kSmallGroup ||
          depth >= kDeepestPrefix) {
        std::sort(group, after, whole_less);
      } else {
        sort_by_prefix(region, group, after, depth + 8);
      }
    }
    group = after;
  }
}

}  // namespace

class ExternalSorter::MemoryStream : public ExternalSorter::Stream {
 public:
  explicit MemoryStream(const ExternalSorter& sorter) : sorter_(sorter) {}
  Result<bool> next(ByteSpan* key, ByteSpan* payload) override {
    if (at_ == sorter_.held_) return false;
    const Record record = record_at(sorter_.region_.get() + sorter_.refs()[at_++].place());
    *key = record.key;
    *payload = record.payload;
    return true;
  }

 private:
  const ExternalSorter& sorter_;
  uint64_t at_ = 0;
};

class ExternalSorter::MergeStream : public ExternalSorter::Stream {
 public:
  MergeStream(const File& file, const Run* begin, const Run* end, uint64_t memory_bytes) {
    const auto runs = static_cast<uint64_t>(end - begin);
    const uint64_t buffer_bytes =
        std::clamp(memory_bytes / runs, kLeastBufferBytes, kMostBufferBytes);
    readers_.reserve(runs);
    for (const Run* run = begin; run != end; ++run) {
      readers_.emplace_back(file, run->begin, run->end, buffer_bytes);
    }
  }
  Status start() {
    for (size_t i = 0; i < readers_.size(); ++i) {
      SPK_ASSIGN(const bool more, readers_[i].next());
      if (more) heap_.push_back(i);
    }
    std::make_heap(heap_.begin(), heap_.end(), Later{this});
    return {};
  }
  // Moves on to the next record in order; false after the last.
  Result<bool> advance() {
    if (given_) {
      std::pop_heap(heap_.begin(), heap_.end(), Later{this});
      SPK_ASSIGN(const bool more, readers_[heap_.back()].next());
      if (more) {
        std::push_heap(heap_.begin(), heap_.end(), Later{this});
      } else {
        heap_.pop_back();
      }
    }
    given_ = !heap_.empty();
    return given_;
  }
  const RunReader& current() const noexcept { return readers_[heap_.front()]; }
  Result<bool> next(ByteSpan* key, ByteSpan* payload) override {
    SPK_ASSIGN(const bool more, advance());
    if (!more) return false;
    const Record record = record_at(current().record());
    *key = record.key;
    *payload = record.payload;
    return true;
  }

 private:
  struct Later {
    const MergeStream* stream;
    bool operator()(size_t a, size_t b) const noexcept {
      return record_less(record_at(stream->readers_[b].record()),
                         record_at(stream->readers_[a].record()));
    }
  };
  std::vector<RunReader> readers_;
  std::vector<size_t> heap_;  // indices of readers that have a record; the least in front
  bool given_ = false;
};

ExternalSorter::ExternalSorter(std::string directory, uint64_t memory_bytes)
    : directory_(std::move(directory)), memory_bytes_(memory_bytes) {}
ExternalSorter::~ExternalSorter() = default;
ExternalSorter::ExternalSorter(ExternalSorter&&) noexcept = default;
ExternalSorter& ExternalSorter::operator=(ExternalSorter&&) noexcept = default;

uint64_t ExternalSorter::io_buffer_bytes() const noexcept {
  return std::clamp(memory_bytes_ / 8, uint64_t{4096}, kMostBufferBytes);
}

uint64_t ExternalSorter::largest_fan_in() const noexcept {
  return std::max<uint64_t>(2, memory_bytes_ / kLeastBufferBytes);
}

// The references lie at the back of the region, the newest lowest.
ExternalSorter::Ref* ExternalSorter::refs() const noexcept {
  return reinterpret_cast<Ref*>(region_.get() + region_bytes_) - held_;
}

void ExternalSorter::sort_refs() noexcept {
  std::reverse(refs(), refs() + held_);  // input that is in order already stays so
  sort_by_prefix(region_.get(), refs(), refs() + held_, 0);
}

Status ExternalSorter::add(ByteSpan key, ByteSpan payload) {
  assert(!finished_);
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  const uint64_t bytes = kHeaderBytes + key.size() + payload.size();
  if (region_ == nullptr) {
    const uint64_t buffer = io_buffer_bytes();
    region_bytes_ = memory_bytes_ > buffer ? (memory_bytes_ - buffer) / 16 * 16 : 0;
    region_.reset(new (std::nothrow) uint8_t[region_bytes_]);
    if (region_ == nullptr) {
      return Status(Code::kNoMemory, str_cat("cannot get ", format_size(region_bytes_), " to sort"))
          .with_hint("give less with --memory");
    }
  }
  if (key.size() > kMost || payload.size() > kMost || bytes + sizeof(Ref) > region_bytes_) {
    return Status(Code::kNoMemory, str_cat("one record of ", format_size(bytes),
                                           " does not fit into ", format_size(region_bytes_)))
        .with_hint("give more with --memory");
  }
  if (used_bytes_ + bytes + (held_ + 1) * sizeof(Ref) > region_bytes_) SPK_TRY(spill());
  uint8_t* at = region_.get() + used_bytes_;
  store_le(at, static_cast<uint32_t>(key.size()));
  store_le(at + 4, static_cast<uint32_t>(payload.size()));
  if (!key.empty()) std::memcpy(at + kHeaderBytes, key.data(), key.size());
  if (!payload.empty()) {
    std::memcpy(at + kHeaderBytes + key.size(), payload.data(), payload.size());
  }
  ++held_;
  new (refs()) Ref{0, used_bytes_ << 4};
  used_bytes_ += bytes;
  ++count_;
  return {};
}

Status ExternalSorter::open_spill_file(File* file) const {
  if (directory_.empty()) {
    return Status(Code::kNoMemory, str_cat("more than ", format_size(memory_bytes_),
                                           " to sort and no place on disk to do it"))
        .with_hint("give more with --memory");
  }
  SPK_ASSIGN(Directory directory, Directory::open(directory_));
  const std::string name = str_cat("sort.", unique_token());
  SPK_ASSIGN(*file, File::create(directory, name));
  return directory.unlink(name);
}

Status ExternalSorter::spill() {
  if (!file_.is_open()) SPK_TRY(open_spill_file(&file_));
  sort_refs();
  RunWriter writer(file_, file_end_, io_buffer_bytes());
  for (uint64_t i = 0; i < held_; ++i) {
    const uint8_t* at = region_.get() + refs()[i].place();
    SPK_TRY(writer.add(at, kHeaderBytes + load_le<uint32_t>(at) + load_le<uint32_t>(at + 4)));
  }
  SPK_TRY(writer.flush());
  runs_.push_back({file_end_, writer.offset()});
  spilled_bytes_ += writer.offset() - file_end_;
  file_end_ = writer.offset();
  held_ = 0;
  used_bytes_ = 0;
  return {};
}

// More runs than the memory has buffers for are first merged to fewer, in a file of their own.
Status ExternalSorter::merge_runs_until_few() {
  const uint64_t fan_in = largest_fan_in();
  while (runs_.size() > fan_in) {
    File file;
    SPK_TRY(open_spill_file(&file));
    RunWriter writer(file, 0, io_buffer_bytes());
    std::vector<Run> merged;
    for (size_t i = 0; i < runs_.size(); i += fan_in) {
      const Run* begin = runs_.data() + i;
      const Run* end = runs_.data() + std::min<size_t>(i + fan_in, runs_.size());
      MergeStream stream(file_, begin, end, memory_bytes_);
      SPK_TRY(stream.start());
      const uint64_t from = writer.offset();
      for (;;) {
        SPK_ASSIGN(const bool more, stream.advance());
        if (!more) break;
        SPK_TRY(writer.add(stream.current().record(), stream.current().record_bytes()));
      }
      SPK_TRY(writer.flush());
      merged.push_back({from, writer.offset()});
    }
    spilled_bytes_ += writer.offset();
    file_ = std::move(file);
    runs_ = std::move(merged);
  }
  return {};
}

Status ExternalSorter::finish() {
  assert(!finished_);
  finished_ = true;
  if (runs_.empty()) {
    if (held_ != 0) sort_refs();
    return {};
  }
  if (held_ != 0) SPK_TRY(spill());
  region_.reset();
  region_bytes_ = 0;
  return merge_runs_until_few();
}

Result<std::unique_ptr<ExternalSorter::Stream>> ExternalSorter::read() const {
  assert(finished_);
  if (runs_.empty()) return std::unique_ptr<Stream>(new MemoryStream(*this));
  auto stream = std::make_unique<MergeStream>(file_, runs_.data(), runs_.data() + runs_.size(),
                                              memory_bytes_);
  SPK_TRY(stream->start());
  return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace spk
