// Opening a pack and what it is as a whole.
#include <algorithm>

#include "base/text.h"
#include "capi/guard.h"

using spk::guard;
using spk::invalid_argument;
using spk::need;
using spk::Status;

static_assert(sizeof(spk_open_options) == 24);
static_assert(sizeof(spk_info) == 144);
static_assert(sizeof(spk_field) == 24);

#define SPK_SAME_CODE(c_name, name) static_assert(static_cast<int32_t>(spk::Code::name) == c_name)
SPK_SAME_CODE(SPK_OK, kOk);
SPK_SAME_CODE(SPK_INVALID_ARGUMENT, kInvalidArgument);
SPK_SAME_CODE(SPK_NOT_THIS_FORMAT, kNotThisFormat);
SPK_SAME_CODE(SPK_UNSUPPORTED, kUnsupported);
SPK_SAME_CODE(SPK_DAMAGED, kDamaged);
SPK_SAME_CODE(SPK_IO, kIo);
SPK_SAME_CODE(SPK_NO_SPACE, kNoSpace);
SPK_SAME_CODE(SPK_NOT_FOUND, kNotFound);
SPK_SAME_CODE(SPK_EXISTS, kExists);
SPK_SAME_CODE(SPK_NO_MEMORY, kNoMemory);
SPK_SAME_CODE(SPK_CANCELLED, kCancelled);
SPK_SAME_CODE(SPK_PARTIAL, kPartial);
SPK_SAME_CODE(SPK_BUSY, kBusy);
SPK_SAME_CODE(SPK_MISMATCH, kMismatch);
SPK_SAME_CODE(SPK_INTERNAL, kInternal);
SPK_SAME_CODE(SPK_DENIED, kDenied);
#undef SPK_SAME_CODE
static_assert(static_cast<uint32_t>(spk::FieldKind::kBlob) == SPK_KIND_BLOB);
static_assert(static_cast<uint32_t>(spk::FieldKind::kInt64) == SPK_KIND_INT64);
static_assert(static_cast<uint32_t>(spk::FieldKind::kFloat32) == SPK_KIND_FLOAT32);
static_assert(static_cast<uint32_t>(spk::FieldKind::kFloat64) == SPK_KIND_FLOAT64);

namespace {

// Members that an older caller does not know keep their defaults.
spk::Result<spk::OpenOptions> open_options(const spk_open_options* options) {
  spk::OpenOptions wanted;
  if (options == nullptr) return wanted;
  SPK_ASSIGN(const spk_open_options known, spk::copy_in(options));
  SPK_ASSIGN(wanted.engine, spk::engine_choice(known.engine));
  wanted.threads = known.threads;
  wanted.check_checksums = known.skip_checksums == 0;
  // Not half a pointer.
  if (options->struct_size >= sizeof known && known.cache != nullptr) wanted.cache = known.cache;
  return wanted;
}

void copy_hex(const spk::Hash128& id, char (&to)[40]) {
  const std::string hex = id.to_hex();
  std::memset(to, 0, sizeof to);
  std::memcpy(to, hex.data(), std::min(hex.size(), sizeof to - 1));
}

std::string field_names(const spk::Schema& schema) {
  std::string names;
  for (const spk::Field& field : schema.fields) {
    names += names.empty() ? "" : ", ";
    names += field.name;
  }
  return names;
}

}  // namespace

uint32_t spk_abi_version(void) noexcept { return SPK_ABI_VERSION; }

const char* spk_version_string(void) noexcept { return SPK_LIBRARY_VERSION; }

const char* spk_code_name(int32_t code) noexcept {
  return code == SPK_END ? "end" : spk::code_name(static_cast<spk::Code>(code));
}

int32_t spk_open(const char* path, const spk_open_options* options, spk_pack** out,
                 spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(path, "path"));
    SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const spk::OpenOptions wanted, open_options(options));
    SPK_ASSIGN(std::shared_ptr<spk::Pack> pack, spk::Pack::open(path, wanted));
    *out = std::make_unique<spk_pack>(spk_pack{std::move(pack)}).release();
    return {};
  });
}

