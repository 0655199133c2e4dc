#include "container/shard_load.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"
#include "container/manifest.h"
#include "container/pack.h"
#include "layout/fill.h"

namespace spk {

namespace {

// A hostile, sparse file must not be searched for ever.
constexpr uint64_t kMaxGapSlots = uint64_t{1} << 20;
constexpr PartKind kRowParts[] = {PartKind::kChunks, PartKind::kSamples, PartKind::kNames};

struct Range {
  uint64_t offset;
  uint64_t bytes;
};
// Where the shard's table of this kind lies in the index.
Range index_range(const ShardRow& row, PartKind kind) {
  if (kind == PartKind::kChunks) return {row.chunks_offset, row.chunks_bytes};
  if (kind == PartKind::kSamples) return {row.samples_offset, row.samples_bytes};
  return {row.names_offset, row.names_bytes};
}

// That chunks and samples fill the shard's data as a writer lays them out: every blob inside its
// chunk, aligned, right behind the one before it.
Status check_layout(const std::vector<ChunkRow>& chunks, const SampleRows& rows,
                    const PackIdentity& identity, uint64_t data_bytes) {
  const uint64_t chunk_bytes = identity.chunk_bytes();
  const uint64_t align = identity.blob_align_bytes();
  uint64_t samples = 0;
  for (size_t c = 0; c < chunks.size(); ++c) {
    const ChunkRow& chunk = chunks[c];
    const uint64_t start = chunk.slot * chunk_bytes;
    if (chunk.used_bytes > chunk.span_slots * chunk_bytes ||
        divide_up(chunk.used_bytes, chunk_bytes) != chunk.span_slots ||
        chunk.sample_count > rows.size() - samples) {
      return damaged(str_cat("chunk ", c, " has ", chunk.used_bytes, " bytes in ", chunk.span_slots,
                             " slots"));
    }
    uint64_t end = start + ChunkHeader::kBytes;
    bool first = true;
    for (uint64_t row = samples; row < samples + chunk.sample_count; ++row) {
      for (size_t i = 0; i < rows.field_count(); ++i) {
        if (!rows.is_blob(i) || !rows.present(i, row)) continue;
        const SampleRows::Blob blob = rows.blob(i, row);
        const bool placed = first ? blob.offset >= end && blob.offset % align == 0
                                  : blob.offset == round_up(end, align);
        if (!placed || !range_fits(blob.offset, blob.bytes, start + chunk.used_bytes)) {
          return damaged(str_cat("blob of sample ", row, " lies at ", blob.offset, " with ",
                                 blob.bytes, " bytes, not where chunk ", c, " has room for it"));
        }
        first = false;
        end = blob.offset + blob.bytes;
      }
    }
    if (!first && end != start + chunk.used_bytes) {
      return damaged(
          str_cat("chunk ", c, " ends at ", start + chunk.used_bytes, ", its last blob at ", end));
    }
    samples += chunk.sample_count;
  }
  const uint64_t expected =
      chunks.empty() ? 0
                     : shard_data_bytes(chunks.back().slot * chunk_bytes, chunks.back().used_bytes);
  if (samples != rows.size() || data_bytes != expected) {
    return damaged(str_cat("chunks hold ", count_of(samples, "sample"), " and end at ", expected,
                           "; expected ", count_of(rows.size(), "sample"), " and ", data_bytes));
  }
  return {};
}

Hash128 digest_of(const std::vector<ChunkRow>& chunks, uint64_t samples) {
  std::vector<uint64_t> checksums;
  checksums.reserve(chunks.size());
  for (const ChunkRow& chunk : chunks) checksums.push_back(chunk.header_checksum);
  return shard_digest(checksums, samples);
}

uint64_t payload_of(const SampleRows& rows) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < rows.field_count(); ++i) {
    for (uint64_t row = 0; rows.is_blob(i) && row < rows.size(); ++row) {
      if (rows.present(i, row)) bytes += rows.blob(i, row).bytes;
    }
  }
  return bytes;
}

class Loader {
 public:
  Loader(const Directory& dir, const PackFacts& facts, IndexCheck& index,
         std::vector<Damage>& damages, LoadedShard& shard)
      : dir_(dir), facts_(facts), index_(index), damages_(damages), shard_(shard) {}

