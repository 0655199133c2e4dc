#include "io/lustre_layout.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kHeadBytes = 32;  // of lov_user_md_v1, and of lov_comp_md_v1
constexpr size_t kObjectBytes = 24;
constexpr size_t kEntryBytes = 48;  // of lov_comp_md_entry_v1
constexpr size_t kObjectTargetAt = 20;
constexpr uint16_t kEvery = 0xFFFF;
constexpr uint32_t kEntryInitialised = 0x10;  // LCME_FL_INIT: its objects exist

Status too_short(const char* what, size_t need, size_t have) {
  return damaged(str_cat("lustre.lov: ", what, " needs ", need, " bytes, ", have, " are there"));
}

// A lov_user_md_v1, _v3 or _SPECIFIC. `has_objects`: those it lists are real.
Status parse_plain(ByteSpan value, bool has_objects, StripeLayout* layout,
                   StripeComponent* component) {
  if (value.size() < kHeadBytes) return too_short("a layout", kHeadBytes, value.size());
  const uint32_t magic = load_le<uint32_t>(value.data());
  const uint32_t pattern = load_le<uint32_t>(value.data() + 4);
  if ((pattern & kLustrePatternReleased) != 0) layout->released = true;
  component->stripe_bytes = load_le<uint32_t>(value.data() + 24);
  const uint16_t count = load_le<uint16_t>(value.data() + 28);
  component->stripe_count = count == kEvery ? kAllTargets : count;
  size_t at = kHeadBytes;
  if (magic == kLustreMagicV3 || magic == kLustreMagicSpecific) {
    at += kLustrePoolBytes;
    if (value.size() < at) return too_short("a layout with a pool", at, value.size());
    const std::string_view pool = as_text(value.subspan(kHeadBytes, kLustrePoolBytes));
    component->pool = pool.substr(0, std::min(pool.find('\0'), pool.size()));
  } else if (magic != kLustreMagicV1) {
    return unsupported(str_cat("lustre.lov has the magic 0x", to_hex(magic).substr(8)));
  }
  // A directory's default, released files and parts on the metadata server have no objects.
  if (!has_objects || layout->released || (pattern & kLustrePatternMdt) != 0 || count == kEvery) {
    return {};
  }
  const size_t need = at + size_t{count} * kObjectBytes;
  if (value.size() == at) return {};
  if (value.size() < need) return too_short("its list of objects", need, value.size());
  for (size_t i = 0; i < count; ++i, at += kObjectBytes) {
    component->targets.push_back(load_le<uint32_t>(value.data() + at + kObjectTargetAt));
  }
  return {};
}

Status parse_composite(ByteSpan value, StripeLayout* layout) {
  if (value.size() < kHeadBytes) return too_short("a composite layout", kHeadBytes, value.size());
  layout->composite = true;
  const uint16_t entries = load_le<uint16_t>(value.data() + 14);
  const size_t need = kHeadBytes + size_t{entries} * kEntryBytes;
  if (value.size() < need) return too_short("its list of components", need, value.size());
  uint64_t told_bytes = 0;
  for (size_t i = 0; i < entries; ++i) {
    const uint8_t* entry = value.data() + kHeadBytes + i * kEntryBytes;
    const uint32_t flags = load_le<uint32_t>(entry + 4);
    StripeComponent component;
    component.begin_bytes = load_le<uint64_t>(entry + 8);
    component.end_bytes = load_le<uint64_t>(entry + 16);
    const uint32_t offset = load_le<uint32_t>(entry + 24);
    const uint32_t bytes = load_le<uint32_t>(entry + 28);
    if (!range_fits(offset, bytes, value.size())) {
      return damaged(str_cat("lustre.lov: component ", i, " lies at ", offset, " with ", bytes,
                             " bytes, of ", value.size()));
    }
    // Components that shared bytes could tell of far more objects than VALUE has room for.
    told_bytes += bytes;
    if (told_bytes > value.size() - need) {
      return damaged(str_cat("lustre.lov: component ", i, " shares bytes with another"));
    }
    if (component.begin_bytes >= component.end_bytes) {
      return damaged(str_cat("lustre.lov: component ", i, " is from ", component.begin_bytes,
                             " to ", component.end_bytes));
    }
    SPK_TRY(parse_plain(value.subspan(offset, bytes), (flags & kEntryInitialised) != 0, layout,
                        &component));
    layout->components.push_back(std::move(component));
  }
  return {};
}

}  // namespace

Result<StripeLayout> parse_lustre_layout(ByteSpan value) {
  if (value.size() < 4) return too_short("its magic", 4, value.size());
  StripeLayout layout;
  layout.system = StripeSystem::kLustre;
  const uint32_t magic = load_le<uint32_t>(value.data());
  if (magic == kLustreMagicForeign) {
    layout.foreign = true;
    return layout;
  }
  if (magic == kLustreMagicComposite || magic == kLustreMagicSelfExtending) {
    SPK_TRY(parse_composite(value, &layout));
    return layout;
  }
  StripeComponent component;
  SPK_TRY(parse_plain(value, true, &layout, &component));
  layout.components.push_back(std::move(component));
  return layout;
}

Result<std::vector<uint8_t>> encode_lustre_layout(const LustreRequest& request) {
  if (request.stripe_bytes % kLustreStripeUnitBytes != 0 || request.stripe_bytes > UINT32_MAX) {
    return invalid_argument(str_cat("--stripe-size ", format_size(request.stripe_bytes),
                                    ": Lustre takes multiples of 64 KiB below 4 GiB"));
  }
  if (request.stripe_count != kAllTargets && request.stripe_count > kLustreMostStripes) {
    return invalid_argument(str_cat("--stripe-count ", request.stripe_count, ": Lustre takes ",
                                    kLustreMostStripes, " at most"));
  }
  if (request.pool.size() >= kLustrePoolBytes) {
    return invalid_argument(str_cat("--pool '", escape_bytes(request.pool), "': Lustre takes ",
                                    kLustrePoolBytes - 1, " bytes at most"));
  }
  const bool pooled = !request.pool.empty();
  std::vector<uint8_t> value(kHeadBytes + (pooled ? kLustrePoolBytes : 0), 0);
  store_le<uint32_t>(value.data(), pooled ? kLustreMagicV3 : kLustreMagicV1);
  store_le<uint32_t>(value.data() + 4, kLustrePatternRaid0);
  store_le<uint32_t>(value.data() + 24, static_cast<uint32_t>(request.stripe_bytes));
  store_le<uint16_t>(value.data() + 28, request.stripe_count == kAllTargets
                                            ? kEvery
                                            : static_cast<uint16_t>(request.stripe_count));
  store_le<uint16_t>(value.data() + 30, request.start_target < 0
                                            ? kEvery
                                            : static_cast<uint16_t>(request.start_target));
  std::copy(request.pool.begin(), request.pool.end(),
            value.begin() + static_cast<std::ptrdiff_t>(kHeadBytes));
  return value;
}

}  // namespace spk
