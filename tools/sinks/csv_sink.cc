// What is known of the samples but for their bytes: one table.
#include "base/text.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"

namespace spk {

namespace {

class CsvFile : public FileSink {
 public:
  CsvFile(const Pack& pack, OutputFile out) : pack_(pack), out_(std::move(out)) {}

  Status write_head() {
    std::string line = "key,ordinal,class";
    for (const Field& field : pack_.schema().fields) {
      line += "," + csv_cell(field.kind == FieldKind::kBlob ? field.name + "_bytes" : field.name);
    }
    return out_.append(line + "\n");
  }

  Status add(const ExportSample& sample) override {
    const Schema& schema = pack_.schema();
    const StoredSample& stored = *sample.stored;
    const auto label = single_label(schema, stored, schema.find("label"));
    const bool named =
        label && *label >= 0 && static_cast<uint64_t>(*label) < schema.classes.size();
    std::string line =
        str_cat(csv_cell(escape_bytes(stored.key)), ",", stored.ordinal, ",",
                named ? csv_cell(escape_bytes(schema.classes[static_cast<size_t>(*label)]))
                      : std::string());
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      line += ',';
      const StoredField& field = stored.fields[i];
      if (!field.present) continue;
      if (schema.fields[i].kind == FieldKind::kBlob) {
        line += str_cat(field.bytes);
        continue;
      }
      for (uint32_t n = 0; n < field.count; ++n) {
        if (n != 0) line += ' ';
        line += number_text(schema.fields[i].kind, stored.numbers[field.first + n]);
      }
    }
    ++samples_;
    return out_.append(line + "\n");
  }

  Result<ExportedFile> finish() override {
    ExportedFile file{samples_, out_.position(), {}};
    SPK_TRY(out_.finish());
    return file;
  }

 private:
  const Pack& pack_;
  OutputFile out_;
  uint64_t samples_ = 0;
};

class CsvSink : public Sink {
 public:
  CsvSink(const Pack& pack, std::string prefix) : pack_(pack), prefix_(std::move(prefix)) {}
  bool single_file() const override { return true; }
  bool reads_blobs() const override { return false; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile&) const override {
    SPK_ASSIGN(OutputFile out, OutputFile::create(directory, prefix_ + ".csv"));
    auto file = std::make_unique<CsvFile>(pack_, std::move(out));
    SPK_TRY(file->write_head());
    return std::unique_ptr<FileSink>(std::move(file));
  }

 private:
  const Pack& pack_;
  const std::string prefix_;
};

Result<std::unique_ptr<Sink>> open_csv(const ExportOptions& options, const Pack& pack) {
  return std::unique_ptr<Sink>(std::make_unique<CsvSink>(pack, options.prefix));
}

}  // namespace

SinkKind csv_sink_kind() {
  return {"csv", "a table of keys, labels and numbers, no pictures", open_csv};
}

}  // namespace spk
