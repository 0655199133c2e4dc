#include "format/footer.h"

#include <gtest/gtest.h>

#include <functional>

namespace spk {
namespace {

PackIdentity identity() {
  PackIdentity identity;
  identity.plan_id = {1, 2};
  identity.chunk_bytes_log2 = 16;
  return identity;
}

const std::vector<ChunkRow> kRows = {{0, 1, 0, 10, 0xaaaaaaaaaaaaaaaa, 60000},
                                     {1, 70000, 10, 1, 7, uint64_t{70000} << 16},
                                     {70001, 1, 11, 2, 8, 300}};

class FooterTest : public ::testing::Test {
 protected:
  FooterTest() {
    parts_.emplace_back(PartKind::kChunks, encode_chunk_rows(kRows));
    parts_.emplace_back(
        PartKind::kRejects,
        encode_reject_rows(std::vector<RejectRow>{{"bad\xff", 9, "not a picture"}}));
    header_.shard = 3;
    header_.shard_count = 5;
    header_.chunk_count = 3;
    header_.sample_count = 13;
    header_.reject_count = 1;
    header_.first_position = 40;
    header_.position_count = 14;
    header_.data_bytes = kDataBytes;
    footer_ = encode_footer(header_, identity(), parts_);
  }

  // The footer with its header and first part entry changed, and both checksums made right again.
  Status changed(const std::function<void(FooterHeader&, PartEntry&)>& change) const {
    std::vector<uint8_t> footer = footer_;
    FooterHeader header = header_;
    PartEntry entry = PartEntry::decode(footer.data() + FooterHeader::kBytes);
    change(header, entry);
    entry.encode(footer.data() + FooterHeader::kBytes);
    header.encode(footer.data());
    const uint64_t head_bytes = FooterHeader::kBytes + 2 * PartEntry::kBytes;
    header.checksum = xxh3_64(ByteSpan(footer).subspan(16, head_bytes - 16));
    header.encode(footer.data());
    uint8_t* last = footer.data() + footer.size() - Trailer::kBytes;
    Trailer trailer = Trailer::decode(last);
    trailer.footer_checksum = header.checksum;
    trailer.encode(last);
    trailer.checksum = xxh3_64(ByteSpan(last, Trailer::kBytes).subspan(16));
    trailer.encode(last);
    return FooterView::parse(footer).status();
  }

  static constexpr uint64_t kDataBytes = uint64_t{70002} << 16;
  FooterHeader header_;
  Parts parts_;
  std::vector<uint8_t> footer_;
};

TEST_F(FooterTest, ReadsBack) {
  EXPECT_EQ(footer_.size() % kFooterAlignBytes, 0u);
  const uint64_t file_bytes = kDataBytes + footer_.size();
  const Trailer trailer =
      decode_trailer(ByteSpan(footer_).last(Trailer::kBytes), file_bytes).value();
  EXPECT_EQ(trailer.footer_offset, kDataBytes);
  EXPECT_EQ(trailer.footer_bytes, footer_.size());
  EXPECT_EQ(trailer.shard, 3u);
  const FooterView view = FooterView::parse(footer_).value();
  EXPECT_EQ(view.header().sample_count, 13u);
  EXPECT_EQ(view.header().first_position, 40u);
  EXPECT_TRUE(view.has(PartKind::kChunks));
  EXPECT_FALSE(view.has(PartKind::kNames));
  EXPECT_EQ(decode_chunk_rows(view.part(PartKind::kChunks).value()).value(), kRows);
  EXPECT_EQ(view.part(PartKind::kNames).status().code(), Code::kDamaged);
  EXPECT_EQ(view.entry(PartKind::kRejects).offset % kSectionAlignBytes, 0u);
  const auto rejects = decode_reject_rows(view.part(PartKind::kRejects).value()).value();
  EXPECT_EQ(rejects, (std::vector<RejectRow>{{"bad\xff", 9, "not a picture"}}));
}

TEST_F(FooterTest, EveryFlippedByteIsNoticed) {
  const uint64_t file_bytes = kDataBytes + footer_.size();
  for (size_t i = 0; i < footer_.size(); ++i) {
    std::vector<uint8_t> footer = footer_;
    footer[i] ^= 0x10;
    const auto trailer = decode_trailer(ByteSpan(footer).last(Trailer::kBytes), file_bytes);
    const auto view = FooterView::parse(footer);
    bool noticed = !trailer.ok() || !view.ok();
    for (const PartKind kind : {PartKind::kChunks, PartKind::kRejects}) {
      noticed = noticed || !view->part(kind).ok();
    }
    EXPECT_TRUE(noticed) << i;
    if (i >= footer_.size() - 64 && i < footer_.size() - 56) {
      EXPECT_EQ(trailer.status().code(), Code::kNotThisFormat);
    } else if (!view.ok()) {
      EXPECT_EQ(view.status().code(), Code::kDamaged) << i;
    }
  }
}

TEST_F(FooterTest, ADamagedPartTellsItsPlace) {
  std::vector<uint8_t> footer = footer_;
  const uint64_t at = FooterView::parse(footer).value().entry(PartKind::kRejects).offset;
  footer[at] ^= 1;
  const FooterView view = FooterView::parse(footer).value();
  EXPECT_TRUE(view.part(PartKind::kChunks).ok());
  const Status status = view.part(PartKind::kRejects).status();
  EXPECT_EQ(status.code(), Code::kDamaged);
  EXPECT_EQ(status.offset(), kDataBytes + at);
}

TEST_F(FooterTest, EveryTruncationIsNoticed) {
  for (size_t size = 0; size < footer_.size(); ++size) {
    const ByteSpan cut = ByteSpan(footer_).first(size);
    EXPECT_FALSE(FooterView::parse(cut).ok()) << size;
    const ByteSpan last = cut.last(std::min<size_t>(size, Trailer::kBytes));
    EXPECT_FALSE(decode_trailer(last, kDataBytes + size).ok()) << size;
  }
}

TEST_F(FooterTest, TrailerMustFitTheFile) {
  const ByteSpan last = ByteSpan(footer_).last(Trailer::kBytes);
  for (const uint64_t file_bytes : {uint64_t{64}, kDataBytes, kDataBytes + footer_.size() - 1,
                                    kDataBytes + footer_.size() + 4096}) {
    EXPECT_EQ(decode_trailer(last, file_bytes).status().code(), Code::kDamaged) << file_bytes;
  }
}

TEST_F(FooterTest, ContradictionsAreDamage) {
  const auto code = [&](const std::function<void(FooterHeader&, PartEntry&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](FooterHeader&, PartEntry&) {}), Code::kOk);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.sample_count = 14; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.reject_count = UINT64_MAX; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.shard = 5; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.shard = 4; }), Code::kDamaged);  // trailer: 3
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.plan_id_low = 9; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.shard_count = kMaxShards + 1; }),
            Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.chunk_bytes_log2 = 64; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.blob_align_log2 = 13; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.data_bytes += 4096; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.data_bytes += 1; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.part_count = 65; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.header_bytes = 0; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.offset += 64; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.bytes = UINT64_MAX; }), Code::kDamaged);
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.kind = 8; }), Code::kDamaged);  // twice
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.flags = 2; }), Code::kDamaged);
}

