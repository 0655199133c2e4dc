#include "container/index_body.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

Result<std::unique_ptr<IndexBody>> IndexBody::make(File file, const IndexHead& head) {
  const uint64_t body_bytes = head.header.file_bytes - head.header.head_bytes;
  void* memory = nullptr;
  if (body_bytes != 0) {
    memory = MAP_FAILED;
    if (body_bytes <= SIZE_MAX) {
      memory = ::mmap(nullptr, static_cast<size_t>(body_bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (memory == MAP_FAILED) {
      return Status(Code::kNoMemory,
                    str_cat("no address space for an index of ", format_size(body_bytes)))
          .at_path(file.path())
          .with_hint("raise the limit of virtual memory (ulimit -v)");
    }
  }
  return std::unique_ptr<IndexBody>(
      new IndexBody(std::move(file), head, static_cast<uint8_t*>(memory)));
}

IndexBody::IndexBody(File file, const IndexHead& head, uint8_t* memory)
    : file_(std::move(file)),
      head_bytes_(head.header.head_bytes),
      body_bytes_(head.header.file_bytes - head.header.head_bytes),
      checksums_(head.block_checksums),
      memory_(memory),
      ready_(std::make_unique<std::atomic<uint8_t>[]>(checksums_.size())) {}

IndexBody::~IndexBody() {
  if (memory_ != nullptr) ::munmap(memory_, static_cast<size_t>(body_bytes_));
}

uint64_t IndexBody::block_bytes(uint64_t block) const noexcept {
  return std::min(kIndexBlockBytes, body_bytes_ - block * kIndexBlockBytes);
}

bool IndexBody::contains(uint64_t offset, uint64_t bytes) const noexcept {
  return offset >= head_bytes_ && range_fits(offset - head_bytes_, bytes, body_bytes_);
}

void IndexBody::adopt(ByteSpan first) {
  for (uint64_t block = 0; block < checksums_.size(); ++block) {
    const uint64_t offset = block * kIndexBlockBytes;
    if (!range_fits(head_bytes_ + offset, block_bytes(block), first.size())) return;
    const ByteSpan bytes = first.subspan(head_bytes_ + offset, block_bytes(block));
    // A wrong one is left to load_block, which reads it again and reports it where it matters.
    if (xxh3_64(bytes) != checksums_[block]) continue;
    std::memcpy(memory_ + offset, bytes.data(), bytes.size());
    ready_[block].store(1, std::memory_order_release);
  }
}

Status IndexBody::load_missing(uint64_t offset, uint64_t bytes) const {
  const uint64_t last = (offset - head_bytes_ + bytes - 1) / kIndexBlockBytes;
  for (uint64_t block = (offset - head_bytes_) / kIndexBlockBytes; block <= last; ++block) {
    if (ready_[block].load(std::memory_order_acquire) == 0) SPK_TRY(load_block(block));
  }
  return {};
}

Status IndexBody::load_block(uint64_t block) const {
  const std::lock_guard lock(locks_[block % locks_.size()]);
  if (ready_[block].load(std::memory_order_acquire) != 0) return {};
  const uint64_t start = block * kIndexBlockBytes;
  const uint64_t offset = head_bytes_ + start;
  const MutableByteSpan into(memory_ + start, block_bytes(block));
  SPK_TRY(file_.read_exact(offset, into));
  const uint64_t actual = xxh3_64(into);
  if (actual != checksums_[block]) {
    return damaged(str_cat("block ", block, " of the index has checksum ", to_hex(actual),
                           ", expected ", to_hex(checksums_[block])))
        .at_path(path())
        .at_offset(offset)
        .with_hint("`stripepack repair` rebuilds the index from the shards");
  }
  ready_[block].store(1, std::memory_order_release);
  return {};
}

}  // namespace spk
