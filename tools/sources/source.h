// What a source of samples must offer. A source knows nothing of packs: it lists what it has, then
// reads any sample again by what the listing said of it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/schema.h"
#include "pipeline/pack_options.h"
#include "sources/spool.h"

namespace spk {

constexpr int64_t kUnknownMtime = std::numeric_limits<int64_t>::min();
constexpr uint64_t kUnknownSize = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMostClasses = uint64_t{1}
                                  << 20;  // class names are held in memory; more is refused
constexpr uint64_t kAbsentBlob = std::numeric_limits<uint64_t>::max();

// What a field of bytes holds, which decides how it is looked at before it gets in.
enum class BlobContent {
  kPicture,  // an encoded picture: must be whole, see image/probe.h
  kPixels,   // uint8, height x width x channels; its dimensions come with the entry
  kAny,      // anything; where the first field turns out to be a picture, its size is told
};

struct SourceBlob {
  std::string name;
  BlobContent content = BlobContent::kPicture;
  bool operator==(const SourceBlob&) const = default;
};

struct PixelDimensions {
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t channels = 0;
  bool operator==(const PixelDimensions&) const = default;
};

// Values of a numeric field beside the label; bit patterns as in StoredSample::numbers.
using NumericValues = std::vector<uint64_t>;

// BLOB_BYTES and SIZE_BYTES as in SampleEntry.
inline uint64_t blob_size(const std::vector<uint64_t>& blob_bytes, uint64_t size_bytes,
                          size_t blob) {
  if (blob_bytes.empty()) return blob == 0 ? size_bytes : kAbsentBlob;
  return blob_bytes[blob];
}

// One sample as listed. `ordinal` is its place in the source's own order (folder: byte order of the
// keys of a split; manifest: order of the list) and is set by the planner for sources that list
// unordered.
struct SampleEntry {
  std::string key;  // any bytes; unique within a split unless the source allows repeats
  // What to open. Sources of files: relative to the root; empty: the key is the path. Others: any
  // bytes that tell the source where the sample lies.
  std::string path;
  uint64_t ordinal = 0;
  uint64_t size_bytes = kUnknownSize;
  int64_t mtime_ns = kUnknownMtime;
  uint32_t split = 0;               // index into Listing::splits
  std::vector<int64_t> int_labels;  // one of the two is used, see Listing::label_kind
  std::vector<double> float_labels;
  // One for each of Listing::blobs, kAbsentBlob where the sample has none; size_bytes is the sum of
  // the others. Empty: the sample is one blob of size_bytes.
  std::vector<uint64_t> blob_bytes;
  PixelDimensions pixels;  // of the first blob, where its content is kPixels
  // What the source tells of a picture beside its bytes, where it does; 0: nothing. Only compared
  // with the picture, so no part of a plan's id.
  PixelDimensions told;
  // One for each of Listing::numbers, nothing where the sample has no value. Empty: none has.
  std::vector<std::optional<NumericValues>> numbers;
  std::string reject;  // not empty: listing already knows that it cannot become a sample, and why

  // Of a field of Listing::blobs; kAbsentBlob where the sample has none.
  uint64_t bytes_of_blob(size_t blob) const { return blob_size(blob_bytes, size_bytes, blob); }
};

enum class LabelKind { kNone, kInt, kFloat };

// Things worth telling that drop nothing. Counted by kind; the first few of each are kept.
class Warnings {
 public:
  static constexpr size_t kExamplesKept = 20;
  struct Kind {
    uint64_t count = 0;
    std::vector<std::string> examples;  // escaped text
  };
  void add(const std::string& kind, std::string example);
  void add_count(const std::string& kind, uint64_t count);  // more of it, without examples
  void merge(const Warnings& other);
  uint64_t total() const;
  const std::map<std::string, Kind>& kinds() const { return kinds_; }

 private:
  std::map<std::string, Kind> kinds_;
};

// What a listing found beside the samples themselves.
struct Listing {
  std::string source_kind;           // "folder", "manifest"
  std::string form;                  // which of its forms, where it has several: "lines", "csv" ...
  std::vector<std::string> splits;   // one empty name where the source has no splits
  std::vector<std::string> classes;  // index = label; empty where labels have no names
  std::vector<SourceBlob> blobs = {{"image", BlobContent::kPicture}};
  std::vector<Field> numbers;  // numeric fields beside label, height, width and channels
  // What was decided about the source's meaning and shapes bytes ("label_base" -> "1"): becomes
  // part of the plan record.
  Settings decisions;
  LabelKind label_kind = LabelKind::kNone;
  uint32_t label_count = 1;                 // labels a sample; 0: differs between samples (ragged)
  bool ordered = false;                     // what lists_in_order() says
  std::map<std::string, uint64_t> ignored;  // why -> how many ("hidden", "not a picture name" ...)
  Warnings warnings;
};

// Reads one sample: its blobs, those it has, one behind the other. Not thread-safe itself;
// different handles are independent.
class SampleHandle {
 public:
  virtual ~SampleHandle() = default;
  virtual uint64_t size_bytes() const = 0;
  // Exactly into.size() bytes; kMismatch where the sample is shorter than it was when opened.
  virtual Status read_at(uint64_t offset, MutableByteSpan into) = 0;
};

class Source {
 public:
  // Called for each sample, from several threads at once where !lists_in_order().
  using Sink = std::function<Status(SampleEntry&&)>;

  virtual ~Source() = default;
  // True: entries arrive in ordinal order, from one thread at a time, with ordinals set; keys may
  // repeat. False: in any order and from several threads; the order is that of the keys.
  virtual bool lists_in_order() const { return false; }
  // Walks the whole source. Bounded memory: entries go to the sink as they are found.
  virtual Result<Listing> list(const PackOptions& options, const Sink& sink) = 0;
  // Thread-safe. kNotFound and kDenied mean that this sample is rejected; kMismatch that size or
  // mtime differ from the entry (the source changed); anything else is an error of the machine.
  // Where entry.size_bytes is kUnknownSize, the handle tells the size.
  virtual Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const = 0;
};

// Recognises what lies at options.source by its content, or takes options.source_kind's word.
// Errors name what was found and what can be done. What cannot be read at random is written to
// SPOOL while it is listed; without one, entries of such a source can be listed, but not opened.
Result<std::unique_ptr<Source>> open_source(const PackOptions& options,
                                            std::shared_ptr<Spool> spool = nullptr);

}  // namespace spk
