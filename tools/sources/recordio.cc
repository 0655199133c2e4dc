// MXNet RecordIO files of pictures (im2rec): .rec, with or without .idx.
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "sources/container_source.h"
#include "sources/label_values.h"
#include "sources/list_cell.h"
#include "sources/recordio_reader.h"
#include "sources/shard_names.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

// The index beside a file, "KEY TAB OFFSET" lines: only compared with the records that are found,
// for it may be of another file, or broken.
class RecordIndex {
 public:
  static RecordIndex of(const std::string& rec_path) {
    RecordIndex index;
    const size_t dot = rec_path.rfind('.');
    if (dot == std::string::npos || rec_path.find('/', dot) != std::string::npos) return index;
    index.path_ = rec_path.substr(0, dot) + ".idx";
    auto file = File::open_read(index.path_);
    if (file.ok()) index.reader_ = read_plain(std::move(*file), kDataWindowBytes);
    return index;
  }

  // Heeds the next record.
  void compare(uint64_t offset) {
    if (reader_ == nullptr || !wrong_.empty()) return;
    std::string line;
    if (!next_line(&line)) {
      wrong_ = "it has fewer lines than the file has records";
      return;
    }
    const size_t tab = line.find('\t');
    uint64_t said = 0;
    const char* const end = line.data() + line.size();
    const char* const begin = tab == line.npos ? end : line.data() + tab + 1;
    const auto [at, error] = std::from_chars(begin, end, said);
    if (error != std::errc() || at != end) {
      wrong_ = str_cat("line ", lines_, " is no KEY TAB OFFSET");
    } else if (said != offset) {
      wrong_ = str_cat("line ", lines_, " says offset ", said, ", the record is at ", offset);
    }
  }
  void finish(Warnings* warnings) {
    std::string line;
    if (reader_ != nullptr && wrong_.empty() && next_line(&line)) {
      wrong_ = "it has more lines than the file has records";
    }
    if (wrong_.empty()) return;
    warnings->add("an index disagrees with its records, which were taken as they are",
                  str_cat(escape_bytes(path_), ": ", wrong_));
  }

 private:
  static constexpr size_t kMostLineBytes = 256;
  // False at the end. A longer line is cut, and then wrong.
  bool next_line(std::string* line) {
    const Result<ByteSpan> bytes = reader_->at(at_, kMostLineBytes);
    if (!bytes.ok() || bytes->empty()) return false;
    const std::string_view text = as_text(*bytes);
    const size_t end = std::min(text.find('\n'), text.size());
    *line = text.substr(0, end);
    at_ += end + 1;
    ++lines_;
    return true;
  }

  std::string path_;
  std::unique_ptr<ForwardReader> reader_;
  uint64_t at_ = 0;
  uint64_t lines_ = 0;
  std::string wrong_;
};

// The list beside a file, "ID TAB LABELS TAB NAME" lines in the order of the records: names as
// keys, where --features asks for them.
class RecordList {
 public:
  static Result<RecordList> of(const std::string& rec_path) {
    RecordList list;
    list.path_ = rec_path.substr(0, rec_path.rfind('.')) + ".lst";
    SPK_ASSIGN(File file, File::open_read(list.path_));
    list.reader_ = read_plain(std::move(file), kDataWindowBytes);
    return list;
  }

  // Of the next record, which has this id.
  Result<std::string> next(uint64_t id) {
    SPK_ASSIGN(const ByteSpan bytes, reader_->at(at_, kMostLineBytes));
    const std::string_view text = as_text(bytes);
    const std::string_view line = text.substr(0, text.find('\n'));
    const size_t first = line.find('\t');
    const size_t last = line.rfind('\t');
    ++lines_;
    if (first == line.npos || line.size() == kMostLineBytes ||
        line.substr(0, first) != str_cat(id)) {
      return damaged(str_cat("line ", lines_, " is not that of record ", id))
          .at_path(escape_bytes(path_))
          .at_offset(at_);
    }
    at_ += line.size() + 1;
    return key_of_list_cell(line.substr(last + 1));
  }

