// The part of a unit's life that goes by memory that loaders of one node share.
#include "base/checked.h"
#include "loader/read_unit.h"

namespace spk {

bool ReadUnit::shares() const noexcept {
  return context_->shared != nullptr && chunk_number_ != kNoChunk &&
         chunk_.read_bytes <= context_->shared->slot_bytes() && extent_.offset >= chunk_.offset &&
         range_fits(extent_.offset - chunk_.offset, extent_.bytes, chunk_.read_bytes);
}

void ReadUnit::take_shared(SharedChunk found) {
  shared_ = std::move(found);
  if (shared_.state() != SharedChunk::State::kReady) return;
  context_->shared_hits += 1;
  bytes_ = shared_.bytes().subspan(extent_.offset - chunk_.offset, extent_.bytes);
}

// Until the other loader has read it; where that comes to nothing, reads it here.
Status ReadUnit::wait_and_take(Status& read) {
  take_shared(context_->shared->wait(chunk_number_));
  if (shared_.state() == SharedChunk::State::kReady) return {};
  SPK_TRY(context_->files->pin(shard_, pin_));
  SPK_TRY(take_memory());
  read = pin_->read(read_offset_, memory_);
  return {};
}

bool ReadUnit::is_checked_already() const noexcept {
  return shared_.state() == SharedChunk::State::kReady && shared_.checked() == context_->check_key;
}

// What was read for all is given to all, damaged or not: who has not compared it does so.
void ReadUnit::publish() noexcept {
  if (shared_.state() != SharedChunk::State::kMine) return;
  if (!status_.ok()) {
    shared_ = {};
    return;
  }
  context_->shared_reads += 1;
  shared_.publish(is_whole_ && failed_.empty() ? context_->check_key : 0);
}

}  // namespace spk
