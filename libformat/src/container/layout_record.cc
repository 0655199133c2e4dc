#include "container/layout_record.h"

#include <algorithm>
#include <charconv>

#include "base/json_value.h"
#include "base/text.h"
#include "container/pack.h"
#include "io/atomic_file.h"
#include "io/stripes.h"
#include "layout/order.h"

namespace spk {

namespace {

constexpr uint64_t kVersion = 1;
constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr uint64_t kNoEnd = UINT64_MAX;

void write_component(JsonWriter& json, const StripeComponent& component) {
  json.begin_object();
  if (component.begin_bytes != 0) json.member("begin", component.begin_bytes);
  if (component.end_bytes != kNoEnd) json.member("end", component.end_bytes);
  json.member("stripe_bytes", component.stripe_bytes);
  json.member("stripe_count", component.stripe_count);
  if (component.object_bytes != 0) json.member("object_bytes", component.object_bytes);
  if (!component.pool.empty()) json.member_bytes("pool", component.pool);
  if (!component.targets.empty()) {
    json.key("targets").begin_array();
    for (const uint32_t target : component.targets) json.value(target);
    json.end_array();
  }
  json.end_object();
}

Status wrong(const char* what) { return damaged(str_cat("layout record: ", what)); }

// A member that must be there as a number, or may be left out where `fallback` is given.
Result<uint64_t> number(const JsonValue& object, std::string_view name,
                        const uint64_t* fallback = nullptr) {
  const JsonValue* value = object.find(name);
  if (value == nullptr && fallback != nullptr) return *fallback;
  uint64_t result = 0;
  if (value == nullptr || !value->to_u64(&result)) {
    return damaged(str_cat("layout record: '", name, "' is no number"));
  }
  return result;
}

std::string text_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value != nullptr && value->is(JsonValue::Kind::kString) ? value->text() : "";
}

bool flag(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value != nullptr && value->as_bool();
}

Result<const std::vector<JsonValue>*> list(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  if (value == nullptr || !value->is(JsonValue::Kind::kArray)) {
    return damaged(str_cat("layout record: '", name, "' is no list"));
  }
  return &value->items();
}

Result<StripeComponent> parse_component(const JsonValue& from) {
  constexpr uint64_t kZero = 0;
  StripeComponent component;
  SPK_ASSIGN(component.begin_bytes, number(from, "begin", &kZero));
  SPK_ASSIGN(component.end_bytes, number(from, "end", &kNoEnd));
  SPK_ASSIGN(component.stripe_bytes, number(from, "stripe_bytes"));
  SPK_ASSIGN(const uint64_t count, number(from, "stripe_count"));
  SPK_ASSIGN(component.object_bytes, number(from, "object_bytes", &kZero));
  if (count > UINT32_MAX) return wrong("'stripe_count' is too large");
  component.stripe_count = static_cast<uint32_t>(count);
  component.pool = text_of(from, "pool");
  if (from.find("targets") == nullptr) return component;
  SPK_ASSIGN(const std::vector<JsonValue>* targets, list(from, "targets"));
  for (const JsonValue& item : *targets) {
    uint64_t target = 0;
    if (!item.to_u64(&target) || target > UINT32_MAX) return wrong("a target is no number");
    component.targets.push_back(static_cast<uint32_t>(target));
  }
  return component;
}

Result<StripeLayout> parse_layout(const JsonValue& from) {
  StripeLayout layout;
  const std::string system = text_of(from, "system");
  bool known = false;
  for (const StripeSystem one :
       {StripeSystem::kNone, StripeSystem::kLustre, StripeSystem::kBeegfs, StripeSystem::kCeph}) {
    if (system != stripe_system_name(one)) continue;
    layout.system = one;
    known = true;
  }
  if (!known) return damaged(str_cat("layout record: unknown system '", system, "'"));
  layout.composite = flag(from, "composite");
  layout.released = flag(from, "released");
  layout.foreign = flag(from, "foreign");
  SPK_ASSIGN(const std::vector<JsonValue>* components, list(from, "components"));
  for (const JsonValue& item : *components) {
    SPK_ASSIGN(StripeComponent component, parse_component(item));
    layout.components.push_back(std::move(component));
  }
  return layout;
}

Result<LayoutMap> parse_map(const JsonValue& from) {
  LayoutMap map;
  const std::string digest = text_of(from, "digest");
  const auto [end, error] =
      std::from_chars(digest.data(), digest.data() + digest.size(), map.digest, 16);
  if (digest.size() != 16 || error != std::errc() || end != digest.data() + digest.size()) {
    return wrong("'digest' is not 16 hexadecimal digits");
  }
  map.made = text_of(from, "made");
  map.file_system = text_of(from, "file_system");
  map.asked = text_of(from, "asked");
  map.refused = text_of(from, "refused");
  SPK_ASSIGN(const std::vector<JsonValue>* shards, list(from, "shards"));
  for (const JsonValue& item : *shards) {
    SPK_ASSIGN(StripeLayout layout, parse_layout(item));
    map.shards.push_back(std::move(layout));
  }
  return map;
}

}  // namespace