 private:
  static constexpr size_t kMostLineBytes = 65536;
  std::string path_;
  std::unique_ptr<ForwardReader> reader_;
  uint64_t at_ = 0;
  uint64_t lines_ = 0;
};

class RecordIoSource : public ContainerSource {
 public:
  explicit RecordIoSource(FoundSet found) : ContainerSource(std::move(found.files), found.others) {}
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;

 private:
  SampleEntry entry_of(const RecordIoRecord& record, uint32_t file, const PackOptions& options,
                       LabelValues* labels) const;
};

SampleEntry RecordIoSource::entry_of(const RecordIoRecord& record, uint32_t file,
                                     const PackOptions& options, LabelValues* labels) const {
  SampleEntry entry;
  entry.mtime_ns = files().entry_mtime_ns(file);
  if (!record.has_header) {
    entry.key = str_cat("record at ", record.offset);
    entry.reject = str_cat("no picture: a record of ", record.bytes, " bytes, without a header");
    return entry;
  }
  entry.key = str_cat(record.id);
  entry.size_bytes = record.bytes - record.picture_offset;
  entry.path = encode_pieces(record.picture());
  if (entry.size_bytes == 0) {
    entry.reject = "no picture (metadata record)";
  } else if (options.labels != LabelMode::kNone) {
    entry.reject = labels->set_floats({record.labels.begin(), record.labels.end()}, &entry);
  }
  return entry;
}

Result<Listing> RecordIoSource::list(const PackOptions& options, const Sink& sink) {
  Listing listing;
  listing.source_kind = "recordio";
  listing.ordered = true;
  if (options.salvage) listing.decisions.emplace_back("salvage", "yes");
  const bool listed_keys = options.features == "key=lst";
  if (listed_keys) listing.decisions.emplace_back("features", options.features);
  if (others() != 0) listing.ignored["not a RecordIO file"] = others();
  const ShardSplits splits = splits_of_files(paths(), options.splits);
  listing.splits = splits.names;
  LabelValues labels(options.labels);
  uint64_t ordinal = 0;
  for (uint32_t file = 0; file < files().count(); ++file) {
    SPK_ASSIGN(const auto reader, files().read(file, kHeaderWindowBytes, options.salvage));
    RecordIoReader records(reader.get(), file);
    RecordIndex index = RecordIndex::of(files().path(file));
    std::optional<RecordList> names;
    if (listed_keys) {
      SPK_ASSIGN(names, RecordList::of(files().path(file)));
    }
    for (;;) {
      RecordIoRecord record;
      const Result<bool> more = records.next(&record);
      if (!more.ok()) {
        if (!options.salvage || more.status().code() != Code::kDamaged) return more.status();
        listing.warnings.add("a file is not whole; the records before were taken",
                             more.status().to_string());
        break;
      }
      if (!*more) break;
      index.compare(record.offset);
      SampleEntry entry = entry_of(record, file, options, &labels);
      if (names && record.has_header) {
        SPK_ASSIGN(entry.key, names->next(record.id));
      }
      entry.split = splits.of_file[file];
      entry.ordinal = ordinal++;
      SPK_TRY(sink(std::move(entry)));
    }
    index.finish(&listing.warnings);
    SPK_TRY(reader->finish());
  }
  labels.finish(&listing);
  return listing;
}

}  // namespace

SourceKind recordio_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    return holds_container(look, false, RecordIoReader::is_recordio);
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    SPK_ASSIGN(FoundSet found,
               open_containers(look,
                               {RecordIoReader::is_recordio, "an MXNet RecordIO file",
                                "a folder without RecordIO files"},
                               std::move(spool)));
    return std::unique_ptr<Source>(std::make_unique<RecordIoSource>(std::move(found)));
  };
  return {"recordio", "MXNet RecordIO files", recognises, open};
}

}  // namespace spk
