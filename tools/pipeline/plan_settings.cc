#include "pipeline/plan_settings.h"

#include <algorithm>
#include <bit>
#include <set>

#include "base/text.h"
#include "format/constants.h"
#include "image/encode.h"
#include "image/transform.h"
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
std::string fields_text(const PlanInfo& listing) {
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

const char* mode_name(ResizeMode mode) {
  switch (mode) {
    case ResizeMode::kKeepRatio: return "keep_ratio";
    case ResizeMode::kKeepRatioLargest: return "keep_ratio_largest";
    case ResizeMode::kCenterCrop: return "center_crop";
    case ResizeMode::kBorder: return "border";
    case ResizeMode::kExact: return "exact";
  }
  return "unknown";
}

const char* filter_name(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kArea: return "area";
    case ResizeFilter::kLanczos: return "lanczos";
    case ResizeFilter::kBilinear: return "bilinear";
  }
  return "unknown";
}

const char* encode_name(EncodeAs encode) {
  switch (encode) {
    case EncodeAs::kSame: return "same";
    case EncodeAs::kJpeg: return "jpeg";
    case EncodeAs::kPng: return "png";
    case EncodeAs::kWebp: return "webp";
    case EncodeAs::kRaw: return "raw";
  }
  return "unknown";
}

// Nothing without transforms, so that plans are then what they were before there were any.
void add_transform(const TransformOptions& transform,
                   std::vector<std::pair<std::string, std::string>>* settings) {
  if (!transform.on()) return;
  settings->emplace_back("transform", "1");  // changes when the same options make other bytes
  if (transform.resizes()) {
    settings->emplace_back("resize", transform.box ? str_cat(transform.width, "x", transform.height)
                                                   : str_cat(transform.width));
    settings->emplace_back("resize_mode", mode_name(transform.mode));
    settings->emplace_back("only_if_bigger", transform.only_if_bigger ? "yes" : "no");
    settings->emplace_back("interpolation", filter_name(transform.filter));
  }
  settings->emplace_back("encode", encode_name(transform.encode));
  settings->emplace_back("quality", str_cat(transform.quality));
  if (transform.colour != ColourMode::kSame) {
    settings->emplace_back("color", transform.colour == ColourMode::kRgb ? "rgb" : "gray");
  }
  settings->emplace_back("orient", transform.orient ? "yes" : "no");
  settings->emplace_back("strip_metadata", transform.strip_metadata ? "yes" : "no");
  if (transform.background) {
    settings->emplace_back("background", to_hex(*transform.background).substr(10));
  }
  const bool converts = transform.profile == ProfileMode::kSrgb;
  settings->emplace_back("icc", converts ? "srgb" : "keep");
  std::string masks;
  for (const std::string& name : transform.mask_fields) {
    masks += str_cat(masks.empty() ? "" : ",", name);
  }
  if (!masks.empty()) settings->emplace_back("mask_fields", masks);
  for (auto& version : image::codec_versions(converts)) settings->push_back(std::move(version));
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

uint64_t estimated_total_bytes(const PackOptions& options, uint64_t samples, uint64_t bytes) {
  if (!options.transform.on() || samples == 0) return bytes;
  return samples * estimated_bytes(options.transform, bytes / samples);
}

namespace {

// Masks are fields of files beside the picture.
Status check_masks(const TransformOptions& transform, const std::vector<SourceBlob>& blobs,
                   const SourceBlob& picture) {
  std::set<std::string> seen;
  for (const std::string& name : transform.mask_fields) {
    const auto mask = std::find_if(blobs.begin(), blobs.end(),
                                   [&](const SourceBlob& blob) { return blob.name == name; });
    if (mask == blobs.end()) {
      std::string names;
      for (const SourceBlob& blob : blobs) {
        if (blob.name != picture.name) names += str_cat(names.empty() ? "" : ", ", blob.name);
      }
      return invalid_argument(str_cat("--mask-field ", name, ": there is no such field of files"))
          .with_hint(names.empty() ? "add one with --field" : str_cat("there are: ", names));
    }
    if (mask->content == BlobContent::kPixels) {
      return invalid_argument(str_cat("--mask-field ", name, " is no field of PNG files"));
    }
    if (!seen.insert(name).second) {
      return invalid_argument(str_cat("--mask-field ", name, " is given twice"));
    }
  }
  return {};
}

}  // namespace

size_t picture_to_transform(const TransformOptions& transform,
                            const std::vector<SourceBlob>& blobs) {
  const std::vector<std::string>& masks = transform.mask_fields;
  size_t blob = 0;
  while (blob < blobs.size() &&
         (blobs[blob].content == BlobContent::kAny ||
          std::find(masks.begin(), masks.end(), blobs[blob].name) != masks.end())) {
    ++blob;
  }
  return blob;
}

Status set_transformed_contents(const PackOptions& options, std::vector<SourceBlob>* blobs) {
  const TransformOptions& transform = options.transform;
  if (!transform.on()) return {};
  const size_t picture = picture_to_transform(transform, *blobs);
  if (picture == blobs->size()) {
    return invalid_argument("no field of the source is a picture that could be transformed")
        .at_path(options.source);
  }
  SPK_TRY(check_masks(transform, *blobs, (*blobs)[picture]));
  if (transform.encode == EncodeAs::kSame) return {};
  (*blobs)[picture].content =
      transform.encode == EncodeAs::kRaw ? BlobContent::kPixels : BlobContent::kPicture;
  return {};
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
  if (const std::string fields = fields_text(*info); !fields.empty()) {
    settings.emplace_back("fields", fields);
  }
  for (const auto& decision : listing.decisions) settings.push_back(decision);
  add_transform(options.transform, &settings);
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