void write_stripe_layout(JsonWriter& json, const StripeLayout& layout) {
  json.begin_object().member("system", stripe_system_name(layout.system));
  if (layout.composite) json.member("composite", true);
  if (layout.released) json.member("released", true);
  if (layout.foreign) json.member("foreign", true);
  json.key("components").begin_array();
  for (const StripeComponent& component : layout.components) write_component(json, component);
  json.end_array().end_object();
}

const LayoutMap* LayoutRecord::find(uint64_t digest) const noexcept {
  for (const LayoutMap& map : maps) {
    if (map.digest == digest) return &map;
  }
  return nullptr;
}

std::string layout_record_text(const LayoutRecord& record) {
  JsonWriter json(0);
  json.begin_object().member("version", kVersion).member("chunk_bytes", record.chunk_bytes);
  json.key("maps").begin_array();
  for (const LayoutMap& map : record.maps) {
    json.begin_object().member("digest", to_hex(map.digest)).member("made", map.made);
    json.member("file_system", map.file_system).member_bytes("asked", map.asked);
    json.member_bytes("refused", map.refused).key("shards").begin_array();
    for (const StripeLayout& layout : map.shards) write_stripe_layout(json, layout);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return json.text() + "\n";
}

Result<LayoutRecord> parse_layout_record(std::string_view text) {
  SPK_ASSIGN(const JsonValue value, JsonValue::parse(text));
  if (!value.is(JsonValue::Kind::kObject)) return wrong("it is no object");
  LayoutRecord record;
  SPK_ASSIGN(record.chunk_bytes, number(value, "chunk_bytes"));
  // Packs of before the maps have none.
  if (value.find("version") == nullptr && value.find("maps") == nullptr) return record;
  SPK_ASSIGN(const uint64_t version, number(value, "version"));
  if (version != kVersion) {
    return unsupported(str_cat("layout record of version ", version, ", known is ", kVersion))
        .with_hint("a newer stripepack reads it");
  }
  SPK_ASSIGN(const std::vector<JsonValue>* maps, list(value, "maps"));
  for (const JsonValue& item : *maps) {
    SPK_ASSIGN(LayoutMap map, parse_map(item));
    record.maps.push_back(std::move(map));
  }
  return record;
}

Result<LayoutRecord> read_layout_record(const Directory& dir) {
  auto bytes = read_whole_file(dir, kLayoutName, kMostBytes);
  if (!bytes.ok() && bytes.status().code() == Code::kNotFound) return LayoutRecord();
  if (!bytes.ok()) return std::move(bytes).status();
  auto record = parse_layout_record(as_text(*bytes));
  if (record.ok()) return record;
  return std::move(record)
      .status()
      .at_path(dir.path_of(kLayoutName))
      .with_hint("move it away; `stripepack layout PACK --refresh` writes a new one");
}

Status write_layout_record(const Directory& dir, const LayoutRecord& record) {
  return write_file_atomically(dir, kLayoutName, as_bytes(layout_record_text(record)));
}

std::vector<uint32_t> chunk_targets(std::span<const StripeLayout> shards,
                                    std::span<const ChunkPlace> chunks) {
  std::vector<uint32_t> targets;
  targets.reserve(chunks.size());
  for (const ChunkPlace& chunk : chunks) {
    if (chunk.shard >= shards.size()) return {};
    const auto target = stripe_target(shards[chunk.shard], chunk.offset);
    if (!target) return {};
    targets.push_back(*target);
  }
  std::vector<uint32_t> distinct = targets;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() < 2 || distinct.size() > kMaxTargets) return {};
  for (uint32_t& target : targets) {
    target = static_cast<uint32_t>(std::lower_bound(distinct.begin(), distinct.end(), target) -
                                   distinct.begin());
  }
  return targets;
}

Result<std::vector<ChunkPlace>> chunk_places(const Pack& pack) {
  std::vector<ChunkPlace> places;
  places.reserve(pack.chunk_count());
  for (uint64_t i = 0; i < pack.chunk_count(); ++i) {
    SPK_ASSIGN(const ChunkLocation chunk, pack.chunk(i));
    places.push_back({chunk.shard, chunk.offset});
  }
  return places;
}

Result<std::vector<StripeLayout>> look_at_shards(const Directory& dir, uint32_t shard_count,
                                                 const StripeCalls& calls) {
  const FileSystemInfo fs = calls.identify(dir.fd());
  std::vector<StripeLayout> shards;
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    SPK_ASSIGN(const File file, File::open_read(dir, shard_file_name(shard)));
    // What makes no sense is as good as nothing.
    auto layout = read_stripes(file.fd(), fs, calls);
    shards.push_back(layout.ok() ? std::move(layout).value() : StripeLayout());
  }
  const bool told = std::any_of(shards.begin(), shards.end(), [](const StripeLayout& layout) {
    return layout.system != StripeSystem::kNone;
  });
  if (!told) shards.clear();
  return shards;
}

}  // namespace spk
