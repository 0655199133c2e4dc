// A folder of files under their keys, and a list of them with their labels (manifest.tsv), in the
// order of the export.
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "io/file.h"
#include "sinks/folder_names.h"
#include "sinks/folder_writer.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"

namespace spk {

namespace {

constexpr char kManifest[] = "manifest.tsv";
constexpr char kPixelSuffix[] = ".npy";
// Nobody tells how many write at a time; mostly it is few.
constexpr uint32_t kLikelyThreads = 4;
constexpr size_t kMostOpenFolders = 64;

class FolderFiles : public FileSink {
 public:
  FolderFiles(const Pack& pack, const KnownFields& known, bool pixels, const FolderNames& names,
              const Directory& root)
      : pack_(pack),
        known_(known),
        pixels_(pixels),
        names_(names),
        root_(root),
        writer_(root, true, std::min(kMostOpenFolders, open_folders_of_each(kLikelyThreads))) {}

  Status add(const ExportSample& sample) override {
    std::string path = names_.path_of(sample.number, sample.stored->key);
    if (pixels_) path += kPixelSuffix;
    const Schema& schema = pack_.schema();
    std::string head;
    if (pixels_ && sample.blobs[known_.image].present) {
      SPK_ASSIGN(head, npy_head(known_, *sample.stored));
    }
    for (size_t field = 0; field < schema.fields.size(); ++field) {
      const ExportBlob& blob = sample.blobs[field];
      if (!blob.present) continue;
      const std::string name =
          field == known_.image ? path : str_cat(path, ".", name_part(schema.fields[field].name));
      const auto fill = [&](const File& file) -> Status {
        uint64_t at = 0;
        if (field == known_.image) {
          at = head.size();
          SPK_TRY(file.write_all(0, as_bytes(head)));
        }
        return blob.each_piece([&](ByteSpan piece) {
          const uint64_t begin = at;
          at += piece.size();
          return file.write_all(begin, piece);
        });
      };
      SPK_TRY(writer_.write(name, fill));
      file_.bytes += blob.bytes;
    }
    ++file_.samples;
    file_.note += str_cat(tsv_cell(path), labels(*sample.stored), "\n");
    return {};
  }

  Result<ExportedFile> finish() override {
    // All of them at once: one by one would take far longer.
    if (syncfs(root_.fd()) != 0) return io_error(errno, "cannot sync", root_.path());
    return std::move(file_);
  }

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
  const bool pixels_;
  const FolderNames& names_;
  const Directory& root_;
  FolderWriter writer_;
  ExportedFile file_;
};

class FolderSink : public Sink {
 public:
  explicit FolderSink(const Pack& pack)
      : pack_(pack), known_(pack.schema()), pixels_(holds_pixels(pack)) {}

  Status choose_names() {
    for (uint64_t sample = 0; sample < pack_.sample_count(); ++sample) {
      SPK_ASSIGN(const std::string key, pack_.key(sample));
      names_.add(sample, key);
      // What lies beside a file is named after it.
      if (pixels_) names_.reserve(key + kPixelSuffix);
      for (size_t field = 0; field < pack_.schema().fields.size(); ++field) {
        const Field& shape = pack_.schema().fields[field];
        if (shape.kind != FieldKind::kBlob || field == known_.image) continue;
        names_.reserve(str_cat(key, ".", name_part(shape.name)));
      }
    }
    names_.reserve(kManifest);
    return names_.finish([this](uint64_t sample) { return pack_.key(sample); });
  }

  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile&) const override {
    return std::unique_ptr<FileSink>(
        std::make_unique<FolderFiles>(pack_, known_, pixels_, names_, directory));
  }

  Result<ReadBack> read_back() const override {
    if (pixels_) return Sink::read_back();
    ReadBack how;
    how.options.source_kind = "manifest";
    how.file = kManifest;
    return how;
  }

  Status finish(const Directory& directory, std::span<const ExportedFile> files) const override {
    const uint32_t labels =
        known_.label == kNoField ? 0 : pack_.schema().fields[known_.label].length;
    std::string text = "path";
    for (uint32_t i = 0; i < labels; ++i) text += labels == 1 ? "\tlabel" : str_cat("\tlabel_", i);
    text += "\n";
    for (const ExportedFile& file : files) text += file.note;
    return write_output_file(directory, kManifest, as_bytes(text));
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  const bool pixels_;
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
