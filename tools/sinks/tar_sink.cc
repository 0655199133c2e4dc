// tar shards. Layout "webdataset": the members of a sample share a name up to the first dot;
// "folders": one picture a sample, under its key, as a folder would have it.
//
// Deterministic: names, times and owners are fixed. Beside each shard lies the index that DALI
// reads (NAME.idx, "v1.2"), beside all of them the list that wids reads (index.json).
#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "sinks/folder_names.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"
#include "sinks/sink.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr uint64_t kBlockBytes = 512;
constexpr uint64_t kRecordBytes = 20 * kBlockBytes;  // a tar file is a whole number of these
constexpr uint64_t kMostOctalBytes = (uint64_t{1} << 33) - 1;
constexpr size_t kNameBytes = 100;
constexpr size_t kPrefixBytes = 155;

struct Header {
  std::array<char, kBlockBytes> bytes = {};
  void text(size_t at, std::string_view value) {
    std::copy(value.begin(), value.end(), &bytes[at]);
  }
  // `width` digits and a NUL.
  void octal(size_t at, size_t width, uint64_t value) {
    for (size_t i = width; i-- > 0; value >>= 3) {
      bytes[at + i] = static_cast<char>('0' + (value & 7));
    }
  }
  void close() {
    std::fill_n(&bytes[148], 8, ' ');
    uint64_t sum = 0;
    for (const char c : bytes) sum += static_cast<unsigned char>(c);
    octal(148, 6, sum);
    bytes[154] = 0;
  }
};

std::string_view as_text_view(const Header& header) {
  return {header.bytes.data(), header.bytes.size()};
}

Header make_header(std::string_view prefix, std::string_view name, uint64_t size, char type) {
  Header header;
  header.text(0, name);
  header.octal(100, 7, 0444);
  header.octal(108, 7, 0);
  header.octal(116, 7, 0);
  header.octal(124, 11, size);
  header.octal(136, 11, 0);
  header.bytes[156] = type;
  header.text(257, std::string_view("ustar\0"
                                    "00",
                                    8));
  header.octal(329, 7, 0);
  header.octal(337, 7, 0);
  header.text(345, prefix);
  header.close();
  return header;
}

// "23 path=some/long/name\n": the number counts itself.
std::string pax_record(std::string_view name, std::string_view value) {
  const size_t rest = name.size() + value.size() + 3;
  size_t length = rest + 1;
  while (str_cat(length).size() + rest != length) ++length;
  return str_cat(length, " ", name, "=", value, "\n");
}

class TarFile : public FileSink {
 public:
  TarFile(const Pack& pack, const KnownFields& known, bool pixels, const FolderNames* names,
          bool folders, OutputFile out, OutputFile index)
      : pack_(pack),
        known_(known),
        pixels_(pixels),
        names_(names),
        folders_(folders),
        out_(std::move(out)),
        index_(std::move(index)) {}

  Status add(const ExportSample& sample) override {
    const Schema& schema = pack_.schema();
    const StoredSample& stored = *sample.stored;
    entries_.clear();
    const ExportBlob& image = sample.blobs[known_.image];
    if (folders_) {
      if (!image.present) return unsupported("has no picture, which this layout is made of");
      SPK_TRY(add_blob(names_->path_of(sample.number, stored.key), "image", image));
      return close_sample();
    }
    std::string base = names_->path_of(sample.number, base_of(stored.key));
    dots_of_last_component(&base);
    if (image.present) SPK_TRY(add_image(base, stored, image));
    for (size_t field = 0; field < schema.fields.size(); ++field) {
      if (field == known_.image || !sample.blobs[field].present) continue;
      const std::string name = name_part(schema.fields[field].name);
      SPK_TRY(add_blob(str_cat(base, ".", name), name, sample.blobs[field]));
    }
    std::vector<uint16_t> numbers = known_.numbers;
    if (const auto label = single_label(schema, stored, known_.label)) {
      SPK_TRY(add_text(base, "cls", str_cat(*label)));
    } else if (known_.label != kNoField) {
      numbers.insert(numbers.begin(), known_.label);
    }
    // A reader finds `base` by itself; where that is not the key, it is told.
    const bool keyed = base != stored.key;
    const std::string json =
        numbers_as_json(schema, stored, numbers, keyed ? &stored.key : nullptr);
    if (!json.empty()) {
      const bool taken = schema.find("json") != kNoField;
      SPK_TRY(add_text(base, taken ? "numbers.json" : "json", json));
    }
    return close_sample();
  }

