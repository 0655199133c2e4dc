#include "pipeline/plan_settings.h"

#include <bit>

#include "base/text.h"
#include "format/constants.h"
#include "pipeline/entry_codec.h"

namespace spk {

namespace {

bool is_evaluation_split(std::string_view name) {
  return name == "val" || name == "valid" || name == "validation" || name == "test";
}

const char* shuffle_name(ShuffleMode mode) {
  switch (mode) {
    case ShuffleMode::kAuto: return "auto";
    case ShuffleMode::kNone: return "none";
    case ShuffleMode::kFull: return "full";
    case ShuffleMode::kBlocks: return "blocks";
  }
  return "unknown";
}

const char* check_name(CheckMode mode) {
  switch (mode) {
    case CheckMode::kNone: return "none";
    case CheckMode::kStructure: return "structure";
    case CheckMode::kDecode: return "decode";
  }
  return "unknown";
}

// "image:picture,mask:any,box:float64[4]"; empty for the usual one picture.
std::string fields_text(const Listing& listing) {
  if (listing.blobs == Listing{}.blobs && listing.numbers.empty()) return {};
  std::string text;
  const auto add = [&](const std::string& name, const std::string& what) {
    text += str_cat(text.empty() ? "" : ",", name, ":", what);
  };
  for (const SourceBlob& blob : listing.blobs) {
    add(blob.name, blob.content == BlobContent::kPicture  ? "picture"
                   : blob.content == BlobContent::kPixels ? "pixels"
                                                          : "any");
  }
  for (const Field& field : listing.numbers) {
    const std::string length = field.length == 0 ? "" : str_cat(field.length);
    const char* const kind = field.kind == FieldKind::kInt64     ? "int64"
                             : field.kind == FieldKind::kFloat32 ? "float32"
                                                                 : "float64";
    add(field.name, str_cat(kind, "[", length, "]"));
  }
  return text;
}

const char* label_kind_name(LabelKind kind) {
  switch (kind) {
    case LabelKind::kNone: return "none";
    case LabelKind::kInt: return "int";
    case LabelKind::kFloat: return "float";
  }
  return "unknown";
}

}  // namespace

ShuffleMode resolved_shuffle(ShuffleMode asked, std::string_view split) {
  if (asked != ShuffleMode::kAuto) return asked;
  return is_evaluation_split(split) ? ShuffleMode::kNone : ShuffleMode::kFull;
}

void resolve_settings(const PackOptions& options, const Listing& listing, PlanInfo* info) {
  std::string splits;
  for (const std::string& name : listing.splits) splits += str_cat(splits.empty() ? "" : ",", name);
  const ShuffleMode shuffle = resolved_shuffle(options.shuffle, info->split);
  auto& settings = info->settings;
  settings.emplace_back("format_version", str_cat(kFormatVersion));
  settings.emplace_back("source_kind", listing.source_kind);
  if (!listing.form.empty()) settings.emplace_back("source_form", listing.form);
  settings.emplace_back("splits", splits.empty() ? "none" : splits);
  settings.emplace_back("labels", label_kind_name(info->label_kind));
  if (const std::string fields = fields_text(listing); !fields.empty()) {
    settings.emplace_back("fields", fields);
  }
  for (const auto& decision : listing.decisions) settings.push_back(decision);
  settings.emplace_back("check", check_name(options.check));
  settings.emplace_back("max_pixels", str_cat(options.max_pixels));
  settings.emplace_back("chunk_bytes", str_cat(info->geometry.chunk_bytes));
  settings.emplace_back("shard_count", str_cat(info->geometry.shard_count));
  settings.emplace_back("blob_align_bytes", str_cat(info->geometry.blob_align_bytes));
  settings.emplace_back("shuffle", shuffle_name(shuffle));
  if (shuffle != ShuffleMode::kNone) settings.emplace_back("seed", str_cat(options.seed));
}

Hash128 compute_plan_id(const PlanInfo& info, const Hash128& listing_hash) {
  std::string bytes;
  append_string(bytes, "stripepack plan");
  append_varint(bytes, kFormatVersion);
  append_string(bytes, info.split);
  append_varint(bytes, info.settings.size());
  for (const auto& [name, value] : info.settings) {
    append_string(bytes, name);
    append_string(bytes, value);
  }
  append_varint(bytes, info.label_count);
  append_varint(bytes, info.classes.size());
  for (const std::string& name : info.classes) append_string(bytes, name);
  append_varint(bytes, info.sample_count);
  append_be64(bytes, listing_hash.high);
  append_be64(bytes, listing_hash.low);
  return xxh3_128(as_bytes(bytes));
}

// Nothing for samples of one blob, so that a folder's plan id is what it was before there were
// others.
void ListingHash::add_fields(const SampleEntry& entry) {
  if (!entry.blob_bytes.empty()) {
    append_string(scratch_, "blobs");
    append_varint(scratch_, entry.blob_bytes.size());
    for (const uint64_t bytes : entry.blob_bytes) append_be64(scratch_, bytes);
  }
  if (entry.pixels != PixelDimensions()) {
    append_string(scratch_, "pixels");
    append_varint(scratch_, entry.pixels.height);
    append_varint(scratch_, entry.pixels.width);
    append_varint(scratch_, entry.pixels.channels);
  }
  if (entry.numbers.empty()) return;
  append_string(scratch_, "numbers");
  append_varint(scratch_, entry.numbers.size());
  for (const std::optional<NumericValues>& values : entry.numbers) {
    append_varint(scratch_, values ? values->size() + 1 : 0);
    if (!values) continue;
    for (const uint64_t value : *values) append_be64(scratch_, value);
  }
}

// Length-prefixed throughout, so that no two listings give the same bytes.
void ListingHash::add(const SampleEntry& entry) {
  scratch_.clear();
  append_string(scratch_, entry.key);
  append_be64(scratch_, entry.size_bytes);
  append_varint(scratch_, entry.int_labels.size());
  for (const int64_t label : entry.int_labels) append_be64(scratch_, static_cast<uint64_t>(label));
  append_varint(scratch_, entry.float_labels.size());
  for (const double label : entry.float_labels) {
    append_be64(scratch_, std::bit_cast<uint64_t>(label));
  }
  append_string(scratch_, entry.reject);
  add_fields(entry);
  hash_.update(as_bytes(scratch_));
}

}  // namespace spk
