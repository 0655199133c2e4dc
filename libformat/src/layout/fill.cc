#include "layout/fill.h"

#include <algorithm>

namespace spk {

ChunkSizer::ChunkSizer(const Schema& schema, uint32_t blob_align_bytes)
    : blob_align_bytes_(blob_align_bytes) {
  for (const Field& field : schema.fields) shapes_.push_back({field.kind, field.length});
  clear();
}

void ChunkSizer::clear() {
  state_ = State();
  state_.fields.resize(shapes_.size());
}

void ChunkSizer::extend(State& state, const StoredSample& sample) const {
  state.rows += 1;
  state.key_bytes += sample.key.size();
  state.ordinal_max = std::max(state.ordinal_max, sample.ordinal);
  state.flags_max = std::max(state.flags_max, sample.flags);
  for (size_t i = 0; i < shapes_.size(); ++i) {
    FieldState& field = state.fields[i];
    const StoredField& stored = sample.fields[i];
    field.any_absent = field.any_absent || !stored.present;
    if (shapes_[i].kind == FieldKind::kBlob) {
      if (!stored.present) continue;
      field.bytes_max = std::max(field.bytes_max, stored.bytes);
      state.blob_bytes += stored.bytes;
      state.payload_bytes = round_up(state.payload_bytes, blob_align_bytes_) + stored.bytes;
      continue;
    }
    // An absent value of fixed length is stored as zeros, which every width holds.
    field.numbers += stored.present ? stored.count : shapes_[i].length;
    if (shapes_[i].kind != FieldKind::kInt64 || !stored.present) continue;
    for (uint32_t n = 0; n < stored.count; ++n) {
      const auto value = static_cast<int64_t>(sample.numbers[stored.first + n]);
      field.min = std::min(field.min, value);
      field.max = std::max(field.max, value);
    }
  }
}

uint64_t ChunkSizer::table_bytes(const State& state) const {
  uint64_t columns = 0;
  uint64_t bytes = 0;
  const auto column = [&](uint64_t count, uint64_t width) {
    columns += 1;
    bytes += column_span_bytes(count * width);
  };
  column(state.rows, unsigned_width(state.key_bytes));
  column(state.key_bytes, 1);
  column(state.rows, unsigned_width(state.ordinal_max));
  if (state.flags_max != 0) column(state.rows, unsigned_width(state.flags_max));
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const FieldState& field = state.fields[i];
    if (field.any_absent) column(state.rows, 1);
    switch (shapes_[i].kind) {
      case FieldKind::kBlob:
        column(state.rows, chunk_offset_width(state.blob_bytes));
        column(state.rows, unsigned_width(field.bytes_max));
        column(state.rows, 8);
        break;
      case FieldKind::kInt64: column(field.numbers, signed_width(field.min, field.max)); break;
      case FieldKind::kFloat32: column(field.numbers, 4); break;
      case FieldKind::kFloat64: column(field.numbers, 8); break;
    }
    if (shapes_[i].kind != FieldKind::kBlob && shapes_[i].length == 0) {
      column(state.rows, unsigned_width(field.numbers));
    }
  }
  return table_data_offset(columns) + bytes;
}

uint64_t ChunkSizer::payload_offset(const State& state) const {
  return round_up(ChunkHeader::kBytes + table_bytes(state), blob_align_bytes_);
}

uint64_t ChunkSizer::payload_offset() const { return payload_offset(state_); }

uint64_t ChunkSizer::bytes_with(const StoredSample& sample) const {
  trial_ = state_;
  extend(trial_, sample);
  return payload_offset(trial_) + trial_.payload_bytes;
}

void ChunkSizer::add(const StoredSample& sample) { extend(state_, sample); }

ChunkFiller::ChunkFiller(const Schema& schema, const Geometry& geometry, bool look_ahead)
    : chunk_bytes_(geometry.chunk_bytes),
      blob_align_bytes_(geometry.blob_align_bytes),
      window_limit_(look_ahead ? kLookAhead : 1),
      sizer_(schema, geometry.blob_align_bytes) {}

void ChunkFiller::push(uint64_t item, StoredSample sample) {
  window_.push_back({item, std::move(sample)});
}

void ChunkFiller::place(size_t window_index) {
  const auto at = window_.begin() + static_cast<ptrdiff_t>(window_index);
  sizer_.add(at->sample);
  open_.items.push_back(at->item);
  open_.samples.push_back(std::move(at->sample));
  window_.erase(at);
}

std::optional<FilledChunk> ChunkFiller::next() {
  while (!wants_more() && !window_.empty()) {
    if (open_.items.empty()) {
      place(0);
      if (sizer_.used_bytes() > chunk_bytes_) return close();  // larger than a chunk: a run
      continue;
    }
    size_t fitting = 0;
    while (fitting < window_.size() && sizer_.bytes_with(window_[fitting].sample) > chunk_bytes_) {
      ++fitting;
    }
    if (fitting == window_.size()) return close();
    place(fitting);
  }
  if (finished_ && window_.empty() && !open_.items.empty()) return close();
  return std::nullopt;
}

FilledChunk ChunkFiller::close() {
  FilledChunk chunk = std::move(open_);
  open_ = FilledChunk();
  chunk.table_bytes = sizer_.table_bytes();
  chunk.payload_offset = sizer_.payload_offset();
  chunk.used_bytes = sizer_.used_bytes();
  chunk.slot = next_slot_;
  chunk.span_slots = static_cast<uint32_t>(divide_up(chunk.used_bytes, chunk_bytes_));
  chunk.first_sample = next_sample_;
  uint64_t at = chunk.payload_offset;
  for (StoredSample& sample : chunk.samples) {
    for (size_t i = 0; i < sample.fields.size(); ++i) {
      StoredField& field = sample.fields[i];
      if (!field.present || !sizer_.is_blob(i)) continue;
      at = round_up(at, blob_align_bytes_);
      field.offset = at;
      at += field.bytes;
    }
  }
  next_slot_ += chunk.span_slots;
  next_sample_ += chunk.samples.size();
  sizer_.clear();
  return chunk;
}

uint64_t shard_data_bytes(uint64_t last_chunk_start, uint64_t last_chunk_used_bytes) noexcept {
  return round_up(last_chunk_start + last_chunk_used_bytes, kFooterAlignBytes);
}

}  // namespace spk
