#include "sources/cifar.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sources/numbered_key.h"
#include "sources/pieces.h"
#include "sources/planar.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr uint64_t kSide = 32;
constexpr uint64_t kPixelBytes = kSide * kSide * 3;
constexpr uint64_t kRecordBytes10 = 1 + kPixelBytes;
constexpr uint64_t kRecordBytes100 = 2 + kPixelBytes;
constexpr unsigned kMostCoarse = 20;
constexpr uint64_t kMostNamesBytes = 64 * 1024;

std::string_view name_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

// "data_batch_1.bin" and "train.bin" are train.
bool is_batch_name(std::string_view name) {
  return name.ends_with(".bin") && (name.starts_with("data_batch") || name == "test_batch.bin" ||
                                    name == "train.bin" || name == "test.bin");
}
bool is_test_name(std::string_view name) { return name.starts_with("test"); }

// Every file of bytes might be one; what it holds is checked when it is listed.
bool takes_any(ByteSpan) { return true; }

std::vector<std::string> batches_of(const SourceLook& look) {
  if (!look.is_folder) return look.files;
  std::vector<std::string> batches;
  for (const std::string& path : look.files) {
    if (is_batch_name(name_of(path))) batches.push_back(path);
  }
  return batches;
}

// 0 where the size is that of no whole records. The usual names say which form it must be.
uint64_t record_bytes_of(uint64_t file_bytes, std::string_view name) {
  const bool is_usual = is_batch_name(name);
  const bool is_batch = name.find("batch") != name.npos;
  if (file_bytes % kRecordBytes10 == 0 && (is_batch || !is_usual)) return kRecordBytes10;
  if (file_bytes % kRecordBytes100 == 0 && (!is_batch || !is_usual)) return kRecordBytes100;
  return 0;
}

}  // namespace

Result<std::unique_ptr<Source>> CifarSource::open_files(std::vector<std::string> paths,
                                                        std::shared_ptr<Spool> spool,
                                                        bool is_folder) {
  // Batches for training come first, as their names sort.
  std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) {
    return is_test_name(name_of(a)) < is_test_name(name_of(b));
  });
  SPK_ASSIGN(auto set, ContainerSet::open(std::move(paths), std::move(spool), false, takes_any));
  uint64_t record_bytes = 0;
  for (uint32_t file = 0; file < set->count(); ++file) {
    const uint64_t bytes = set->size_bytes(file);
    const uint64_t found = record_bytes_of(bytes, name_of(set->path(file)));
    if (found == 0) {
      return damaged(str_cat("has ", bytes, " bytes, which are no whole records of CIFAR-10 (",
                             kRecordBytes10, ") or CIFAR-100 (", kRecordBytes100, ")"))
          .at_path(escape_bytes(set->path(file)))
          .at_offset(bytes - bytes % kRecordBytes10);
    }
    if (record_bytes == 0) record_bytes = found;
    if (found != record_bytes) {
      return damaged("CIFAR-10 and CIFAR-100 in one folder").at_path(escape_bytes(set->path(file)));
    }
  }
  return std::unique_ptr<Source>(new CifarSource(std::move(set), record_bytes, is_folder));
}

Status CifarSource::read_class_names(Listing* listing) const {
  const std::string& first = set_->path(0);
  const std::string folder = first.substr(0, first.size() - name_of(first).size());
  const bool is_10 = record_bytes_ == kRecordBytes10;
  const auto file = File::open_read(folder + (is_10 ? "batches.meta.txt" : "fine_label_names.txt"));
  if (!file.ok()) return file.status().code() == Code::kNotFound ? Status() : file.status();
  std::vector<uint8_t> bytes(kMostNamesBytes);
  SPK_ASSIGN(const uint64_t got, file->read_some(0, bytes));
  std::string_view text = as_text(ByteSpan(bytes).first(got));
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) listing->classes.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