  void run(uint64_t max_footer_bytes) {
    index_row_ = index_.row(shard_.shard);
    if (open()) load_footer(max_footer_bytes);
    if (shard_.footer.usable) check_identity();
    if (shard_.footer.usable && use_footer()) return;
    if (index_row_ != nullptr && facts_.has_schema && use_index()) return;
    shard_.source = RowSource::kChunks;
    if (shard_.file.is_open() && facts_.has_schema) scan();
  }

 private:
  void report(DamageKind kind, Code code, uint64_t offset, std::string what,
              uint64_t samples_lost = 0) {
    Damage damage;
    damage.kind = kind;
    damage.code = code;
    damage.file = shard_.name;
    damage.shard = shard_.shard;
    damage.offset = offset;
    damage.what = std::move(what);
    damage.samples_lost = samples_lost;
    damages_.push_back(std::move(damage));
  }

  bool open() {
    auto file = File::open_read(dir_, shard_.name);
    if (file.ok()) {
      const auto size = file->size();
      if (size.ok()) {
        shard_.file = std::move(file).value();
        shard_.file_bytes = *size;
        shard_.file.advise_sequential();
        return true;
      }
      shard_.open_error = size.status().code();
      report(DamageKind::kFile, size.status().code(), 0, size.status().message());
    } else {
      const Status& status = file.status();
      shard_.open_error = status.code();
      const bool missing = status.code() == Code::kNotFound;
      report(DamageKind::kFile, status.code(), 0, missing ? "shard is missing" : status.message());
    }
    if (index_row_ != nullptr) shard_.data_bytes = index_row_->data_bytes;
    return false;
  }

  void load_footer(uint64_t max_footer_bytes) {
    FooterPlace place;
    place.end = shard_.file_bytes;
    place.max_bytes = max_footer_bytes;
    if (index_row_ != nullptr) {
      shard_.data_bytes = index_row_->data_bytes;
      const uint64_t expected = index_row_->file_bytes;
      if (shard_.file_bytes != expected && !has_trailer(shard_.file, shard_.file_bytes)) {
        report(DamageKind::kFile, Code::kDamaged, std::min(shard_.file_bytes, expected),
               str_cat("shard has ", shard_.file_bytes, " bytes, expected ", expected));
        if (shard_.file_bytes < expected) return;  // the footer is what was cut off first
        place.end = expected;
      }
      place.data_bytes = index_row_->data_bytes;
    }
    const size_t first = damages_.size();
    check_footer(shard_.file, place, damages_, shard_.footer);
    for (size_t i = first; i < damages_.size(); ++i) {
      damages_[i].file = shard_.name;
      damages_[i].shard = shard_.shard;
    }
    if (shard_.footer.usable) shard_.data_bytes = shard_.footer.header().data_bytes;
  }

  // A shard of another pack is not looked at further: its footer is not believed.
  void check_identity() {
    const FooterHeader& header = shard_.footer.header();
    const Hash128 plan{header.plan_id_low, header.plan_id_high};
    const Hash128 schema{header.schema_hash_low, header.schema_hash_high};
    if (plan != facts_.identity.plan_id || header.shard != shard_.shard ||
        header.shard_count != facts_.shard_count || schema != facts_.schema_hash ||
        header.chunk_bytes_log2 != facts_.identity.chunk_bytes_log2 ||
        header.blob_align_log2 != facts_.identity.blob_align_log2) {
      report(DamageKind::kFile, Code::kMismatch, header.data_bytes,
             str_cat("this is shard ", header.shard, " of ", header.shard_count, " of plan ",
                     plan.to_hex(), "; expected shard ", shard_.shard, " of ", facts_.shard_count,
                     " of plan ", facts_.identity.plan_id.to_hex()));
      shard_.footer.usable = false;
      if (index_row_ != nullptr) shard_.data_bytes = index_row_->data_bytes;
    }
  }

  void footer_damage(PartKind kind, Code code, std::string what) {
    const FooterCheck& footer = shard_.footer;
    const uint64_t part = footer.view.has(kind) ? footer.view.entry(kind).offset : 0;
    report(DamageKind::kFooter, code, shard_.data_bytes + part, std::move(what));
  }

