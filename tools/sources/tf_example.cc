#include "sources/tf_example.h"

#include <bit>
#include <utility>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kMostNameBytes = 4096;
constexpr size_t kMostFeatures = 4096;

Status too_many(const TfFeature& feature) {
  return unsupported(str_cat("feature '", escape_bytes(feature.name), "' has more than ",
                             TfExample::kMostValues, " values"));
}

// The list within a Feature: field 1, 2 or 3; the last one counts, as in protobuf.
Status parse_feature(const WireWalk::Read& read, const WireField& field, TfFeature* feature) {
  WireWalk walk(read, field.offset, field.offset + field.bytes);
  WireField list;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&list));
    if (!more) return {};
    if (list.type != WireType::kBytes || list.number < 1 || list.number > 3) continue;
    feature->kind = list.number == 1   ? TfFeature::Kind::kBytes
                    : list.number == 2 ? TfFeature::Kind::kFloats
                                       : TfFeature::Kind::kInts;
    feature->begin = list.offset;
    feature->end = list.offset + list.bytes;
  }
}

// An entry of the map: the name and the Feature.
Status parse_entry(const WireWalk::Read& read, const WireField& entry, TfFeature* feature) {
  WireWalk walk(read, entry.offset, entry.offset + entry.bytes);
  WireField field;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&field));
    if (!more) return {};
    if (field.type != WireType::kBytes) continue;
    if (field.number == 1) {
      if (field.bytes > kMostNameBytes) {
        return damaged("a feature's name is longer than 4096 bytes").at_offset(field.offset);
      }
      feature->name.resize(field.bytes);
      if (field.bytes != 0) {
        SPK_TRY(read(field.offset,
                     {reinterpret_cast<uint8_t*>(feature->name.data()), feature->name.size()}));
      }
    } else if (field.number == 2) {
      SPK_TRY(parse_feature(read, field, feature));
    }
  }
}

// Numbers of a list: each of type ALONE, or many packed into one of bytes.
template <typename T, typename OfBits, typename TakePacked>
Result<std::vector<T>> numbers_of(const WireWalk::Read& read, const TfFeature& feature,
                                  WireType alone, const OfBits& of_bits,
                                  const TakePacked& take_packed) {
  std::vector<T> values;
  WireWalk walk(read, feature.begin, feature.end);
  WireField field;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&field));
    if (!more) return values;
    if (field.number != 1) continue;
    if (field.type == alone) {
      if (values.size() == TfExample::kMostValues) return too_many(feature);
      values.push_back(of_bits(field.value));
    } else if (field.type == WireType::kBytes) {
      SPK_TRY(take_packed(field, &values));
    }
  }
}

}  // namespace

Result<TfExample> TfExample::parse(WireWalk::Read read, uint64_t begin, uint64_t end) {
  TfExample example;
  example.read_ = std::move(read);
  WireWalk walk(example.read_, begin, end);
  WireField field;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&field));
    if (!more) break;
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    WireWalk features(example.read_, field.offset, field.offset + field.bytes);
    WireField entry;
    for (;;) {
      SPK_ASSIGN(const bool another, features.next(&entry));
      if (!another) break;
      if (entry.number != 1 || entry.type != WireType::kBytes) continue;
      if (example.features_.size() == kMostFeatures) {
        return unsupported("a record has more than 4096 features");
      }
      SPK_TRY(parse_entry(example.read_, entry, &example.features_.emplace_back()));
    }
  }
  return example;
}

const TfFeature* TfExample::find(std::string_view name) const noexcept {
  // Of a name that is there twice the last counts, as in protobuf.
  for (size_t i = features_.size(); i-- != 0;) {
    if (features_[i].name == name) return &features_[i];
  }
  return nullptr;
}

Result<std::vector<TfPlace>> TfExample::byte_strings(const TfFeature& feature) const {
  std::vector<TfPlace> places;
  WireWalk walk(read_, feature.begin, feature.end);
  WireField field;
  for (;;) {
    SPK_ASSIGN(const bool more, walk.next(&field));
    if (!more) return places;
    if (field.number != 1 || field.type != WireType::kBytes) continue;
    if (places.size() == kMostValues) return too_many(feature);
    places.push_back({field.offset, field.bytes});
  }
}

Result<std::vector<float>> TfExample::floats(const TfFeature& feature) const {
  const auto of_bits = [](uint64_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  };
  const auto take_packed = [&](const WireField& field, std::vector<float>* values) -> Status {
    if (field.bytes % 4 != 0) return damaged("a list of floats is cut").at_offset(field.offset);
    if (field.bytes / 4 > kMostValues - values->size()) return too_many(feature);
    std::vector<uint8_t> packed(field.bytes);
    if (!packed.empty()) SPK_TRY(read_(field.offset, packed));
    for (size_t at = 0; at < packed.size(); at += 4) {
      values->push_back(of_bits(load_le<uint32_t>(packed.data() + at)));
    }
    return {};
  };
  return numbers_of<float>(read_, feature, WireType::kFixed32, of_bits, take_packed);
}

Result<std::vector<int64_t>> TfExample::ints(const TfFeature& feature) const {
  const auto of_bits = [](uint64_t bits) { return static_cast<int64_t>(bits); };
  const auto take_packed = [&](const WireField& field, std::vector<int64_t>* values) -> Status {
    WireWalk packed(read_, field.offset, field.offset + field.bytes);
    for (uint64_t value = 0;;) {
      SPK_ASSIGN(const bool another, packed.next_packed_varint(&value));
      if (!another) return {};
      if (values->size() == kMostValues) return too_many(feature);
      values->push_back(of_bits(value));
    }
  };
  return numbers_of<int64_t>(read_, feature, WireType::kVarint, of_bits, take_packed);
}

Result<std::string> TfExample::text(const TfPlace& place) const {
  std::string text(place.bytes, '\0');
  if (!text.empty()) {
    SPK_TRY(read_(place.offset, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  }
  return text;
}

}  // namespace spk
