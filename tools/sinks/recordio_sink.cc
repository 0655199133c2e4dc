// MXNet RecordIO: NAME.rec, and beside it NAME.idx (record number, offset) and NAME.lst (number,
// labels, key), as im2rec makes them.
//
// Format: dmlc-core's recordio (u32 magic, u32 length with three bits of continuation, data padded
// to 4) around MXNet's image header (u32 flag, f32 label, u64 id, u64 id2; flag > 0: so many f32
// labels follow). Where the magic number occurs in the data at a multiple of 4, the record is cut
// there and the four bytes are left out.
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/text.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"
#include "sources/list_cell.h"

namespace spk {

namespace {

constexpr uint32_t kMagic = 0xced7230a;
constexpr uint64_t kMostRecordBytes = (uint64_t{1} << 29) - 1;
constexpr int64_t kMostExactLabel = int64_t{1} << 24;  // of binary32

enum Part : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

template <typename T>
void append_le(std::vector<uint8_t>& out, T value) {
  uint8_t bytes[sizeof(T)];
  store_le(bytes, value);
  out.insert(out.end(), bytes, bytes + sizeof bytes);
}

// Whether the magic number occurs at a multiple of 4. Groups of words are compared without a branch
// between them, which compilers turn into vector instructions.
bool holds_magic(ByteSpan bytes) {
  constexpr size_t kGroupWords = 32;
  size_t at = 0;
  for (; at + 4 * kGroupWords <= bytes.size(); at += 4 * kGroupWords) {
    uint32_t found = 0;
    for (size_t word = 0; word < kGroupWords; ++word) {
      found |= load_le<uint32_t>(bytes.data() + at + 4 * word) == kMagic ? 1 : 0;
    }
    if (found != 0) return true;
  }
  for (; at + 4 <= bytes.size(); at += 4) {
    if (load_le<uint32_t>(bytes.data() + at) == kMagic) return true;
  }
  return false;
}

class RecordFile : public FileSink {
 public:
  RecordFile(const Pack& pack, const KnownFields& known, OutputFile rec, OutputFile idx,
             OutputFile lst)
      : pack_(pack),
        known_(known),
        rec_(std::move(rec)),
        idx_(std::move(idx)),
        lst_(std::move(lst)) {}

  Status add(const ExportSample& sample) override {
    const ExportBlob& image = sample.blobs[known_.image];
    if (!image.present) return unsupported("has no picture");
    std::vector<float> labels;
    SPK_TRY(take_labels(*sample.stored, &labels));
    record_.clear();
    const bool single = labels.size() == 1;
    append_le(record_, static_cast<uint32_t>(single ? 0 : labels.size()));
    append_le(record_, std::bit_cast<uint32_t>(single ? labels[0] : 0.0f));
    append_le(record_, sample.place);
    append_le(record_, uint64_t{0});
    if (!single) {
      for (const float label : labels) append_le(record_, std::bit_cast<uint32_t>(label));
    }
    const uint64_t most_bytes = kMostRecordBytes - record_.size();

    SPK_TRY(idx_.append(str_cat(sample.place, "\t", rec_.position(), "\n")));
    std::string line = str_cat(sample.place);
    for (const float label : labels) line += "\t" + format_fixed(double{label}, 6);
    SPK_TRY(lst_.append(str_cat(line, "\t", list_cell_of(sample.stored->key), "\n")));
    ++samples_;
    // Nearly always: what needs no cut is written from where it is. The header is a multiple of 4.
    if (!image.stream && image.bytes <= most_bytes && !holds_magic(record_) &&
        !holds_magic(image.data)) {
      return write_part(kWhole, record_, image.data);
    }
    SPK_TRY(append_blob(image, most_bytes, &record_));
    return write_cut_record();
  }

  Result<ExportedFile> finish() override {
    const ExportedFile file{samples_, rec_.position(), {}};
    SPK_TRY(idx_.finish());
    SPK_TRY(lst_.finish());
    SPK_TRY(rec_.finish());
    return file;
  }