int32_t spk_open_index(const char* path, const void* index, uint64_t size,
                       const spk_open_options* options, spk_pack** out, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(path, "path"));
    SPK_TRY(need(index, "index"));
    SPK_TRY(need(out, "out"));
    SPK_ASSIGN(const spk::OpenOptions wanted, open_options(options));
    const spk::ByteSpan bytes(static_cast<const uint8_t*>(index), size);
    SPK_ASSIGN(std::shared_ptr<spk::Pack> pack, spk::Pack::open_index(path, bytes, wanted));
    *out = std::make_unique<spk_pack>(spk_pack{std::move(pack)}).release();
    return {};
  });
}

void spk_close(spk_pack* pack) noexcept { delete pack; }

int32_t spk_get_info(const spk_pack* pack, spk_info* out, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    const spk::Pack& from = *pack->pack;
    const spk::IndexHeader& header = from.index().header;
    spk_info info = {};
    info.format_version = header.version;
    info.sample_count = header.sample_count;
    info.reject_count = header.reject_count;
    info.chunk_count = header.chunk_count;
    info.chunk_bytes = from.identity().chunk_bytes();
    info.payload_bytes = header.payload_bytes;
    info.shard_count = header.shard_count;
    info.field_count = static_cast<uint32_t>(from.schema().fields.size());
    info.class_count = static_cast<uint32_t>(from.schema().classes.size());
    info.setting_count = static_cast<uint32_t>(from.settings().size());
    copy_hex(from.content_id(), info.content_id);
    copy_hex(from.identity().plan_id, info.plan_id);
    return spk::copy_out(info, out, sizeof(spk_info));
  });
}

int32_t spk_field_find(const spk_pack* pack, const char* name, uint32_t* field,
                       spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(name, "name"));
    SPK_TRY(need(field, "field"));
    const spk::Schema& schema = pack->pack->schema();
    const uint16_t found = schema.find(name);
    if (found == spk::kNoField) {
      return Status(spk::Code::kNotFound,
                    spk::str_cat("there is no field '", spk::escape_bytes(name), "'"))
          .with_hint(spk::str_cat("this pack has ", field_names(schema)));
    }
    *field = found;
    return {};
  });
}

int32_t spk_field_info(const spk_pack* pack, uint32_t field, spk_field* out,
                       spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    const auto& fields = pack->pack->schema().fields;
    if (field >= fields.size()) {
      return invalid_argument(spk::str_cat("field ", field, " of ", fields.size()));
    }
    spk_field info = {};
    info.kind = static_cast<uint32_t>(fields[field].kind);
    info.name = fields[field].name.c_str();
    info.length = fields[field].length;
    return spk::copy_out(info, out, sizeof(spk_field));
  });
}

int32_t spk_class_name(const spk_pack* pack, uint64_t number, const char** name, uint64_t* size,
                       spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(name, "name"));
    const auto& classes = pack->pack->schema().classes;
    if (number >= classes.size()) {
      return invalid_argument(spk::str_cat("class ", number, " of ", classes.size()));
    }
    *name = classes[number].c_str();
    if (size != nullptr) *size = classes[number].size();
    return {};
  });
}

int32_t spk_get_setting(const spk_pack* pack, const char* name, const char** value, uint64_t* size,
                        spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(name, "name"));
    SPK_TRY(need(value, "value"));
    for (const auto& [key, text] : pack->pack->settings()) {
      if (key != name) continue;
      *value = text.c_str();
      if (size != nullptr) *size = text.size();
      return {};
    }
    return Status(spk::Code::kNotFound,
                  spk::str_cat("there is no setting '", spk::escape_bytes(name), "'"));
  });
}

int32_t spk_setting_at(const spk_pack* pack, uint32_t number, const char** name, const char** value,
                       uint64_t* value_size, spk_error* err) noexcept {
  return guard(err, [&]() -> Status {
    SPK_TRY(need(pack, "pack"));
    SPK_TRY(need(name, "name"));
    SPK_TRY(need(value, "value"));
    const spk::Settings& settings = pack->pack->settings();
    if (number >= settings.size()) {
      return invalid_argument(spk::str_cat("setting ", number, " of ", settings.size()));
    }
    *name = settings[number].first.c_str();
    *value = settings[number].second.c_str();
    if (value_size != nullptr) *value_size = settings[number].second.size();
    return {};
  });
}