  // True where the footer alone tells everything about the chunks.
  bool use_footer() {
    const FooterCheck& footer = shard_.footer;
    check_shared_parts();
    check_rejects();
    const auto chunks = footer.part(PartKind::kChunks);
    const auto samples = footer.part(PartKind::kSamples);
    const auto names = footer.part(PartKind::kNames);
    for (const PartKind kind : kRowParts) {
      if (!footer.view.has(kind)) {
        footer_damage(kind, Code::kDamaged,
                      str_cat("footer has no part of kind ", static_cast<uint32_t>(kind)));
      }
    }
    if (!chunks || !samples || !names || !facts_.has_schema) {
      place_bad_parts();
      return false;
    }
    if (Status status = take_rows(*chunks, *samples, *names); !status.ok()) {
      footer_damage(PartKind::kChunks, status.code(), status.message());
      return false;
    }
    const FooterHeader& header = footer.header();
    const Hash128 digest = digest_of(shard_.chunks, shard_.rows.size());
    if (shard_.chunks.size() != header.chunk_count || shard_.rows.size() != header.sample_count ||
        digest != Hash128{header.digest_low, header.digest_high} ||
        payload_of(shard_.rows) != header.payload_bytes) {
      footer_damage(PartKind::kChunks, Code::kDamaged,
                    "footer's counts or digest differ from its tables");
      return false;
    }
    shard_.source = RowSource::kFooter;
    shard_.payload_bytes = header.payload_bytes;
    shard_.row.file_bytes = header.data_bytes + header.footer_bytes;
    shard_.row.data_bytes = header.data_bytes;
    shard_.row.chunk_count = header.chunk_count;
    shard_.row.sample_count = header.sample_count;
    shard_.row.reject_count = header.reject_count;
    shard_.row.digest = digest;
    shard_.row.chunks_bytes = chunks->size();
    shard_.row.samples_bytes = samples->size();
    shard_.row.names_bytes = names->size();
    compare_with_index(digest);
    place_bad_parts();
    return true;
  }

  void check_shared_parts() {
    const bool has_schema = shard_.shard == 0 || shard_.shard + 1 == facts_.shard_count;
    const auto check = [&](PartKind kind, bool known, const std::vector<uint8_t>& expected) {
      if (!shard_.footer.view.has(kind)) {
        footer_damage(kind, Code::kDamaged,
                      str_cat("footer has no part of kind ", static_cast<uint32_t>(kind)));
        return;
      }
      const auto part = shard_.footer.part(kind);
      if (!part || !known ||
          std::equal(part->begin(), part->end(), expected.begin(), expected.end())) {
        return;
      }
      footer_damage(kind, Code::kMismatch,
                    str_cat("footer part of kind ", static_cast<uint32_t>(kind),
                            " differs from the other shards'"));
    };
    if (has_schema) {
      check(PartKind::kFields, facts_.has_schema, facts_.fields);
      check(PartKind::kClasses, facts_.has_schema, facts_.classes);
    }
    check(PartKind::kSettings, facts_.has_settings, facts_.settings);
  }

  void check_rejects() {
    const auto part = shard_.footer.part(PartKind::kRejects);
    if (!part) {
      if (!shard_.footer.view.has(PartKind::kRejects)) {
        footer_damage(PartKind::kRejects, Code::kDamaged, "footer has no list of rejects");
      }
      return;
    }
    const auto rows = decode_reject_rows(*part);
    if (!rows.ok() || rows->size() != shard_.footer.header().reject_count) {
      footer_damage(PartKind::kRejects, Code::kDamaged,
                    rows.ok() ? str_cat("footer lists ", rows->size(), " rejects, its header says ",
                                        shard_.footer.header().reject_count)
                              : rows.status().message());
    }
  }

  Status take_rows(ByteSpan chunks, ByteSpan samples, ByteSpan names) {
    SPK_ASSIGN(shard_.chunks, decode_chunk_rows(chunks));
    SPK_ASSIGN(shard_.rows, SampleRows::from_footer(samples, names, facts_.schema));
    return check_layout(shard_.chunks, shard_.rows, facts_.identity, shard_.data_bytes);
  }

