#include "format/index.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/checked.h"

namespace spk {
namespace {

std::vector<ShardRow> three_shards() {
  std::vector<ShardRow> rows(3);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].file_bytes = (uint64_t{1} << 33) + i * 4096;
    rows[i].data_bytes = uint64_t{1} << 33;
    rows[i].chunk_count = 10 + i;
    rows[i].sample_count = 1000 + i;
    rows[i].reject_count = i;
    rows[i].digest = {i, ~i};
    rows[i].chunks_bytes = 800 + 8 * i;
    rows[i].samples_bytes = 700000 + 8 * i;
    rows[i].names_bytes = 100000;
  }
  return rows;
}

class IndexTest : public ::testing::Test {
 protected:
  IndexTest() {
    plan_ = plan_index(rows_, 200, 104, 56);
    checksums_.resize(plan_.block_count);
    for (size_t i = 0; i < checksums_.size(); ++i) checksums_[i] = 100 + i;
    header_.shard_count = 3;
    header_.chunk_count = 33;
    header_.sample_count = 3003;
    PackIdentity identity;
    identity.plan_id = {1, 2};
    head_ = encode_index_head(header_, identity, plan_, checksums_);
  }

  Status changed(const std::function<void(IndexHeader&, PartEntry&)>& change) const {
    std::vector<uint8_t> head = head_;
    IndexHeader header = header_;
    PartEntry entry = PartEntry::decode(head.data() + IndexHeader::kBytes);
    change(header, entry);
    entry.encode(head.data() + IndexHeader::kBytes);
    header.encode(head.data());
    header.checksum = xxh3_64(ByteSpan(head).subspan(16));
    header.encode(head.data());
    return decode_index_head(head).status();
  }

  std::vector<ShardRow> rows_ = three_shards();
  IndexPlan plan_;
  std::vector<uint64_t> checksums_;
  IndexHeader header_;
  std::vector<uint8_t> head_;
};

TEST_F(IndexTest, PlanLeavesNoGapsAndNoOverlaps) {
  ASSERT_EQ(plan_.sections.size(), 7u);
  EXPECT_EQ(plan_.head_bytes, kFooterAlignBytes);
  uint64_t end = plan_.head_bytes;
  for (const PartEntry& section : plan_.sections) {
    EXPECT_EQ(section.offset, round_up(end, kSectionAlignBytes));
    end = section.offset + section.bytes;
  }
  EXPECT_EQ(plan_.file_bytes, round_up(end, kSectionAlignBytes));
  EXPECT_EQ(plan_.block_count, 3u);  // about 2.4 MB
  EXPECT_EQ(plan_.sections[0].bytes, encode_shard_rows(rows_).size());
  uint64_t chunks = plan_.sections[4].offset;
  uint64_t samples = plan_.sections[5].offset;
  uint64_t names = plan_.sections[6].offset;
  for (const ShardRow& row : rows_) {
    EXPECT_EQ(row.chunks_offset, chunks);
    EXPECT_EQ(row.samples_offset, samples);
    EXPECT_EQ(row.names_offset, names);
    chunks += row.chunks_bytes;
    samples += row.samples_bytes;
    names += row.names_bytes;
  }
  EXPECT_EQ(names, plan_.sections[6].offset + plan_.sections[6].bytes);
}

TEST_F(IndexTest, HeadReadsBack) {
  EXPECT_EQ(head_.size(), plan_.head_bytes);
  EXPECT_EQ(index_head_bytes(head_, plan_.file_bytes).value(), plan_.head_bytes);
  const IndexHead head = decode_index_head(head_).value();
  EXPECT_EQ(head.header.sample_count, 3003u);
  EXPECT_EQ(head.block_checksums, checksums_);
  EXPECT_EQ(head.section(PartKind::kNames).bytes, 300000u);
  EXPECT_EQ(head.section(PartKind::kRejects).bytes, 0u);
}

TEST_F(IndexTest, EveryFlippedByteOfTheHeadIsNoticed) {
  for (size_t i = 0; i < head_.size(); ++i) {
    std::vector<uint8_t> head = head_;
    head[i] ^= 1;
    const auto head_bytes = index_head_bytes(head, plan_.file_bytes);
    if (!head_bytes.ok()) {
      EXPECT_EQ(head_bytes.status().code(), i < 8 ? Code::kNotThisFormat : Code::kDamaged) << i;
    } else {
      // A flipped head_bytes asks for another piece of the file; whatever is in it is not ours.
      head.resize(*head_bytes);
      EXPECT_EQ(decode_index_head(head).status().code(), Code::kDamaged) << i;
    }
  }
}

