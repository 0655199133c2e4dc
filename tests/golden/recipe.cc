#include "golden/recipe.h"

#include <bit>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "container/pack.h"
#include "container/seal.h"
#include "container/shard_writer.h"
#include "layout/fill.h"
#include "layout/permutation.h"

namespace spk::test {

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

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += to_hex(static_cast<uint8_t>(c)).substr(14);
  return out;
}

// Writes the shards and, as the JSON goes along, what is in them.
class PackMaker {
 public:
  PackMaker(Directory dir, Recipe recipe) : dir_(std::move(dir)), recipe_(std::move(recipe)) {
    identity_.plan_id = recipe_.plan_id;
    const Geometry& geometry = recipe_.geometry;
    identity_.chunk_bytes_log2 = static_cast<uint8_t>(std::countr_zero(geometry.chunk_bytes));
    identity_.blob_align_log2 = static_cast<uint8_t>(std::countr_zero(geometry.blob_align_bytes));
  }

  Result<std::string> make() {
    shards_.begin_array();
    for (uint32_t shard = 0; shard < recipe_.geometry.shard_count; ++shard) {
      SPK_TRY(make_shard(shard));
    }
    shards_.end_array();
    SPK_ASSIGN(const SealSummary summary, seal_pack(dir_));
    const Hash128 content{summary.header.content_id_low, summary.header.content_id_high};
    // The head is known last but stands first; it and the shards are put together as text.
    std::string text = render_head(content);
    text.pop_back();
    return text + ", \"shards\": " + shards_.text() + "}\n";
  }

 private:
  Status make_shard(uint32_t shard) {
    const Geometry& geometry = recipe_.geometry;
    ShardContext context;
    context.identity = identity_;
    context.schema = recipe_.schema;
    context.settings = recipe_.settings;
    context.shard = shard;
    context.shard_count = geometry.shard_count;
    context.positions = shard_positions(recipe_.samples.size(), geometry.shard_count, shard);
    SPK_ASSIGN(ShardWriter writer, ShardWriter::create(dir_, shard_file_name(shard), context));
    shards_.begin_object();
    shards_.member("first_position", context.positions.begin);
    shards_.member("position_count", context.positions.size());
    shards_.key("chunks").begin_array();
    ChunkFiller filler(recipe_.schema, geometry, recipe_.look_ahead);
    std::vector<RejectRow> rejects;
    for (uint64_t i = context.positions.begin; i < context.positions.end; ++i) {
      SPK_TRY(drain(filler, writer));
      const RecipeSample& sample = recipe_.samples[i];
      if (sample.reject.empty()) {
        filler.push(i, sample.stored);
      } else {
        rejects.push_back({sample.stored.key, sample.stored.ordinal, sample.reject});
      }
    }
    filler.finish();
    SPK_TRY(drain(filler, writer));
    SPK_TRY(writer.finish(rejects));
    shards_.end_array().key("rejects").begin_array();
    for (const RejectRow& row : rejects) {
      shards_.begin_object().member_bytes("key", row.key).member("ordinal", row.ordinal);
      shards_.member_bytes("reason", row.reason).end_object();
    }
    shards_.end_array().end_object();
    return {};
  }

  Status drain(ChunkFiller& filler, ShardWriter& writer) {
    while (std::optional<FilledChunk> chunk = filler.next()) {
      std::vector<BlobSource> blobs;
      for (const uint64_t item : chunk->items) {
        for (const std::string& blob : recipe_.samples[item].blobs) {
          blobs.push_back({as_bytes(blob), {}});
        }
      }
      render_chunk(*chunk);
      SPK_TRY(writer.add_chunk(std::move(*chunk), blobs));
    }
    return {};
  }

  void render_chunk(const FilledChunk& chunk) {
    shards_.begin_object().member("slot", chunk.slot).member("span_slots", chunk.span_slots);
    shards_.member("used_bytes", chunk.used_bytes).key("samples").begin_array();
    const uint64_t start = uint64_t{chunk.slot} << identity_.chunk_bytes_log2;
    for (size_t i = 0; i < chunk.samples.size(); ++i) {
      render_sample(chunk.samples[i], recipe_.samples[chunk.items[i]].blobs, start);
    }
    shards_.end_array().end_object();
  }