  void compare_with_index(const Hash128& digest) {
    if (index_row_ == nullptr) return;
    if (index_row_->digest != digest) {
      report(DamageKind::kFile, Code::kMismatch, shard_.data_bytes,
             str_cat("shard is whole, but not the one that the index describes: digest ",
                     digest.to_hex(), ", expected ", index_row_->digest.to_hex()));
      shard_.differs_from_index = true;
      index_row_ = nullptr;
      return;
    }
    for (const PartKind kind : kRowParts) {
      const auto part = shard_.footer.part(kind);
      const Range range = index_range(*index_row_, kind);
      if (part && part->size() == range.bytes) {
        index_.compare(range.offset, *part, str_cat("the footer of shard ", shard_.shard));
      }
    }
  }

  // The index knows what stood where a checksum only says that something is wrong.
  void place_bad_parts() {
    const FooterCheck& footer = shard_.footer;
    for (const PartKind kind : kRowParts) {
      if (!footer.view.has(kind) || footer.part(kind) || index_row_ == nullptr) continue;
      const PartEntry entry = footer.view.entry(kind);
      const Range range = index_range(*index_row_, kind);
      const auto expected = index_.read(range.offset, range.bytes);
      if (!expected || entry.bytes != expected->size()) continue;
      const uint8_t* actual = footer.bytes.data() + entry.offset;
      const auto differs = std::mismatch(expected->begin(), expected->end(), actual).first;
      for (Damage& damage : damages_) {
        if (damage.kind == DamageKind::kFooter &&
            damage.offset == shard_.data_bytes + entry.offset) {
          damage.offset += static_cast<uint64_t>(differs - expected->begin());
          break;
        }
      }
    }
  }

  bool use_index() {
    const auto read = [&](PartKind kind) {
      const Range range = index_range(*index_row_, kind);
      return index_.read(range.offset, range.bytes);
    };
    const auto chunks = read(PartKind::kChunks);
    auto samples = read(PartKind::kSamples);
    auto names = read(PartKind::kNames);
    if (!chunks || !samples || !names) return false;
    shard_.index_samples = std::move(*samples);
    shard_.index_names = std::move(*names);
    shard_.data_bytes = index_row_->data_bytes;
    if (!take_rows(*chunks, shard_.index_samples, shard_.index_names).ok() ||
        digest_of(shard_.chunks, shard_.rows.size()) != index_row_->digest) {
      shard_.chunks.clear();
      shard_.rows = SampleRows();
      return false;
    }
    shard_.source = RowSource::kIndex;
    shard_.row = *index_row_;
    shard_.payload_bytes = payload_of(shard_.rows);
    return true;
  }

  // Neither footer nor index: chunks are recognised by their headers, slot by slot.
  void scan() {
    shard_.chunks.clear();
    shard_.rows = SampleRows();
    const uint64_t chunk_bytes = facts_.identity.chunk_bytes();
    std::vector<uint8_t> head;
    uint64_t samples = 0;
    uint64_t gap_start = UINT64_MAX;
    uint64_t end = shard_.file_bytes;
    if (shard_.footer.usable) end = std::min(end, shard_.data_bytes);
    for (uint64_t at = 0; at < end;) {
      const auto header = recognise(at, head);
      if (!header) {
        gap_start = std::min(gap_start, at);
        if (at - gap_start >= kMaxGapSlots * chunk_bytes) break;
        at += chunk_bytes;
        continue;
      }
      if (gap_start != UINT64_MAX) report_gap(gap_start, header->first_sample - samples);
      gap_start = UINT64_MAX;
      ChunkRow row;
      row.slot = header->slot;
      row.span_slots = header->span_slots;
      row.first_sample = header->first_sample;
      row.sample_count = header->sample_count;
      row.header_checksum = header->checksum;
      row.used_bytes = header->used_bytes;
      shard_.chunks.push_back(row);
      shard_.chunk_numbers.push_back(header->chunk);
      samples = row.first_sample + row.sample_count;
      at += row.span_slots * chunk_bytes;
    }
    uint64_t data_end = 0;
    if (!shard_.chunks.empty()) {
      const ChunkRow& last = shard_.chunks.back();
      data_end = shard_data_bytes(last.slot * chunk_bytes, last.used_bytes);
    }
    // Behind the last chunk there is the footer, which is damaged; only whole slots are chunks.
    if (gap_start != UINT64_MAX && gap_start + chunk_bytes < end) report_gap(gap_start, 0);
    shard_.data_bytes = data_end;
  }