  Result<ExportedFile> finish() override {
    SPK_TRY(out_.append_zeros(2 * kBlockBytes));
    SPK_TRY(out_.append_zeros((kRecordBytes - out_.position() % kRecordBytes) % kRecordBytes));
    ExportedFile file;
    file.samples = samples_;
    file.bytes = out_.position();
    SPK_TRY(out_.finish());
    SPK_TRY(index_.append(str_cat("v1.2 ", samples_, "\n")));
    SPK_TRY(index_.append(lines_));
    SPK_TRY(index_.finish());
    return file;
  }

  static std::string base_of(std::string_view key);

 private:
  static void dots_of_last_component(std::string* base) {
    const auto begin = static_cast<std::ptrdiff_t>(base->rfind('/') + 1);
    std::replace(base->begin() + begin, base->end(), '.', '_');
  }
  Status add_image(const std::string& base, const StoredSample& stored, const ExportBlob& image);
  Status add_blob(const std::string& name, std::string_view field, const ExportBlob& blob) {
    SPK_TRY(begin_member(name, field, blob.bytes));
    SPK_TRY(blob.each_piece([this](ByteSpan piece) { return out_.append(piece); }));
    return pad();
  }
  Status add_text(const std::string& base, const char* field, const std::string& text) {
    SPK_TRY(begin_member(str_cat(base, ".", field), field, text.size()));
    SPK_TRY(out_.append(text));
    return pad();
  }
  Status pad() {
    return out_.append_zeros((kBlockBytes - out_.position() % kBlockBytes) % kBlockBytes);
  }
  Status begin_member(const std::string& name, std::string_view field, uint64_t bytes);
  Status close_sample() {
    ++samples_;
    lines_ += entries_ + "\n";
    return {};
  }

  const Pack& pack_;
  const KnownFields& known_;
  const bool pixels_;
  const FolderNames* names_;
  const bool folders_;
  OutputFile out_;
  OutputFile index_;
  uint64_t samples_ = 0;
  std::string entries_;  // of the sample, for the index
  std::string lines_;
};

// A key without its suffix, and without further dots in its last component, where a reader would
// end the key.
std::string TarFile::base_of(std::string_view key) {
  const std::string_view suffix = suffix_of_key(key);
  std::string base(suffix.empty() ? key : key.substr(0, key.size() - suffix.size() - 1));
  dots_of_last_component(&base);
  return base;
}

Status TarFile::add_image(const std::string& base, const StoredSample& stored,
                          const ExportBlob& image) {
  if (pixels_) {
    SPK_ASSIGN(const std::string head, npy_head(known_, stored));
    SPK_TRY(begin_member(base + ".npy", "npy", head.size() + image.bytes));
    SPK_TRY(out_.append(head));
    SPK_TRY(image.each_piece([this](ByteSpan piece) { return out_.append(piece); }));
    return pad();
  }
  std::string suffix(suffix_of_key(stored.key));
  if (suffix.empty()) {
    SPK_ASSIGN(const std::vector<uint8_t> head, head_of(image, 16));
    suffix = suffix_of_content(head);
  }
  if (pack_.schema().find(suffix) != kNoField) {
    return unsupported(str_cat("its picture would be the member .", suffix,
                               ", which the pack's field of that name is already"));
  }
  return add_blob(str_cat(base, ".", suffix), suffix, image);
}

Status TarFile::begin_member(const std::string& name, std::string_view field, uint64_t bytes) {
  // A long name is split at a slash where that is enough; otherwise a PAX record says it.
  std::string_view prefix;
  std::string_view last = name;
  bool fits = name.size() <= kNameBytes;
  if (!fits && name.size() <= kPrefixBytes + 1 + kNameBytes) {
    const size_t slash = name.find('/', name.size() - kNameBytes - 1);
    if (slash != name.npos && slash != 0 && slash <= kPrefixBytes) {
      prefix = std::string_view(name).substr(0, slash);
      last = std::string_view(name).substr(slash + 1);
      fits = true;
    }
  }
  std::string pax;
  if (!fits) {
    pax += pax_record("path", name);
    last = std::string_view(name).substr(0, kNameBytes);
  }
  if (bytes > kMostOctalBytes) pax += pax_record("size", str_cat(bytes));
  if (!pax.empty()) {
    SPK_TRY(out_.append(as_text_view(make_header("", "././@PaxHeader", pax.size(), 'x'))));
    SPK_TRY(out_.append(pax));
    SPK_TRY(pad());
  }
  const uint64_t told = bytes > kMostOctalBytes ? 0 : bytes;
  SPK_TRY(out_.append(as_text_view(make_header(prefix, last, told, '0'))));
  // The index separates by blanks, so that a name must have none.
  const auto plain = [](std::string_view text) {
    std::string one(text);
    std::replace_if(
        one.begin(), one.end(), [](char c) { return (c >= 0 && c <= ' ') || c == 0x7f; }, '_');
    return one;
  };
  entries_ += str_cat(entries_.empty() ? "" : " ", plain(field), " ", out_.position(), " ", bytes,
                      " ", plain(name));
  return {};
}

