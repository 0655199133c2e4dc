#include "container/chunk_verify.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

// Inside a pack, bytes with a wrong magic are ours and damaged.
Code damage_code(const Status& status) {
  return status.code() == Code::kNotThisFormat ? Code::kDamaged : status.code();
}

}  // namespace

Damage& ChunkVerifier::report(DamageKind kind, Code code, uint64_t chunk_offset, std::string what) {
  Damage damage;
  damage.kind = kind;
  damage.code = code;
  damage.file = shard_->name;
  damage.shard = shard_->shard;
  damage.chunk = number_;
  damage.offset = start_ + chunk_offset;
  damage.what = std::move(what);
  damages_->push_back(std::move(damage));
  return damages_->back();
}

void ChunkVerifier::report(DamageKind kind, const Status& status, uint64_t chunk_offset,
                           std::string_view where) {
  report(kind, damage_code(status), chunk_offset, str_cat(where, status.message()));
}

void ChunkVerifier::verify(const ShardExtent& shard, uint32_t number, const ChunkRow& row,
                           uint64_t end, std::vector<Damage>& damages) {
  shard_ = &shard;
  number_ = number;
  row_ = row;
  damages_ = &damages;
  start_ = uint64_t{row.slot} << shard.identity.chunk_bytes_log2;
  extent_bytes_ = end - start_;
  has_chunk_rows_ = false;
  checked_to_ = 0;
  const uint64_t available =
      shard.available_bytes > start_ ? std::min(shard.available_bytes - start_, extent_bytes_) : 0;
  cut_ = available < extent_bytes_;
  if (shard.file != nullptr) bytes_.open(*shard.file, start_, available);
  if (shard.file != nullptr && available > 0) check_head();
  check_payload();
}

void ChunkVerifier::check_head() {
  const auto first = bytes_.span(0, ChunkHeader::kBytes);
  if (!first.ok()) {
    if (!cut_) report(DamageKind::kChunk, first.status(), 0, "");
    return;
  }
  const auto header = decode_chunk_header(*first);
  if (!header.ok()) return report(DamageKind::kChunk, header.status(), 0, "");
  const uint64_t head_bytes = chunk_head_bytes(*header);
  if (head_bytes > extent_bytes_) {
    report(DamageKind::kChunk, Code::kDamaged, 0,
           str_cat("chunk header announces a table of ", header->table_bytes, " bytes in ",
                   extent_bytes_));
    return;
  }
  if (cut_ && head_bytes > bytes_.available()) return;
  const auto head = bytes_.span(0, head_bytes);
  if (!head.ok()) return report(DamageKind::kChunk, head.status(), 0, "");
  if (Status status = check_chunk_head(*header, *head); !status.ok()) {
    return report(DamageKind::kChunk, status, 0, "");
  }
  compare_head(*header);
  ByteSpan table = head->subspan(ChunkHeader::kBytes);
  if (extent_bytes_ > shard_->identity.chunk_bytes()) {
    table_.assign(table.begin(), table.end());
    table = table_;
  }
  auto rows = SampleRows::from_chunk(table, *shard_->schema);
  if (!rows.ok()) {
    return report(DamageKind::kChunk, rows.status(), ChunkHeader::kBytes, "chunk table: ");
  }
  if (rows->size() != row_.sample_count) {
    report(DamageKind::kChunk, Code::kDamaged, ChunkHeader::kBytes,
           str_cat("chunk table has ", rows->size(), " rows, expected ", row_.sample_count));
    return;
  }
  const auto view = TableView::parse(table);
  if (view.ok() && !view->padding_is_zero()) {
    report(DamageKind::kPadding, Code::kDamaged, ChunkHeader::kBytes,
           "padding in the chunk's table is not zero");
  }
  chunk_rows_ = std::move(rows).value();
  has_chunk_rows_ = true;
  checked_to_ = head_bytes;
}

void ChunkVerifier::compare_head(const ChunkHeader& header) {
  const ChunkExpectation expected{shard_->identity, shard_->shard, number_, row_.slot,
                                  row_.first_sample};
  if (Status status = check_chunk_place(header, expected); !status.ok()) {
    return report(DamageKind::kChunk, status, 0, "");
  }
  if (header.checksum != row_.header_checksum) {
    report(DamageKind::kChunk, Code::kMismatch, 0,
           str_cat("chunk header has checksum ", to_hex(header.checksum),
                   ", the shard's footer says ", to_hex(row_.header_checksum)));
  } else if (header.sample_count != row_.sample_count || header.span_slots != row_.span_slots ||
             header.used_bytes != row_.used_bytes) {
    report(DamageKind::kChunk, Code::kMismatch, 0,
           str_cat("chunk header says ", count_of(header.sample_count, "sample"), " in ",
                   header.used_bytes, " bytes, the shard's footer ", row_.sample_count, " in ",
                   row_.used_bytes));
  }
}

