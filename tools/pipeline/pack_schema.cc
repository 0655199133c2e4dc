#include "pipeline/pack_schema.h"

#include <bit>

namespace spk {

PackSchema make_pack_schema(const PlanInfo& info) {
  PackSchema pack;
  const auto add = [&](const char* name, FieldKind kind, uint32_t length) {
    pack.schema.fields.push_back({name, kind, length});
    return static_cast<uint16_t>(pack.schema.fields.size() - 1);
  };
  pack.blobs = info.blobs;
  for (const SourceBlob& blob : info.blobs) add(blob.name.c_str(), FieldKind::kBlob, 1);
  // Float labels are kept as binary64: that holds every label as it was written.
  if (info.label_kind == LabelKind::kInt)
    pack.label = add("label", FieldKind::kInt64, info.label_count);
  if (info.label_kind == LabelKind::kFloat) {
    pack.label = add("label", FieldKind::kFloat64, info.label_count);
  }
  pack.height = add("height", FieldKind::kInt64, 1);
  pack.width = add("width", FieldKind::kInt64, 1);
  pack.channels = add("channels", FieldKind::kInt64, 1);
  pack.first_number = static_cast<uint16_t>(pack.schema.fields.size());
  for (const Field& field : info.numbers) add(field.name.c_str(), field.kind, field.length);
  pack.schema.classes = info.classes;
  return pack;
}

PackIdentity make_pack_identity(const PlanInfo& info) {
  PackIdentity identity;
  identity.plan_id = info.plan_id;
  identity.chunk_bytes_log2 = static_cast<uint8_t>(std::countr_zero(info.geometry.chunk_bytes));
  identity.blob_align_log2 = static_cast<uint8_t>(std::countr_zero(info.geometry.blob_align_bytes));
  return identity;
}

}  // namespace spk