class TarSink : public Sink {
 public:
  TarSink(const Pack& pack, std::string prefix, bool folders)
      : pack_(pack),
        known_(pack.schema()),
        pixels_(holds_pixels(pack)),
        prefix_(std::move(prefix)),
        folders_(folders) {}

  Status choose_names() {
    for (uint64_t sample = 0; sample < pack_.sample_count(); ++sample) {
      SPK_ASSIGN(const std::string name, name_of(sample));
      names_.add(sample, name);
    }
    return names_.finish([this](uint64_t sample) { return name_of(sample); });
  }

  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    SPK_ASSIGN(OutputFile out, OutputFile::create(directory, file_name(file.number)));
    SPK_ASSIGN(OutputFile index, OutputFile::create(directory, str_cat(stem(file.number), ".idx")));
    return std::unique_ptr<FileSink>(std::make_unique<TarFile>(
        pack_, known_, pixels_, &names_, folders_, std::move(out), std::move(index)));
  }

  Result<ReadBack> read_back() const override {
    if (pixels_ || folders_) return Sink::read_back();
    ReadBack how;
    how.options.source_kind = "webdataset";
    how.options.features = "key=json.key";
    const std::vector<Field>& fields = pack_.schema().fields;
    if (known_.label != kNoField) {
      const Field& label = fields[known_.label];
      const bool single = label.kind == FieldKind::kInt64 && label.length == 1;
      how.options.features += single ? ",label=cls" : ",label=json.label";
    }
    for (size_t field = 0; field < fields.size(); ++field) {
      const std::string& name = fields[field].name;
      const bool plain = is_feature_name(name) && name_part(name) == name;
      if (fields[field].kind == FieldKind::kBlob && field != known_.image && plain) {
        how.options.features += str_cat(",", name, "=", to_lower(name));
      }
    }
    how.has_keys = true;
    return how;
  }

  Status finish(const Directory& directory, std::span<const ExportedFile> files) const override {
    JsonWriter json(1);
    json.begin_object();
    json.member("__kind__", "wids-shard-index-v1").member("wids_version", 1);
    json.member_bytes("name", prefix_);
    json.key("shardlist").begin_array();
    for (size_t file = 0; file < files.size(); ++file) {
      json.begin_object().member_bytes("url", file_name(file));
      json.member("nsamples", files[file].samples).member("filesize", files[file].bytes);
      json.end_object();
    }
    json.end_array().end_object();
    return write_output_file(directory, "index.json", as_bytes(json.text() + "\n"));
  }

 private:
  Result<std::string> name_of(uint64_t sample) const {
    SPK_ASSIGN(std::string key, pack_.key(sample));
    return folders_ ? std::move(key) : TarFile::base_of(key);
  }
  std::string stem(uint64_t file) const {
    const std::string digits = str_cat(file);
    return str_cat(prefix_, "-", std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'),
                   digits);
  }
  std::string file_name(uint64_t file) const { return stem(file) + ".tar"; }

  const Pack& pack_;
  const KnownFields known_;
  const bool pixels_;
  const std::string prefix_;
  const bool folders_;
  FolderNames names_;
};

Result<std::unique_ptr<Sink>> open_tar(const ExportOptions& options, const Pack& pack) {
  const bool folders = options.layout == "folders";
  if (!folders && !options.layout.empty() && options.layout != "webdataset") {
    return invalid_argument(str_cat("tar has no layout '", escape_bytes(options.layout),
                                    "'; there are webdataset and folders"))
        .with_hint("choose with --layout");
  }
  const KnownFields known(pack.schema());
  if (known.image == kNoField) return unsupported("the pack has no field of bytes");
  size_t blobs = 0;
  for (const Field& field : pack.schema().fields) blobs += field.kind == FieldKind::kBlob ? 1 : 0;
  if (folders && blobs != 1) {
    return unsupported(
               str_cat("the pack has ", blobs, " fields of bytes, layout folders takes one"))
        .with_hint("leave --layout off");
  }
  if (folders && holds_pixels(pack)) {
    return unsupported("the pack holds pixels, layout folders takes encoded pictures")
        .with_hint("leave --layout off");
  }
  auto sink = std::make_unique<TarSink>(pack, options.prefix, folders);
  SPK_TRY(sink->choose_names());
  return std::unique_ptr<Sink>(std::move(sink));
}

}  // namespace

SinkKind tar_sink_kind() {
  return {"tar", "tar shards (WebDataset, with indexes for wids and DALI)", open_tar};
}

}  // namespace spk
