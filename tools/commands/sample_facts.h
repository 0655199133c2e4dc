// What the looking commands tell of a sample, taken from the index: nothing is read from shards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "container/pack.h"

namespace spk {

struct SampleFacts {
  uint64_t sample = 0;  // number within the pack
  uint64_t ordinal = 0;
  std::string key;
  std::vector<int64_t> int_labels;  // one of the two, or none
  std::vector<double> float_labels;
  std::optional<int64_t> width, height, channels;
  std::optional<uint64_t> bytes;  // of the main blob; none where it is absent
  uint64_t checksum = 0;
};

// The field that a sample is about: "image", or else the first blob. kNoField where there is none.
uint16_t main_blob_field(const Schema& schema);
// The blob field with this name; "" stands for the main one. kInvalidArgument lists what there is.
Result<uint16_t> find_blob_field(const Schema& schema, const std::string& name);

// Thread-safe; the pack must outlive it.
class FactReader {
 public:
  explicit FactReader(const Pack& pack);
  Result<SampleFacts> read(uint64_t sample) const;
  bool has_int_labels() const noexcept { return labels_are_ints_; }
  // "cat": the class that the label names, as stored; null where it names none.
  const std::string* class_name(const SampleFacts& facts) const;

 private:
  std::optional<int64_t> first_int(const StoredSample& stored, uint16_t field) const;

  const Pack& pack_;
  uint16_t blob_, label_, width_, height_, channels_;
  bool labels_are_ints_ = false;
};

// "3", "3,7", "0.25"; empty where there is no label.
std::string labels_text(const SampleFacts& facts);
// "640x480x3", "640x480"; empty where the size is not known.
std::string dimensions_text(const SampleFacts& facts);

// The number that a numeric field's bit pattern stands for.
double stored_float(FieldKind kind, uint64_t bits);

}  // namespace spk
