// IDX files, as MNIST's: one of all pixels, one of labels. Big-endian: 0, 0, type, number of sizes,
// sizes, values.
#include <limits>

#include "base/bytes.h"
#include "base/text.h"
#include "base/varint.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"
#include "sources/idx.h"

namespace spk {

namespace {

std::string head(uint8_t type, const std::vector<uint64_t>& sizes) {
  std::string text(2, '\0');
  text += static_cast<char>(type);
  text += static_cast<char>(sizes.size());
  for (const uint64_t size : sizes) {
    append_be32(text, static_cast<uint32_t>(size));
  }
  return text;
}

class IdxFile : public FileSink {
 public:
  IdxFile(const Pack& pack, const KnownFields& known, OutputFile images, OutputFile labels)
      : pack_(pack), known_(known), images_(std::move(images)), labels_(std::move(labels)) {}

  Status write_head(uint64_t count, const PixelShape& shape) {
    std::vector<uint64_t> sizes = {count, shape.height, shape.width};
    if (shape.channels != 1) sizes.push_back(shape.channels);
    for (const uint64_t size : sizes) {
      if (size > std::numeric_limits<uint32_t>::max()) {
        return unsupported(str_cat("a size of ", size, " does not fit into IDX's 32 bits"));
      }
    }
    return images_.append(head(kIdxUint8, sizes));
  }

  Status add(const ExportSample& sample) override {
    const ExportBlob& image = sample.blobs[known_.image];
    if (!image.present) return unsupported("has no picture");
    SPK_TRY(image.each_piece([this](ByteSpan piece) { return images_.append(piece); }));
    ++samples_;
    if (known_.label == kNoField) return {};
    const auto label = single_label(pack_.schema(), *sample.stored, known_.label);
    if (!label) return unsupported("has no label");
    if (*label != static_cast<int32_t>(*label)) {
      return unsupported(str_cat("has label ", *label, ", IDX takes 32 bits"));
    }
    values_.push_back(static_cast<int32_t>(*label));
    bytes_do_ = bytes_do_ && *label >= 0 && *label <= 255;
    return {};
  }

  Result<ExportedFile> finish() override {
    const ExportedFile file{samples_, images_.position(), {}};
    SPK_TRY(images_.finish());
    if (known_.label == kNoField) return file;
    SPK_TRY(labels_.append(head(bytes_do_ ? kIdxUint8 : kIdxInt32, {samples_})));
    for (const int32_t value : values_) {
      std::string bytes;
      append_be32(bytes, static_cast<uint32_t>(value));
      SPK_TRY(labels_.append(as_bytes(bytes).subspan(bytes_do_ ? 3 : 0)));
    }
    SPK_TRY(labels_.finish());
    return file;
  }

 private:
  const Pack& pack_;
  const KnownFields& known_;
  OutputFile images_;
  OutputFile labels_;  // not finished, and so removed, where there are none
  std::vector<int32_t> values_;
  bool bytes_do_ = true;
  uint64_t samples_ = 0;
};

class IdxSink : public Sink {
 public:
  IdxSink(const Pack& pack, std::string prefix, PixelShape shape)
      : pack_(pack),
        known_(pack.schema()),
        prefix_(prefix == "test" ? "t10k" : std::move(prefix)),
        shape_(shape) {}
  bool single_file() const override { return true; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    const char* const sizes = shape_.channels == 1 ? "3" : "4";
    SPK_ASSIGN(OutputFile images,
               OutputFile::create(directory, str_cat(prefix_, "-images-idx", sizes, "-ubyte")));
    SPK_ASSIGN(OutputFile labels,
               OutputFile::create(directory, str_cat(prefix_, "-labels-idx1-ubyte")));
    auto one = std::make_unique<IdxFile>(pack_, known_, std::move(images), std::move(labels));
    SPK_TRY(one->write_head(file.samples.size(), shape_));
    return std::unique_ptr<FileSink>(std::move(one));
  }
  Result<ReadBack> read_back() const override {
    ReadBack how;
    how.options.source_kind = "idx";
    return how;
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  const std::string prefix_;
  const PixelShape shape_;
};

Result<std::unique_ptr<Sink>> open_idx(const ExportOptions& options, const Pack& pack) {
  const KnownFields known(pack.schema());
  if (!holds_pixels(pack)) {
    return unsupported("the pack holds encoded pictures, IDX files are made of pixels");
  }
  SPK_ASSIGN(const PixelShape shape, uniform_shape(pack, known));
  return std::unique_ptr<Sink>(std::make_unique<IdxSink>(pack, options.prefix, shape));
}

}  // namespace

SinkKind idx_sink_kind() { return {"idx", "IDX files of pixels and labels, as MNIST's", open_idx}; }

}  // namespace spk