Status CifarSource::list_file(uint32_t file, Listing* listing, uint64_t* ordinal,
                              const Sink& sink) const {
  SPK_ASSIGN(const auto reader, set_->read(file, kDataWindowBytes, false));
  const uint64_t label_bytes = record_bytes_ - kPixelBytes;
  const uint64_t records = set_->size_bytes(file) / record_bytes_;
  const unsigned most = listing->classes.empty() ? (label_bytes == 1 ? 10 : 100)
                                                 : static_cast<unsigned>(listing->classes.size());
  std::string_view stem = name_of(set_->path(file));
  stem = stem.substr(0, stem.rfind('.'));
  for (uint64_t record = 0; record < records; ++record) {
    const uint64_t start = record * record_bytes_;
    SPK_ASSIGN(const ByteSpan labels, reader->at(start, label_bytes));
    if (labels.size() != label_bytes) return internal_error("a CIFAR file shrank");
    const unsigned label = labels[label_bytes - 1];
    if (label >= most || (label_bytes == 2 && labels[0] >= kMostCoarse)) {
      return damaged(str_cat("record ", record, " has label ", label, "; there are ", most,
                             " classes: this is no CIFAR-", label_bytes == 1 ? 10 : 100, " file"))
          .at_path(escape_bytes(set_->path(file)))
          .at_offset(start);
    }
    SampleEntry entry;
    entry.key = str_cat(stem, "/", numbered_key(record));
    entry.ordinal = (*ordinal)++;
    entry.split = has_splits_ && listing->splits.size() == 2 && is_test_name(stem) ? 1 : 0;
    entry.mtime_ns = set_->entry_mtime_ns(file);
    entry.size_bytes = kPixelBytes;
    entry.pixels = {kSide, kSide, 3};
    entry.path = encode_pieces({Piece::of_file(file, start + label_bytes, kPixelBytes)});
    if (listing->label_kind == LabelKind::kInt) entry.int_labels = {label};
    if (!listing->numbers.empty()) entry.numbers = {NumericValues{labels[0]}};
    SPK_TRY(sink(std::move(entry)));
  }
  return {};
}

Result<Listing> CifarSource::list(const PackOptions& options, const Sink& sink) {
  if (options.labels == LabelMode::kFloat) {
    return invalid_argument("--labels float does not go with CIFAR, whose labels are classes");
  }
  Listing listing;
  listing.source_kind = "cifar";
  listing.form = record_bytes_ == kRecordBytes10 ? "10" : "100";
  listing.ordered = true;
  listing.blobs = {{"image", BlobContent::kPixels}};
  listing.decisions.emplace_back("pixels", "uint8 hwc rgb");
  listing.splits = {""};
  if (has_splits_ && options.splits == SplitMode::kAuto) {
    const bool first_is_test = is_test_name(name_of(set_->path(0)));
    const bool last_is_test = is_test_name(name_of(set_->path(set_->count() - 1)));
    listing.splits = first_is_test  ? std::vector<std::string>{"test"}
                     : last_is_test ? std::vector<std::string>{"train", "test"}
                                    : std::vector<std::string>{"train"};
  }
  if (options.labels != LabelMode::kNone) {
    listing.label_kind = LabelKind::kInt;
    SPK_TRY(read_class_names(&listing));
    if (record_bytes_ == kRecordBytes100) {
      listing.decisions.emplace_back("label", "fine");
      listing.numbers = {{"coarse", FieldKind::kInt64, 1}};
    }
  }
  uint64_t ordinal = 0;
  for (uint32_t file = 0; file < set_->count(); ++file) {
    SPK_TRY(list_file(file, &listing, &ordinal, sink));
  }
  return listing;
}

Result<std::unique_ptr<SampleHandle>> CifarSource::open(const SampleEntry& entry) const {
  SPK_ASSIGN(auto handle, set_->open_sample(entry));
  return interleave_planes(std::move(handle), entry.pixels, false);
}

SourceKind cifar_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    if (look.is_folder) return !batches_of(look).empty();
    return look.files.size() == 1 && is_batch_name(name_of(look.files[0])) && !look.head.empty() &&
           look.head[0] < 100;
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    std::vector<std::string> batches = batches_of(look);
    if (batches.empty()) {
      return Status(Code::kNotThisFormat,
                    "no CIFAR: it holds neither data_batch_1.bin nor train.bin")
          .at_path(escape_bytes(look.path));
    }
    return CifarSource::open_files(std::move(batches), std::move(spool), look.is_folder);
  };
  return {"cifar", "CIFAR-10 or CIFAR-100 in binary form", recognises, open};
}

}  // namespace spk
