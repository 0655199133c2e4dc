#include "container/shard_writer.h"

#include <gtest/gtest.h>

#include "layout/fill.h"
#include "support/test_pack.h"

namespace spk {
namespace {

// What was looked at before has the checksum of other bytes than those that are there when they are
// copied, though neither size nor time tells so.
TEST(ShardWriter, ASampleThatChangedIsNamed) {
  const test::TempDir made;
  const auto dir = Directory::open(made.path());
  ASSERT_TRUE(dir.ok());
  ShardContext context;
  context.schema.fields = {{"image", FieldKind::kBlob, 1}};
  context.identity.chunk_bytes_log2 = 16;
  context.identity.blob_align_log2 = 6;
  context.positions = {0, 1};
  auto writer = ShardWriter::create(*dir, "shard", context);
  ASSERT_TRUE(writer.ok());

  StoredSample sample;
  sample.key = "cat/1\n.jpg";
  sample.fields.resize(1);
  sample.fields[0].present = true;
  sample.fields[0].bytes = 5000;
  sample.fields[0].checksum = 1;
  ChunkFiller filler(context.schema,
                     {.chunk_bytes = 65536, .shard_count = 1, .blob_align_bytes = 64}, true);
  filler.push(0, std::move(sample));
  filler.finish();
  BlobSource blob;
  blob.read = [](uint64_t, MutableByteSpan into) -> Status {
    std::fill(into.begin(), into.end(), uint8_t{7});
    return {};
  };
  const Status status = writer->add_chunk(std::move(*filler.next()), std::span(&blob, 1));
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(
      status.to_string(),
      "cat/1\\x0a.jpg: changed while it was packed: its bytes have another checksum; run again "
      "once nothing is written to the source");
}

}  // namespace
}  // namespace spk