  std::optional<ChunkHeader> recognise(uint64_t at, std::vector<uint8_t>& head) {
    head.resize(ChunkHeader::kBytes);
    if (!range_fits(at, head.size(), shard_.file_bytes) || !shard_.file.read_exact(at, head).ok()) {
      return std::nullopt;
    }
    const auto header = decode_chunk_header(head);
    if (!header.ok()) return std::nullopt;
    const uint64_t head_bytes = chunk_head_bytes(*header);
    if (!range_fits(at, head_bytes, shard_.file_bytes)) return std::nullopt;
    head.resize(head_bytes);
    if (!shard_.file.read_exact(at, head).ok() || !check_chunk_head(*header, head).ok()) {
      return std::nullopt;
    }
    const uint64_t samples = shard_.chunks.empty() ? 0
                                                   : shard_.chunks.back().first_sample +
                                                         shard_.chunks.back().sample_count;
    const ChunkExpectation expected{facts_.identity, shard_.shard, header->chunk,
                                    static_cast<uint32_t>(at >> facts_.identity.chunk_bytes_log2),
                                    std::max(header->first_sample, samples)};
    if (!check_chunk_place(*header, expected).ok()) return std::nullopt;
    return *header;
  }

  void report_gap(uint64_t offset, uint64_t samples) {
    report(DamageKind::kChunk, Code::kDamaged, offset,
           samples != 0
               ? str_cat("no chunk can be recognised here; it held ", count_of(samples, "sample"),
                         ", whose names footer and index have lost too")
               : std::string("no chunk can be recognised here"),
           samples);
  }

  const Directory& dir_;
  const PackFacts& facts_;
  IndexCheck& index_;
  std::vector<Damage>& damages_;
  LoadedShard& shard_;
  const ShardRow* index_row_ = nullptr;
};

}  // namespace

uint64_t LoadedShard::chunk_end(size_t i, const PackIdentity& identity) const noexcept {
  if (i + 1 == chunks.size()) return data_bytes;
  return (uint64_t{chunks[i].slot} + chunks[i].span_slots) << identity.chunk_bytes_log2;
}

ShardExtent LoadedShard::extent(const PackFacts& facts) const {
  ShardExtent extent;
  extent.file = file.is_open() ? &file : nullptr;
  extent.open_error = open_error;
  extent.name = name;
  extent.shard = shard;
  extent.data_bytes = data_bytes;
  extent.available_bytes = std::min(file_bytes, data_bytes);
  extent.identity = facts.identity;
  extent.schema = &facts.schema;
  extent.rows = source == RowSource::kChunks ? nullptr : &rows;
  return extent;
}

ShardSummary LoadedShard::summary() const {
  ShardSummary summary;
  summary.shard = shard;
  summary.known = source != RowSource::kChunks;
  summary.row = row;
  summary.payload_bytes = payload_bytes;
  summary.file_bytes = file_bytes;
  summary.chunk_count = chunks.size();
  for (const ChunkRow& chunk : chunks) summary.sample_count += chunk.sample_count;
  if (const auto part = footer.part(PartKind::kRejects)) {
    const auto rejects = decode_reject_rows(*part);
    if (rejects.ok()) {
      summary.rejects.emplace();
      for (const RejectRow& reject : *rejects) append_reject(*summary.rejects, reject);
    }
  } else if (summary.known && row.reject_count == 0) {
    summary.rejects.emplace();
  }
  return summary;
}

void load_shard(const Directory& dir, const PackFacts& facts, IndexCheck& index, uint32_t shard,
                uint64_t max_footer_bytes, std::vector<Damage>& damages, LoadedShard& loaded) {
  loaded.shard = shard;
  if (loaded.name.empty()) loaded.name = shard_file_name(shard);
  Loader(dir, facts, index, damages, loaded).run(max_footer_bytes);
}

}  // namespace spk
