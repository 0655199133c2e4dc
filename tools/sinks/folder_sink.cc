// A folder of files under their keys, and a list of them with their labels (manifest.tsv), in the
// order of the export.
#include <bit>

#include "base/text.h"
#include "io/atomic_file.h"
#include "sinks/folder_names.h"
#include "sinks/folder_writer.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"

namespace spk {

namespace {

constexpr char kManifest[] = "manifest.tsv";
constexpr size_t kOpenFolders = 64;

class FolderFiles : public FileSink {
 public:
  FolderFiles(const Pack& pack, const KnownFields& known, const FolderNames& names,
              const Directory& root)
      : pack_(pack), known_(known), names_(names), writer_(root, true, kOpenFolders) {}

  Status add(const ExportSample& sample) override {
    const std::string path = names_.path_of(sample.number, sample.stored->key);
    const Schema& schema = pack_.schema();
    for (size_t field = 0; field < schema.fields.size(); ++field) {
      const ExportBlob& blob = sample.blobs[field];
      if (!blob.present) continue;
      const std::string name =
          field == known_.image ? path : str_cat(path, ".", schema.fields[field].name);
      SPK_TRY(writer_.write(name, [&](const File& file) {
        uint64_t at = 0;
        return blob.each_piece([&](ByteSpan piece) {
          const uint64_t begin = at;
          at += piece.size();
          return file.write_all(begin, piece);
        });
      }));
      file_.bytes += blob.bytes;
    }
    ++file_.samples;
    file_.note += str_cat(tsv_cell(path), labels(*sample.stored), "\n");
    return {};
  }

  Result<ExportedFile> finish() override { return std::move(file_); }

 private:
  std::string labels(const StoredSample& stored) const {
    std::string text;
    if (known_.label == kNoField || !stored.fields[known_.label].present) return text;
    const StoredField& field = stored.fields[known_.label];
    const FieldKind kind = pack_.schema().fields[known_.label].kind;
    for (uint32_t i = 0; i < field.count; ++i) {
      text += "\t" + number_text(kind, stored.numbers[field.first + i]);
    }
    return text;
  }

  const Pack& pack_;
  const KnownFields& known_;
  const FolderNames& names_;
  FolderWriter writer_;
  ExportedFile file_;
};

class FolderSink : public Sink {
 public:
  explicit FolderSink(const Pack& pack) : pack_(pack), known_(pack.schema()) {}

  Status choose_names() {
    for (uint64_t sample = 0; sample < pack_.sample_count(); ++sample) {
      SPK_ASSIGN(const std::string key, pack_.key(sample));
      names_.add(sample, key);
    }
    return names_.finish([this](uint64_t sample) { return pack_.key(sample); });
  }

  Result<std::unique_ptr<FileSink>> begin(const Directory& directory, uint64_t,
                                          uint64_t) const override {
    return std::unique_ptr<FileSink>(
        std::make_unique<FolderFiles>(pack_, known_, names_, directory));
  }

  Status finish(const Directory& directory, std::span<const ExportedFile> files) const override {
    const uint32_t labels =
        known_.label == kNoField ? 0 : pack_.schema().fields[known_.label].length;
    std::string text = "path";
    for (uint32_t i = 0; i < labels; ++i) text += labels == 1 ? "\tlabel" : str_cat("\tlabel_", i);
    text += "\n";
    for (const ExportedFile& file : files) text += file.note;
    return write_file_atomically(directory, kManifest, as_bytes(text));
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  FolderNames names_;
};

Result<std::unique_ptr<Sink>> open_folder(const ExportOptions&, const Pack& pack) {
  if (KnownFields(pack.schema()).image == kNoField) {
    return unsupported("the pack has no field of bytes");
  }
  auto sink = std::make_unique<FolderSink>(pack);
  SPK_TRY(sink->choose_names());
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace

SinkKind folder_sink_kind() {
  return {"folder", "files under their keys, with manifest.tsv", open_folder};
}

}  // namespace spk
