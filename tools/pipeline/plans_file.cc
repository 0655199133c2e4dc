#include "pipeline/plans_file.h"

#include "base/json.h"
#include "base/json_value.h"
#include "base/text.h"
#include "container/pack.h"
#include "io/atomic_file.h"

namespace spk {

namespace {

constexpr uint64_t kMostBytes = uint64_t{16} << 20;

// Reads what `write_plans_file` writes; anything else is damage.
class Reader {
 public:
  explicit Reader(std::string path) : path_(std::move(path)) {}

  Status wrong(std::string_view what) const {
    return damaged(str_cat("no ", what, " where one was written"))
        .at_path(path_)
        .with_hint("remove OUT.partial to begin anew");
  }
  Result<std::string> text(const JsonValue& object, std::string_view name) const {
    const JsonValue* found = object.find(name);
    if (found == nullptr || !found->is(JsonValue::Kind::kString)) return wrong(name);
    return unescape_bytes(found->text());
  }
  Result<uint32_t> number(const JsonValue& object, std::string_view name) const {
    const JsonValue* found = object.find(name);
    uint64_t value = 0;
    if (found == nullptr || !found->to_u64(&value) || value > UINT32_MAX) return wrong(name);
    return static_cast<uint32_t>(value);
  }
  Result<PackRequest> request(const JsonValue& object) const {
    const JsonValue* found = object.find("request");
    if (found == nullptr || !found->is(JsonValue::Kind::kObject)) return wrong("request");
    PackRequest request;
    for (const auto& [name, value] : found->members()) {
      SPK_ASSIGN(std::string words, unescape_bytes(value.text()));
      request.emplace_back(name, std::move(words));
    }
    return request;
  }

 private:
  const std::string path_;
};

Result<JsonValue> load(const Directory& dir, std::string_view name) {
  SPK_ASSIGN(const std::vector<uint8_t> bytes, read_whole_file(dir, name, kMostBytes));
  auto parsed = JsonValue::parse(as_text(bytes));
  if (!parsed.ok()) return std::move(parsed).status().at_path(dir.path_of(name));
  return parsed;
}

}  // namespace

std::string request_difference(const PackRequest& before, const PackRequest& now) {
  std::string text;
  const auto value_in = [](const PackRequest& request, const std::string& name) {
    for (const auto& [known, value] : request) {
      if (known == name) return value.empty() ? std::string("set") : escape_bytes(value);
    }
    return std::string("not given");
  };
  const auto add = [&](const std::string& name) {
    if (!text.empty()) text += "; ";
    text += str_cat(name, ": ", value_in(before, name), " before, ", value_in(now, name), " now");
  };
  for (const auto& [name, value] : now) {
    if (value_in(before, name) != value_in(now, name)) add(name);
  }
  for (const auto& [name, value] : before) {
    if (value_in(now, name) == "not given") add(name);
  }
  return text;
}

Status write_plans_file(const Directory& partial, const PlansFile& plans) {
  JsonWriter json(2);
  json.begin_object();
  json.member_bytes("command", plans.command);
  json.member_bytes("source", plans.source);
  json.member("made", plans.made);
  json.member("parts", plans.parts);
  json.key("request").begin_object();
  for (const auto& [name, value] : plans.request) json.member_bytes(name, value);
  json.end_object();
  json.key("splits").begin_array();
  for (const PlansFile::Split& split : plans.splits) {
    json.begin_object().member_bytes("name", split.name);
    json.member("plan_id", split.plan_id).member("shards", split.shard_count).end_object();
  }
  json.end_array().end_object();
  return write_file_atomically(partial, kPlansName, as_bytes(json.text() + "\n"));
}

Result<PlansFile> read_plans_file(const Directory& partial) {
  SPK_ASSIGN(const JsonValue json, load(partial, kPlansName));
  const Reader reader(partial.path_of(kPlansName));
  PlansFile plans;
  SPK_ASSIGN(plans.command, reader.text(json, "command"));
  SPK_ASSIGN(plans.source, reader.text(json, "source"));
  SPK_ASSIGN(plans.made, reader.text(json, "made"));
  SPK_ASSIGN(plans.parts, reader.number(json, "parts"));
  SPK_ASSIGN(plans.request, reader.request(json));
  const JsonValue* splits = json.find("splits");
  if (plans.parts == 0 || splits == nullptr || splits->items().empty()) {
    return reader.wrong("splits");
  }
  for (const JsonValue& one : splits->items()) {
    PlansFile::Split& split = plans.splits.emplace_back();
    SPK_ASSIGN(split.name, reader.text(one, "name"));
    SPK_ASSIGN(split.plan_id, reader.text(one, "plan_id"));
    SPK_ASSIGN(split.shard_count, reader.number(one, "shards"));
    if (!split.name.empty()) SPK_TRY(Directory::check_name(split.name));
  }
  return plans;
}

Result<PackRequest> read_run_request(const Directory& pack) {
  SPK_ASSIGN(const JsonValue json, load(pack, kRunName));
  if (json.find("request") == nullptr) {
    return Status(Code::kNotFound, "run.json does not tell what was asked for")
        .at_path(pack.path_of(kRunName));
  }
  return Reader(pack.path_of(kRunName)).request(json);
}

}  // namespace spk
