#include "container/manifest.h"

#include "base/json.h"
#include "base/text.h"
#include "container/pack.h"

namespace spk {

namespace {

const char* kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBlob: return "blob";
    case FieldKind::kInt64: return "int64";
    case FieldKind::kFloat32: return "float32";
    case FieldKind::kFloat64: return "float64";
  }
  return "unknown";
}

}  // namespace

std::string render_manifest(const IndexHeader& header, const std::vector<ShardRow>& shards,
                            const Schema& schema, const Settings& settings) {
  JsonWriter json(2);
  json.begin_object();
  json.member("format", "stripepack");
  json.member("version", header.version);
  json.member("content_id", Hash128{header.content_id_low, header.content_id_high}.to_hex());
  json.member("plan_id", Hash128{header.plan_id_low, header.plan_id_high}.to_hex());
  json.member("samples", header.sample_count);
  json.member("rejects", header.reject_count);
  json.member("payload_bytes", header.payload_bytes);
  json.member("chunks", header.chunk_count);
  json.member("chunk_bytes", uint64_t{1} << header.chunk_bytes_log2);
  json.member("blob_align_bytes", uint64_t{1} << header.blob_align_log2);
  json.key("fields").begin_array();
  for (const Field& field : schema.fields) {
    json.begin_object().member("name", field.name).member("kind", kind_name(field.kind));
    if (field.kind != FieldKind::kBlob) json.member("length", field.length);
    json.end_object();
  }
  json.end_array();
  json.key("classes").begin_array();
  for (const std::string& name : schema.classes) json.bytes(name);
  json.end_array();
  json.key("settings").begin_object();
  for (const auto& [key, value] : settings) json.key(escape_bytes(key)).bytes(value);
  json.end_object();
  json.key("index").begin_object();
  json.member("name", kIndexName).member("bytes", header.file_bytes);
  json.member("checksum", to_hex(header.checksum));
  json.end_object();
  json.key("shards").begin_array();
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardRow& shard = shards[i];
    json.begin_object();
    json.member("name", shard_file_name(static_cast<uint32_t>(i)));
    json.member("bytes", shard.file_bytes).member("chunks", shard.chunk_count);
    json.member("samples", shard.sample_count).member("rejects", shard.reject_count);
    json.member("digest", shard.digest.to_hex());
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text() + "\n";
}

std::string rejects_header() { return "ordinal\tkey\treason\n"; }

void append_reject(std::string& out, const RejectRow& row) {
  out += str_cat(row.ordinal, "\t", escape_bytes(row.key), "\t", escape_bytes(row.reason), "\n");
}

}  // namespace spk