  void render_sample(const StoredSample& sample, const std::vector<std::string>& blobs,
                     uint64_t chunk_start) {
    shards_.begin_object().member_bytes("key", sample.key).member("ordinal", sample.ordinal);
    shards_.member("flags", static_cast<int>(sample.flags)).key("values").begin_array();
    size_t next_blob = 0;
    for (size_t i = 0; i < sample.fields.size(); ++i) {
      const StoredField& field = sample.fields[i];
      if (!field.present) {
        shards_.null();
        continue;
      }
      const FieldKind kind = recipe_.schema.fields[i].kind;
      if (kind == FieldKind::kBlob) {
        const std::string& blob = blobs[next_blob++];
        shards_.begin_object().member("offset", chunk_start + field.offset);
        shards_.member("bytes", field.bytes).member("checksum", to_hex(xxh3_64(as_bytes(blob))));
        shards_.member("content", hex_of(blob)).end_object();
        continue;
      }
      shards_.begin_array();
      for (uint32_t n = field.first; n < field.first + field.count; ++n) {
        const uint64_t bits = sample.numbers[n];
        if (kind == FieldKind::kInt64) {
          shards_.value(static_cast<int64_t>(bits));
        } else {
          shards_.value(to_hex(bits).substr(kind == FieldKind::kFloat32 ? 8 : 0));
        }
      }
      shards_.end_array();
    }
    shards_.end_array().end_object();
  }

  std::string render_head(const Hash128& content) const {
    JsonWriter json;
    json.begin_object().member("version", kFormatVersion);
    json.member("plan_id", recipe_.plan_id.to_hex()).member("content_id", content.to_hex());
    json.member("chunk_bytes", recipe_.geometry.chunk_bytes);
    json.member("blob_align_bytes", recipe_.geometry.blob_align_bytes);
    json.key("fields").begin_array();
    for (const Field& field : recipe_.schema.fields) {
      json.begin_object().member("name", field.name).member("kind", kind_name(field.kind));
      json.member("length", field.length).end_object();
    }
    json.end_array().key("classes").begin_array();
    for (const std::string& name : recipe_.schema.classes) json.bytes(name);
    json.end_array().key("settings").begin_array();
    for (const auto& [key, value] : recipe_.settings) {
      json.begin_array().bytes(key).bytes(value).end_array();
    }
    json.end_array().end_object();
    return json.text();
  }

  Directory dir_;
  Recipe recipe_;
  PackIdentity identity_;
  JsonWriter shards_;
};

}  // namespace

Result<std::string> make_pack(const std::string& path, Recipe recipe) {
  SPK_ASSIGN(Directory dir, Directory::create(path));
  return PackMaker(std::move(dir), std::move(recipe)).make();
}

uint64_t Dice::bits() { return mix64(state_++); }

std::string Dice::bytes(size_t count) {
  std::string out(count, '\0');
  for (size_t i = 0; i < count; i += 8) {
    uint64_t word = bits();
    for (size_t k = i; k < count && k < i + 8; ++k, word >>= 8) out[k] = static_cast<char>(word);
  }
  return out;
}

RecipeSample empty_sample(const Schema& schema, std::string key, uint64_t ordinal) {
  RecipeSample sample;
  sample.stored.key = std::move(key);
  sample.stored.ordinal = ordinal;
  sample.stored.fields.resize(schema.fields.size());
  return sample;
}

void set_blob(RecipeSample& sample, size_t field, std::string bytes) {
  StoredField& stored = sample.stored.fields[field];
  stored.present = true;
  stored.bytes = bytes.size();
  stored.checksum = xxh3_64(as_bytes(bytes));
  sample.blobs.push_back(std::move(bytes));
}

void set_bits(RecipeSample& sample, size_t field, const std::vector<uint64_t>& bits) {
  StoredField& stored = sample.stored.fields[field];
  stored.present = true;
  stored.first = static_cast<uint32_t>(sample.stored.numbers.size());
  stored.count = static_cast<uint32_t>(bits.size());
  sample.stored.numbers.insert(sample.stored.numbers.end(), bits.begin(), bits.end());
}

}  // namespace spk::test
