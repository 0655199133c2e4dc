#include "container/index_check.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "container/pack.h"
#include "container/parallel_for.h"

namespace spk {

namespace {

// Far above what a shard's or a section's table takes; a hostile, sparse index must not get more.
constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

Damage index_damage(Code code, uint64_t offset, std::string what) {
  Damage damage;
  damage.kind = DamageKind::kIndex;
  damage.code = code == Code::kNotThisFormat ? Code::kDamaged : code;
  damage.file = kIndexName;
  damage.offset = offset;
  damage.what = std::move(what);
  return damage;
}

// Calls use(offset, bytes) for each part of the range that lies in one block of the body.
template <typename Use>
void each_block_piece(uint64_t head_bytes, uint64_t offset, uint64_t bytes, Use&& use) {
  while (bytes > 0) {
    uint64_t piece = bytes;
    if (offset >= head_bytes) {
      const uint64_t in_block = (offset - head_bytes) % kIndexBlockBytes;
      piece = std::min(bytes, kIndexBlockBytes - in_block);
    }
    use(offset, piece);
    offset += piece;
    bytes -= piece;
  }
}

}  // namespace

IndexCheck::IndexCheck(const Directory& dir, uint32_t threads) {
  auto file = File::open_read(dir, kIndexName);
  if (!file.ok()) {
    head_damage_ = index_damage(file.status().code(), 0, file.status().message());
    return;
  }
  file_ = std::move(file).value();
  load_head();
  if (!head_) return;
  check_blocks(threads);
  const auto shards = section(PartKind::kShards);
  if (!shards) return;
  auto rows = decode_shard_rows(*shards);
  const uint64_t offset = head_->section(PartKind::kShards).offset;
  if (!rows.ok()) {
    add(Code::kDamaged, offset, rows.status().message());
  } else if (rows->size() != head_->header.shard_count) {
    add(Code::kDamaged, offset,
        str_cat("index has rows for ", count_of(rows->size(), "shard"), ", its header says ",
                head_->header.shard_count));
  } else {
    rows_ = std::move(rows).value();
  }
}

void IndexCheck::load_head() {
  const auto fail = [&](Code code, uint64_t offset, std::string what) {
    head_damage_ = index_damage(code, offset, std::move(what));
  };
  const auto size = file_.size();
  if (!size.ok()) return fail(size.status().code(), 0, size.status().message());
  file_bytes_ = *size;
  std::vector<uint8_t> first(std::min<uint64_t>(file_bytes_, IndexHeader::kBytes));
  if (Status status = file_.read_exact(0, first); !status.ok()) {
    return fail(status.code(), 0, status.message());
  }
  if (first.size() < IndexHeader::kBytes) {
    return fail(Code::kDamaged, file_bytes_,
                str_cat("index of ", file_bytes_, " bytes is shorter than its header"));
  }
  const IndexHeader header = IndexHeader::decode(first.data());
  // With a size of its own belief the header can be judged before the file's end is.
  const auto head_bytes = index_head_bytes(first, header.file_bytes);
  if (!head_bytes.ok()) return fail(head_bytes.status().code(), 0, head_bytes.status().message());
  if (*head_bytes > file_bytes_) {
    return fail(
        Code::kDamaged, file_bytes_,
        str_cat("index ends at ", file_bytes_, " within its head of ", *head_bytes, " bytes"));
  }
  std::vector<uint8_t> head(*head_bytes);
  if (Status status = file_.read_exact(0, head); !status.ok()) {
    return fail(status.code(), 0, status.message());
  }
  auto decoded = decode_index_head(head);
  if (!decoded.ok()) return fail(decoded.status().code(), 0, decoded.status().message());
  head_ = std::move(decoded).value();
  if (header.file_bytes != file_bytes_) {
    add(Code::kDamaged, std::min(header.file_bytes, file_bytes_),
        str_cat("index has ", file_bytes_, " bytes, its header says ", header.file_bytes));
  }
}

void IndexCheck::check_blocks(uint32_t threads) {
  const IndexHeader& header = head_->header;
  blocks_.resize(header.block_count);
  parallel_for(threads, blocks_.size(), [&](uint64_t b) {
    Block& block = blocks_[b];
    const uint64_t begin = header.head_bytes + b * kIndexBlockBytes;
    const uint64_t bytes = std::min(kIndexBlockBytes, header.file_bytes - begin);
    if (!range_fits(begin, bytes, file_bytes_)) {
      block.bad = block.beyond_end = true;
      return;
    }
    std::vector<uint8_t> content(bytes);
    if (Status status = file_.read_exact(begin, content); !status.ok()) {
      block.bad = true;
      block.unreadable = status.message();
      return;
    }
    block.actual = xxh3_64(content);
    block.bad = block.actual != head_->block_checksums[b];
  });
}

void IndexCheck::add(Code code, uint64_t offset, std::string what) {
  others_.push_back(index_damage(code, offset, std::move(what)));
}

void IndexCheck::disown(std::string what) {
  head_damage_ = index_damage(Code::kMismatch, 0, std::move(what));
  head_.reset();
  rows_.reset();
  blocks_.clear();
  others_.clear();
}

const ShardRow* IndexCheck::row(uint32_t shard) const noexcept {
  return rows_ && shard < rows_->size() ? &(*rows_)[shard] : nullptr;
}

bool IndexCheck::range_ok(uint64_t offset, uint64_t bytes) const noexcept {
  if (!head_ || offset < head_->header.head_bytes ||
      !range_fits(offset, bytes, head_->header.file_bytes)) {
    return false;
  }
  if (bytes == 0) return true;
  const uint64_t first = (offset - head_->header.head_bytes) / kIndexBlockBytes;
  const uint64_t last = (offset + bytes - 1 - head_->header.head_bytes) / kIndexBlockBytes;
  for (uint64_t b = first; b <= last; ++b) {
    if (blocks_[b].bad) return false;
  }
  return true;
}

std::optional<std::vector<uint8_t>> IndexCheck::read(uint64_t offset, uint64_t bytes) const {
  if (!range_ok(offset, bytes) || bytes > kMaxReadBytes) return std::nullopt;
  std::vector<uint8_t> content(bytes);
  if (!file_.read_exact(offset, content).ok()) return std::nullopt;
  return content;
}

std::optional<std::vector<uint8_t>> IndexCheck::section(PartKind kind) const {
  if (!head_) return std::nullopt;
  const PartEntry entry = head_->section(kind);
  if (entry.kind == 0) return std::nullopt;
  return read(entry.offset, entry.bytes);
}

std::optional<uint64_t> IndexCheck::first_difference(uint64_t offset, ByteSpan expected) const {
  std::vector<uint8_t> actual(std::min<uint64_t>(expected.size(), kIndexBlockBytes));
  while (!expected.empty()) {
    const auto into = MutableByteSpan(actual).first(std::min(actual.size(), expected.size()));
    if (!file_.read_exact(offset, into).ok()) return std::nullopt;
    if (std::memcmp(into.data(), expected.data(), into.size()) != 0) {
      const auto at = std::mismatch(into.begin(), into.end(), expected.begin()).first;
      return offset + static_cast<uint64_t>(at - into.begin());
    }
    offset += into.size();
    expected = expected.subspan(into.size());
  }
  return std::nullopt;
}

void IndexCheck::compare(uint64_t offset, ByteSpan expected, std::string_view what) {
  if (!head_) return;
  bool reported = false;
  const uint64_t base = offset;
  each_block_piece(head_->header.head_bytes, offset, expected.size(), [&](uint64_t at, uint64_t n) {
    const auto found = first_difference(at, expected.subspan(at - base, n));
    if (!found) return;
    const std::lock_guard lock(mutex_);
    const uint64_t head_bytes = head_->header.head_bytes;
    const uint64_t number = (*found - head_bytes) / kIndexBlockBytes;
    if (*found >= head_bytes && number < blocks_.size() && blocks_[number].bad) {
      auto& first = blocks_[number].first_difference;
      if (!first || *found < *first) first = *found;
    } else if (!reported) {
      reported = true;
      add(Code::kMismatch, *found, str_cat("index differs from ", what));
    }
  });
}

std::optional<IndexHeader> IndexCheck::compare_head(IndexHeader header,
                                                    const PackIdentity& identity,
                                                    const IndexPlan& plan) {
  if (!file_.is_open() || file_bytes_ != plan.file_bytes) return std::nullopt;
  std::vector<uint64_t> checksums;
  for (const Block& block : blocks_) {
    if (block.bad) return std::nullopt;
    checksums.push_back(block.actual);
  }
  std::vector<uint8_t> content;
  for (uint64_t at = plan.head_bytes; !head_ && at < file_bytes_; at += kIndexBlockBytes) {
    content.resize(std::min(kIndexBlockBytes, file_bytes_ - at));
    if (!file_.read_exact(at, content).ok()) return std::nullopt;
    checksums.push_back(xxh3_64(content));
  }
  if (checksums.size() != plan.block_count) return std::nullopt;
  const std::vector<uint8_t> expected = encode_index_head(header, identity, plan, checksums);
  const auto found = first_difference(0, expected);
  if (found && head_damage_) {
    if (head_damage_->code == Code::kDamaged) head_damage_->offset = *found;
  } else if (found && others_.empty()) {
    add(Code::kMismatch, *found, "index head differs from what the shards say");
  }
  return header;
}

std::vector<Damage> IndexCheck::damages() const {
  std::vector<Damage> all;
  if (head_damage_) all.push_back(*head_damage_);
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const Block& block = blocks_[b];
    if (!block.bad || block.beyond_end) continue;
    const uint64_t begin = head_->header.head_bytes + b * kIndexBlockBytes;
    if (!block.unreadable.empty()) {
      all.push_back(index_damage(Code::kIo, begin, block.unreadable));
      continue;
    }
    all.push_back(
        index_damage(Code::kDamaged, block.first_difference.value_or(begin),
                     str_cat("block ", b, " of the index has checksum ", to_hex(block.actual),
                             ", expected ", to_hex(head_->block_checksums[b]))));
  }
  all.insert(all.end(), others_.begin(), others_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Damage& a, const Damage& b) { return a.offset < b.offset; });
  return all;
}

}  // namespace spk
