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

// As JsonWriter::member_bytes writes it; "" where it is not there.
Result<std::string> text_of(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  if (value == nullptr || !value->is(JsonValue::Kind::kString)) return std::string();
  auto text = unescape_bytes(value->text());
  if (text.ok()) return text;
  return damaged(str_cat("layout record: '", name, "' has an escape that is none"));
}

bool flag(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value != nullptr && value->as_bool();
}

// Each item of a list that must be there, by `parse`.
template <typename T>
Status parse_list(const JsonValue& object, std::string_view name,
                  Result<T> (*parse)(const JsonValue&), std::vector<T>* into) {
  const JsonValue* list = object.find(name);
  if (list == nullptr || !list->is(JsonValue::Kind::kArray)) {
    return damaged(str_cat("layout record: '", name, "' is no list"));
  }
  for (const JsonValue& item : list->items()) {
    SPK_ASSIGN(T parsed, parse(item));
    into->push_back(std::move(parsed));
  }
  return {};
}

Result<uint32_t> parse_target(const JsonValue& from) {
  uint64_t target = 0;
  if (!from.to_u64(&target) || target > UINT32_MAX) return wrong("a target is no number");
  return static_cast<uint32_t>(target);
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
  SPK_ASSIGN(component.pool, text_of(from, "pool"));
  if (from.find("targets") == nullptr) return component;
  SPK_TRY(parse_list(from, "targets", parse_target, &component.targets));
  return component;
}

Result<StripeLayout> parse_layout(const JsonValue& from) {
  StripeLayout layout;
  SPK_ASSIGN(const std::string system, text_of(from, "system"));
  bool known = false;
  for (const StripeSystem one :
       {StripeSystem::kNone, StripeSystem::kLustre, StripeSystem::kBeegfs, StripeSystem::kCeph}) {
    if (system != stripe_system_name(one)) continue;
    layout.system = one;
    known = true;
  }
  if (!known) return damaged(str_cat("layout record: unknown system '", escape_bytes(system), "'"));
  layout.composite = flag(from, "composite");
  layout.released = flag(from, "released");
  layout.foreign = flag(from, "foreign");
  SPK_TRY(parse_list(from, "components", parse_component, &layout.components));
  return layout;
}

Result<LayoutMap> parse_map(const JsonValue& from) {
  LayoutMap map;
  SPK_ASSIGN(const std::string digest, text_of(from, "digest"));
  const auto number = parse_map_digest(digest);
  if (!number.ok()) return wrong("'digest' is not 16 hexadecimal digits");
  map.digest = *number;
  SPK_ASSIGN(map.made, text_of(from, "made"));
  SPK_ASSIGN(map.file_system, text_of(from, "file_system"));
  SPK_ASSIGN(map.asked, text_of(from, "asked"));
  SPK_ASSIGN(map.refused, text_of(from, "refused"));
  SPK_TRY(parse_list(from, "shards", parse_layout, &map.shards));
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

Result<uint64_t> parse_map_digest(std::string_view text) {
  uint64_t digest = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
  if (text.size() == 16 && error == std::errc() && end == text.data() + text.size()) return digest;
  return invalid_argument(str_cat("the digest of a target map is 16 hexadecimal digits, not '",
                                  escape_bytes(text), "'"));
}

std::string layout_record_text(const LayoutRecord& record) {
  JsonWriter json(0);
  json.begin_object().member("version", kVersion).member("chunk_bytes", record.chunk_bytes);
  json.key("maps").begin_array();
  for (const LayoutMap& map : record.maps) {
    json.begin_object().member("digest", to_hex(map.digest)).member_bytes("made", map.made);
    json.member_bytes("file_system", map.file_system).member_bytes("asked", map.asked);
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
  SPK_TRY(parse_list(value, "maps", parse_map, &record.maps));
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
                                                 ShardShare share, const StripeCalls& calls) {
  const FileSystemInfo fs = calls.identify(dir.fd());
  std::vector<StripeLayout> shards;
  for (uint64_t at = share.first; at < shard_count; at += share.step) {
    const auto shard = static_cast<uint32_t>(at);
    const auto file = File::open_read(dir, shard_file_name(shard));
    if (!file.ok()) return Status(file.status()).at_shard(shard);
    // What makes no sense is as good as nothing.
    auto layout = read_stripes(file->fd(), fs, calls);
    shards.push_back(layout.ok() ? std::move(layout).value() : StripeLayout());
  }
  return shards;
}

Result<LayoutMap> look_at_layout(const Pack& pack, const StripeCalls& calls) {
  LayoutMap map;
  map.file_system = calls.identify(pack.directory().fd()).name;
  SPK_ASSIGN(map.shards, look_at_shards(pack.directory(),
                                        static_cast<uint32_t>(pack.shards().size()), {}, calls));
  const bool told = std::any_of(map.shards.begin(), map.shards.end(), [](const auto& layout) {
    return layout.system != StripeSystem::kNone;
  });
  if (!told) {
    map.shards.clear();
    return map;
  }
  SPK_ASSIGN(const std::vector<ChunkPlace> places, chunk_places(pack));
  map.digest = target_map_digest(chunk_targets(map.shards, places));
  return map;
}

}  // namespace spk
