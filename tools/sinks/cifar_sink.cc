// CIFAR-10's and CIFAR-100's binary files: a label byte (CIFAR-100: a coarse and a fine one), then
// 32 x 32 pixels as a red, a green and a blue plane. Files have the names that their readers know.
#include "base/checked.h"
#include "base/text.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"

namespace spk {

namespace {

constexpr uint64_t kBatchSamples = 10000;
constexpr PixelShape kShape = {32, 32, 3};
constexpr uint64_t kPixelBytes = 32 * 32 * 3;

class CifarFile : public FileSink {
 public:
  CifarFile(const Pack& pack, const KnownFields& known, uint16_t coarse, OutputFile out)
      : pack_(pack), known_(known), coarse_(coarse), out_(std::move(out)) {}

  Status add(const ExportSample& sample) override {
    const ExportBlob& image = sample.blobs[known_.image];
    SPK_ASSIGN(const PixelShape shape, pixel_shape(known_, *sample.stored));
    if (!image.present || shape != kShape || image.bytes != kPixelBytes) {
      return unsupported(str_cat("has ", shape.height, " x ", shape.width, " x ", shape.channels,
                                 " pixels, CIFAR has 32 x 32 x 3"));
    }
    if (coarse_ != kNoField) SPK_TRY(add_label(*sample.stored, coarse_, "coarse label"));
    SPK_TRY(add_label(*sample.stored, known_.label, "label"));
    SPK_ASSIGN(const std::vector<uint8_t> pixels, collect(image, kPixelBytes));
    std::vector<uint8_t> planes(kPixelBytes);
    to_planes(pixels, kShape.channels, false, planes);
    ++samples_;
    return out_.append(ByteSpan(planes));
  }

  Result<ExportedFile> finish() override {
    const ExportedFile file{samples_, out_.position(), {}};
    SPK_TRY(out_.finish());
    return file;
  }

 private:
  Status add_label(const StoredSample& stored, uint16_t field, const char* what) {
    const auto label = single_label(pack_.schema(), stored, field);
    if (!label) return unsupported(str_cat("has no ", what));
    if (*label < 0 || *label > 255) {
      return unsupported(str_cat("has ", what, " ", *label, ", CIFAR has a byte for it"));
    }
    const auto byte = static_cast<uint8_t>(*label);
    return out_.append(ByteSpan(&byte, 1));
  }

  const Pack& pack_;
  const KnownFields& known_;
  const uint16_t coarse_;
  OutputFile out_;
  uint64_t samples_ = 0;
};

class CifarSink : public Sink {
 public:
  CifarSink(const Pack& pack, std::string_view prefix)
      : pack_(pack),
        known_(pack.schema()),
        coarse_(pack.schema().find("coarse")),
        is_test_(prefix == "test" || prefix == "val") {}
  uint64_t default_file_count(uint64_t samples, uint64_t) const override {
    return is_test_ || coarse_ != kNoField ? 1 : divide_up(samples, kBatchSamples);
  }
  bool single_file() const override { return is_test_ || coarse_ != kNoField; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    // The five of CIFAR-10 have the names of the original.
    std::string name = str_cat("data_batch_", sorted_number(file.number + 1, file.count), ".bin");
    if (coarse_ != kNoField) {
      name = is_test_ ? "test.bin" : "train.bin";
    } else if (is_test_) {
      name = "test_batch.bin";
    }
    SPK_ASSIGN(OutputFile out, OutputFile::create(directory, name));
    return std::unique_ptr<FileSink>(
        std::make_unique<CifarFile>(pack_, known_, coarse_, std::move(out)));
  }
  Result<ReadBack> read_back() const override {
    ReadBack how;
    how.options.source_kind = "cifar";
    return how;
  }
  Status finish(const Directory& directory, std::span<const ExportedFile>) const override {
    if (pack_.schema().classes.empty()) return {};
    std::string text;
    for (const std::string& name : pack_.schema().classes) text += name + "\n";
    return write_output_file(directory,
                             coarse_ == kNoField ? "batches.meta.txt" : "fine_label_names.txt",
                             as_bytes(text));
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  const uint16_t coarse_;
  const bool is_test_;
};

Result<std::unique_ptr<Sink>> open_cifar(const ExportOptions& options, const Pack& pack) {
  const KnownFields known(pack.schema());
  if (!holds_pixels(pack)) {
    return unsupported("the pack holds encoded pictures, CIFAR's files are made of pixels");
  }
  SPK_ASSIGN(const PixelShape shape, uniform_shape(pack, known));
  if (shape != kShape) {
    return unsupported(str_cat("the pack's pictures are ", shape.height, " x ", shape.width, " x ",
                               shape.channels, ", CIFAR's 32 x 32 x 3"));
  }
  if (known.label == kNoField) return unsupported("the pack has no labels, CIFAR's files need one");
  for (const std::string& name : pack.schema().classes) {
    if (name.empty() || name.find_first_of("\r\n") != name.npos) {
      return unsupported(
          str_cat("the class '", escape_bytes(name), "' cannot be a line of a list"));
    }
  }
  return std::unique_ptr<Sink>(std::make_unique<CifarSink>(pack, options.prefix));
}

}  // namespace

SinkKind cifar_sink_kind() {
  return {"cifar", "CIFAR-10's or CIFAR-100's binary files, of 32 x 32 pixels", open_cifar};
}

}  // namespace spk
