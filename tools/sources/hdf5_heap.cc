#include "sources/hdf5_heap.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kCollectionHeadBytes = 16;
constexpr uint64_t kRowHeadBytes = 16;
constexpr uint64_t kWalkedAtMost = 64;  // times the rows that a file of this size can have

}  // namespace

Result<Hdf5Heap> Hdf5Heap::open(const File& file) {
  Hdf5Heap heap(file);
  SPK_ASSIGN(heap.file_bytes_, file.size());
  return heap;
}

Status Hdf5Heap::bad(uint64_t address, const char* what) const {
  return damaged(what).at_path(escape_bytes(file_->path())).at_offset(address);
}

Result<const Hdf5Heap::Collection*> Hdf5Heap::collection(uint64_t address) {
  if (const auto found = collections_.find(address); found != collections_.end()) {
    return &found->second;
  }
  uint8_t head[kCollectionHeadBytes];
  if (!range_fits(address, sizeof head, file_bytes_)) {
    return bad(address, "truncated: rows of variable length lie behind the end");
  }
  SPK_TRY(file_->read_exact(address, head));
  const auto bytes = load_le<uint64_t>(head + 8);
  if (as_text(ByteSpan(head).first(4)) != "GCOL" || head[4] != 1 ||
      !range_fits(address, bytes, file_bytes_) || bytes < kCollectionHeadBytes) {
    return bad(address, "rows of variable length lie where none are");
  }
  Collection rows;
  for (uint64_t at = kCollectionHeadBytes; bytes - at >= kRowHeadBytes;) {
    uint8_t row[kRowHeadBytes];
    SPK_TRY(file_->read_exact(address + at, row));
    const auto number = load_le<uint16_t>(row);
    const auto size = load_le<uint64_t>(row + 8);
    if (number == 0) break;  // what is left is free
    at += kRowHeadBytes;
    if (size > bytes - at) return bad(address + at, "a row is longer than what it lies in");
    rows[number] = {address + at, size};
    at = std::min(bytes, at + round_up(size, 8));
    if (++walked_ > kWalkedAtMost * (file_bytes_ / kRowHeadBytes + 1)) {
      return bad(address, "rows of variable length lead in circles");
    }
  }
  if (rows_kept_ > kRowsKept) {
    collections_.clear();
    rows_kept_ = 0;
  }
  rows_kept_ += rows.size() + 1;
  return &(collections_[address] = std::move(rows));
}

Result<Hdf5Heap::Row> Hdf5Heap::find(ByteSpan place) {
  const auto bytes = load_le<uint32_t>(place.data());
  const auto address = load_le<uint64_t>(place.data() + 4);
  const auto number = load_le<uint32_t>(place.data() + 12);
  if (bytes == 0) return Row();
  SPK_ASSIGN(const Collection* rows, collection(address));
  const auto found = number > UINT16_MAX ? rows->end() : rows->find(static_cast<uint16_t>(number));
  if (found == rows->end()) return bad(address, "a row of variable length is missing");
  if (bytes > found->second.bytes) return bad(address, "a row is longer than what is stored");
  return Row{found->second.offset, bytes};
}

}  // namespace spk