void ChunkVerifier::check_payload() {
  const SampleRows* rows = shard_->rows;
  uint64_t first = row_.first_sample;
  uint64_t base = start_;
  if (rows == nullptr) {
    if (!has_chunk_rows_) return;
    rows = &chunk_rows_;
    first = 0;
    base = 0;
  }
  // With a broken head it is not known where the table ends: the first gap is left out.
  bool first_gap = has_chunk_rows_;
  bool differs = false;
  for (uint64_t n = 0; n < row_.sample_count; ++n) {
    if (has_chunk_rows_ && rows != &chunk_rows_ && !differs &&
        !rows->same(first + n, chunk_rows_, n, start_)) {
      differs = true;
      report(DamageKind::kChunk, Code::kMismatch, ChunkHeader::kBytes,
             str_cat("row ", n, " of the chunk's table differs from the shard's footer"))
          .sample = row_.first_sample + n;
    }
    if (!first_gap) {
      for (size_t i = 0; i < rows->field_count() && !first_gap; ++i) {
        if (!rows->is_blob(i) || !rows->present(i, first + n)) continue;
        checked_to_ = rows->blob(i, first + n).offset - base;
        first_gap = true;
      }
    }
    check_sample(*rows, first + n, base, row_.first_sample + n);
  }
  if (!first_gap) checked_to_ = row_.used_bytes;
  check_padding(extent_bytes_);
}

void ChunkVerifier::check_sample(const SampleRows& rows, uint64_t row, uint64_t base,
                                 uint64_t number) {
  bool lost = false;
  const auto lose = [&](Code code, uint64_t offset, std::string what) {
    Damage& damage = report(DamageKind::kSample, code, offset, std::move(what));
    damage.sample = number;
    damage.key = std::string(rows.key(row));
    damage.samples_lost = lost ? 0 : 1;
    lost = true;
  };
  for (size_t i = 0; i < rows.field_count(); ++i) {
    if (!rows.is_blob(i) || !rows.present(i, row)) continue;
    const SampleRows::Blob blob = rows.blob(i, row);
    const uint64_t offset = blob.offset - base;
    const std::string& field = shard_->schema->fields[i].name;
    if (blob.offset < base || offset < checked_to_ ||
        !range_fits(offset, blob.bytes, extent_bytes_)) {
      lose(Code::kDamaged, checked_to_,
           str_cat("field '", field, "' lies at ", blob.offset, " with ", blob.bytes,
                   " bytes, outside its chunk or over another"));
      continue;
    }
    check_padding(offset);
    checked_to_ = offset + blob.bytes;
    if (shard_->file == nullptr) {
      if (blob.bytes != 0) {
        const bool missing = shard_->open_error == Code::kNotFound;
        lose(
            shard_->open_error, offset,
            str_cat("field '", field, "' ",
                    missing ? "is missing with its shard" : "cannot be read, as its shard cannot"));
      }
      continue;
    }
    const auto actual = bytes_.hash(offset, blob.bytes);
    if (!actual.ok()) {
      lose(actual.status().code(), offset,
           str_cat("field '", field, "' cannot be read: ", actual.status().message()));
    } else if (*actual != blob.checksum) {
      lose(Code::kDamaged, offset,
           str_cat("field '", field, "' has checksum ", to_hex(*actual), ", expected ",
                   to_hex(blob.checksum)));
    }
  }
}

void ChunkVerifier::check_padding(uint64_t end) {
  if (end <= checked_to_) return;
  const uint64_t begin = checked_to_;
  checked_to_ = end;
  const uint64_t stop = std::min(end, shard_->file == nullptr ? 0 : bytes_.available());
  if (stop <= begin) return;  // cut off
  const auto found = bytes_.first_nonzero(begin, stop - begin);
  if (!found.ok()) {
    report(DamageKind::kPadding, found.status(), begin, "padding cannot be read: ");
  } else if (*found) {
    report(DamageKind::kPadding, Code::kDamaged, **found, "padding is not zero");
  }
}

}  // namespace spk