TEST_F(IndexTest, SizesMustFitTheFile) {
  EXPECT_EQ(index_head_bytes(ByteSpan(head_).first(191), 191).status().code(), Code::kDamaged);
  EXPECT_EQ(index_head_bytes(head_, plan_.file_bytes - 1).status().code(), Code::kDamaged);
  IndexHeader header = header_;
  std::vector<uint8_t> head = head_;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{191}, kMaxIndexHeadBytes + 4096, UINT64_MAX}) {
    header.head_bytes = bytes;
    header.encode(head.data());
    EXPECT_EQ(index_head_bytes(head, plan_.file_bytes).status().code(), Code::kDamaged) << bytes;
  }
}

TEST_F(IndexTest, ContradictionsAreDamage) {
  const auto code = [&](const std::function<void(IndexHeader&, PartEntry&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](IndexHeader&, PartEntry&) {}), Code::kOk);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.shard_count = 0; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.shard_count = kMaxShards + 1; }),
            Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.chunk_bytes_log2 = 27; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.section_count = 65; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.section_count = 6; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.block_count = 4; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.block_count = UINT32_MAX; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.header_bytes = 200; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.offset += 64; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.offset -= 64; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.bytes = UINT64_MAX; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.kind = 7; }), Code::kDamaged);  // twice
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.checksum = 1; }), Code::kDamaged);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.flags = 4; }), Code::kDamaged);
}

TEST_F(IndexTest, WhatANewerWriterMayHaveDone) {
  const auto code = [&](const std::function<void(IndexHeader&, PartEntry&)>& change) {
    return changed(change).code();
  };
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.version = 2; }), Code::kUnsupported);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.features_incompatible = 1; }),
            Code::kUnsupported);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.features_compatible = 1; }), Code::kOk);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.reserved_3 = 1; }), Code::kUnsupported);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.overlay_high = 1; }), Code::kUnsupported);
  EXPECT_EQ(code([](IndexHeader& h, PartEntry&) { h.revision = 7; }), Code::kOk);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.kind = 99; }), Code::kOk);
  EXPECT_EQ(code([](IndexHeader&, PartEntry& e) { e.kind = 99, e.flags = 1; }), Code::kUnsupported);
}

TEST(ShardRows, ReadBack) {
  const std::vector<ShardRow> rows = three_shards();
  const std::vector<ShardRow> read = decode_shard_rows(encode_shard_rows(rows)).value();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[2].file_bytes, rows[2].file_bytes);
  EXPECT_EQ(read[2].digest, rows[2].digest);
  EXPECT_EQ(read[1].names_bytes, 100000u);
}

TEST(ShardRows, SizeFollowsFromTheNumberOfShards) {
  std::vector<ShardRow> rows(3);
  EXPECT_EQ(encode_shard_rows(rows).size(), encode_shard_rows(three_shards()).size());
}

TEST(ShardRows, ACountWithoutColumnsAllocatesNothing) {
  std::vector<uint8_t> table = encode_shard_rows(std::vector<ShardRow>(1));
  for (const uint64_t count : {uint64_t{kMaxShards}, UINT64_MAX}) {
    store_le<uint64_t>(table.data() + 8, count);
    EXPECT_EQ(decode_shard_rows(table).status().code(), Code::kDamaged);
  }
}

TEST(IndexPlanning, TheIndexOfAHugePackFitsItsLimits) {
  // 600 million samples in 1144 shards, about 40 bytes a sample.
  std::vector<ShardRow> rows(1144);
  for (ShardRow& row : rows) {
    row.chunks_bytes = 100000;
    row.samples_bytes = uint64_t{1} << 24;
    row.names_bytes = uint64_t{1} << 23;
  }
  const IndexPlan plan = plan_index(rows, 1000, 1000, 1000);
  EXPECT_GT(plan.file_bytes, uint64_t{1} << 34);
  EXPECT_LT(plan.head_bytes, kMaxIndexHeadBytes);
  EXPECT_EQ(plan.block_count, divide_up(plan.file_bytes - plan.head_bytes, kIndexBlockBytes));
}

}  // namespace
}  // namespace spk
