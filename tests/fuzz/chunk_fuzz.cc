// Any bytes taken for a chunk: header, sample table and rows must be decoded or refused without a
// crash, and what is accepted must lie within the chunk. The first byte chooses the schema. Each
// input is tried as it is and with its checksum made right.
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "base/checked.h"
#include "format/chunk.h"

namespace {

using namespace spk;  // NOLINT(google-build-using-namespace): a program of its own

const Schema& schema_number(uint8_t number) {
  static const Schema schemas[] = {
      {{{"image", FieldKind::kBlob, 1},
        {"label", FieldKind::kInt64, 1},
        {"height", FieldKind::kInt64, 1},
        {"width", FieldKind::kInt64, 1},
        {"channels", FieldKind::kInt64, 1}},
       {"cat", "dog", "hen"}},
      {{{"data", FieldKind::kBlob, 1},
        {"label", FieldKind::kInt64, 1},
        {"box", FieldKind::kFloat32, 4},
        {"tags", FieldKind::kInt64, 0},
        {"score", FieldKind::kFloat64, 1},
        {"mask", FieldKind::kBlob, 1}},
       {}},
      {},
  };
  return schemas[number % std::size(schemas)];
}

void look_at(ByteSpan bytes, const Schema& schema, bool make_right) {
  const auto decoded = decode_chunk_header(bytes);
  if (!decoded.ok()) return;
  ChunkHeader header = *decoded;
  const uint64_t head_bytes = chunk_head_bytes(header);
  if (head_bytes > bytes.size()) return;
  const ByteSpan head = bytes.first(head_bytes);
  if (make_right) header.checksum = xxh3_64(head.subspan(16));
  if (!check_chunk_head(header, head).ok()) return;
  const ByteSpan table = head.subspan(ChunkHeader::kBytes);
  const auto samples = SampleTable::parse(table, schema);
  if (!samples.ok()) return;
  for (uint64_t row = 0; row < samples->size(); ++row) {
    if (samples->row(row).key != samples->key(row)) std::abort();
  }
  if (!check_chunk_rows(header, table, *samples, schema).ok()) return;
  if (samples->size() != header.sample_count) std::abort();
  for (uint64_t row = 0; row < samples->size(); ++row) {
    const StoredSample sample = samples->row(row);
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const StoredField& field = sample.fields[i];
      if (schema.fields[i].kind != FieldKind::kBlob || !field.present) continue;
      if (field.offset < header.payload_offset ||
          !range_fits(field.offset, field.bytes, header.used_bytes)) {
        std::abort();
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Schema& schema = schema_number(data[0]);
  look_at({data + 1, size - 1}, schema, false);
  look_at({data + 1, size - 1}, schema, true);
  return 0;
}