 private:
  Status take_labels(const StoredSample& stored, std::vector<float>* labels) const {
    if (known_.label == kNoField || !stored.fields[known_.label].present) {
      labels->push_back(0);
      return {};
    }
    const StoredField& field = stored.fields[known_.label];
    const FieldKind kind = pack_.schema().fields[known_.label].kind;
    for (uint32_t i = 0; i < field.count; ++i) {
      const uint64_t bits = stored.numbers[field.first + i];
      if (kind == FieldKind::kInt64) {
        const auto label = static_cast<int64_t>(bits);
        if (label > kMostExactLabel || label < -kMostExactLabel) {
          return unsupported(
              str_cat("has label ", label, ", which the 32-bit floats of this format cannot hold"));
        }
        labels->push_back(static_cast<float>(label));
      } else if (kind == FieldKind::kFloat32) {
        labels->push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      } else {
        labels->push_back(static_cast<float>(std::bit_cast<double>(bits)));
      }
    }
    return {};
  }

  // Of `bytes`, then `more`.
  Status write_part(Part part, ByteSpan bytes, ByteSpan more = {}) {
    const size_t size = bytes.size() + more.size();
    SPK_TRY(rec_.append_u32(kMagic));
    SPK_TRY(rec_.append_u32(static_cast<uint32_t>(part) << 29 | static_cast<uint32_t>(size)));
    SPK_TRY(rec_.append(bytes));
    SPK_TRY(rec_.append(more));
    return rec_.append_zeros(round_up(size, 4) - size);
  }

  Status write_cut_record() {
    const ByteSpan record = record_;
    size_t begin = 0;
    for (size_t at = 0; at + 4 <= record.size(); at += 4) {
      if (load_le<uint32_t>(record.data() + at) != kMagic) continue;
      SPK_TRY(write_part(begin == 0 ? kFirst : kMiddle, record.subspan(begin, at - begin)));
      begin = at + 4;
    }
    return write_part(begin == 0 ? kWhole : kLast, record.subspan(begin));
  }

  const Pack& pack_;
  const KnownFields& known_;
  OutputFile rec_, idx_, lst_;
  std::vector<uint8_t> record_;
  uint64_t samples_ = 0;
};

class RecordSink : public Sink {
 public:
  RecordSink(const Pack& pack, std::string prefix)
      : pack_(pack), known_(pack.schema()), prefix_(std::move(prefix)) {}
  // Readers take one file.
  uint64_t default_file_count(uint64_t, uint64_t) const override { return 1; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    const std::string number = sorted_number(file.number, file.count - 1);
    const std::string stem = file.count == 1 ? prefix_ : str_cat(prefix_, "_", number);
    SPK_ASSIGN(OutputFile rec, OutputFile::create(directory, stem + ".rec"));
    SPK_ASSIGN(OutputFile idx, OutputFile::create(directory, stem + ".idx"));
    SPK_ASSIGN(OutputFile lst, OutputFile::create(directory, stem + ".lst"));
    return std::unique_ptr<FileSink>(std::make_unique<RecordFile>(pack_, known_, std::move(rec),
                                                                  std::move(idx), std::move(lst)));
  }
  Result<ReadBack> read_back() const override {
    ReadBack how;
    how.options.source_kind = "recordio";
    how.options.features = "key=lst";
    how.has_keys = true;
    return how;
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  const std::string prefix_;
};

Result<std::unique_ptr<Sink>> open_recordio(const ExportOptions& options, const Pack& pack) {
  const KnownFields known(pack.schema());
  if (known.image == kNoField) return unsupported("the pack has no field of bytes");
  if (holds_pixels(pack)) {
    return unsupported("the pack holds pixels, RecordIO takes encoded pictures")
        .with_hint("`stripepack repack --encode png` makes such a pack");
  }
  return std::unique_ptr<Sink>(std::make_unique<RecordSink>(pack, options.prefix));
}

}  // namespace

SinkKind recordio_sink_kind() {
  return {"recordio", "MXNet RecordIO with .idx and .lst", open_recordio};
}

}  // namespace spk