TEST_F(FooterTest, UnknownPartsVersionsAndReservedBytes) {
  const auto code = [&](const std::function<void(FooterHeader&, PartEntry&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.kind = 99; }), Code::kOk);
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.kind = 99, e.flags = 1; }),
            Code::kUnsupported);
  EXPECT_EQ(code([](FooterHeader&, PartEntry& e) { e.flags = 1; }), Code::kOk);  // known
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.version = 2; }), Code::kUnsupported);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.features_incompatible = 1; }),
            Code::kUnsupported);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.features_compatible = 1; }), Code::kOk);
  EXPECT_EQ(code([](FooterHeader& h, PartEntry&) { h.reserved_0 = 1; }), Code::kUnsupported);
}

TEST(ChunkRows, MustFollowOneAnother) {
  const auto status = [](const std::function<void(std::vector<ChunkRow>&)>& change) {
    std::vector<ChunkRow> rows = kRows;
    change(rows);
    return decode_chunk_rows(encode_chunk_rows(rows)).status();
  };
  using Rows = std::vector<ChunkRow>;
  EXPECT_TRUE(status([](Rows& rows) { rows.clear(); }).ok());
  EXPECT_EQ(status([](Rows& rows) { rows[1].slot = 2; }).code(), Code::kDamaged);
  EXPECT_EQ(status([](Rows& rows) { rows[0].slot = 1; }).code(), Code::kDamaged);
  EXPECT_EQ(status([](Rows& rows) { rows[2].first_sample = 12; }).code(), Code::kDamaged);
  EXPECT_EQ(status([](Rows& rows) { rows[0].span_slots = 0; }).code(), Code::kDamaged);
  EXPECT_EQ(status([](Rows& rows) { rows[2].sample_count = 0; }).code(), Code::kDamaged);
  EXPECT_EQ(status([](Rows& rows) { rows[2].span_slots = UINT32_MAX - 70000; }).code(),
            Code::kDamaged);
  EXPECT_EQ(decode_chunk_rows(encode_reject_rows({})).status().code(), Code::kDamaged);
}

TEST(Identities, AreWhatTheDocumentSays) {
  const auto hash_of = [](std::initializer_list<uint64_t> numbers) {
    std::vector<uint8_t> bytes;
    for (const uint64_t number : numbers) {
      bytes.resize(bytes.size() + 8);
      store_le(bytes.data() + bytes.size() - 8, number);
    }
    return xxh3_128(bytes);
  };
  const uint64_t checksums[] = {11, 12, 13};
  EXPECT_EQ(shard_digest(checksums, 40), hash_of({11, 12, 13, 3, 40}));
  EXPECT_EQ(shard_digest({}, 0), hash_of({0, 0}));
  const Hash128 digests[] = {{1, 2}, {3, 4}};
  EXPECT_EQ(content_id({5, 6}, digests), hash_of({5, 6, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace spk
