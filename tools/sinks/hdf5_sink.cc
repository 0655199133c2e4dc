// One HDF5 file. Layout "vlen": `images`, each row the bytes of a picture; "flat": all bytes one
// behind the other in `bytes`, and in `offsets` where each begins and the last ends, which reads
// much faster. A pack of pixels of one size: `images`, N x height x width x channels. Beside them
// `labels`, `keys` and `class_names` (also as an attribute of the labels, where they are not many).
// Layout "lbann", for such pixels: a group a sample with `image` and `label`, and a sample list.
//
// No times are kept, so that equal samples give equal bytes.
#include "sinks/sink.h"

#if SPK_HAVE_HDF5
#include <hdf5.h>
#endif

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "sinks/folder_names.h"
#include "sinks/output_file.h"
#include "sinks/sample_text.h"

namespace spk {

namespace {

#if SPK_HAVE_HDF5

constexpr uint64_t kMostRowBytes = uint64_t{1} << 30;  // a row is held in memory
constexpr size_t kRowBufferBytes = 4096;
constexpr size_t kRowsHeld = 4096;              // keys, borders and labels that wait to be written
constexpr size_t kMostNamesInAttribute = 2048;  // of 16 bytes each; 64 KiB are the most

// An identifier of the library, closed by its own function.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close how) : id_(id), close_(how) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    (void)close();
    id_ = std::exchange(other.id_, -1);
    close_ = other.close_;
    return *this;
  }
  ~Handle() { (void)close(); }
  bool close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }
  void abandon() { id_ = -1; }
  bool ok() const { return id_ >= 0; }
  hid_t id() const { return id_; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

enum class Form { kRows, kFlat, kDense, kGroups };

// The group of a sample, by its place in the file.
std::string group_name(uint64_t place) {
  const std::string digits = str_cat(place);
  return str_cat("samples/", std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0'), digits);
}

class Hdf5Output : public FileSink {
 public:
  Hdf5Output(const Pack& pack, const KnownFields& known, Form form, const Directory& directory,
             std::string name)
      : pack_(pack),
        known_(known),
        form_(form),
        directory_(directory),
        name_(std::move(name)),
        temporary_name_(str_cat(kTemporaryPrefix, unique_token(), ".tmp")) {}
  ~Hdf5Output() override {
    if (done_) return;
    for (Handle* const handle : {&images_, &offset_rows_, &key_rows_, &label_rows_, &file_}) {
      if (broken_) handle->abandon();
      *handle = Handle();
    }
    (void)directory_.unlink(temporary_name_);
  }

  Status open(std::span<const uint64_t> samples, const PixelShape& shape) {
    // Otherwise it would, at the end of the program, go on with a file that it could not write.
    (void)H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // errors are ours to tell
    // For rows of any length the library clears its buffer, 1 MiB otherwise, at each call.
    transfer_ = Handle(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
    (void)H5Pset_buffer(transfer_.id(), kRowBufferBytes, nullptr, nullptr);
    errno = 0;
    Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
    (void)H5Pset_file_locking(access.id(), false, true);  // many file systems have no locks
#endif
    const std::string path = directory_.path_of(temporary_name_);
    file_ = Handle(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()), H5Fclose);
    if (!file_.ok()) return failed("cannot make the file");
    shape_ = shape;
    SPK_TRY(make_images(samples, shape));
    return make_columns(samples.size());
  }

  Status add(const ExportSample& sample) override {
    const ExportBlob& image = sample.blobs[known_.image];
    if (!image.present) return unsupported("has no picture");
    if (keys_.size() == kRowsHeld) SPK_TRY(write_columns());
    SPK_TRY(take_labels(*sample.stored));
    if (sample.stored->key.find('\0') != std::string::npos) {
      return unsupported("has a NUL in its key, which ends a text of HDF5");
    }
    keys_.push_back(sample.stored->key);
    offsets_.push_back(end_);
    ++samples_;
    switch (form_) {
      case Form::kFlat:
        SPK_TRY(image.each_piece([this](ByteSpan p) { return write_flat(p); }));
        break;
      case Form::kDense: {
        SPK_ASSIGN(const std::vector<uint8_t> bytes, collect(image, kMostRowBytes));
        SPK_TRY(write_pixels(bytes));
        break;
      }
      case Form::kGroups: {
        SPK_ASSIGN(const std::vector<uint8_t> bytes, collect(image, kMostRowBytes));
        SPK_TRY(write_group(bytes));
        break;
      }
      case Form::kRows: {
        SPK_ASSIGN(const std::vector<uint8_t> bytes, collect(image, kMostRowBytes));
        SPK_TRY(write_row(bytes));
        break;
      }
    }
    return {};
  }

  Result<ExportedFile> finish() override {
    errno = 0;
    offsets_.push_back(end_);
    SPK_TRY(write_columns());
    if (label_rows_.ok()) SPK_TRY(name_labels());
    if (!pack_.schema().classes.empty()) SPK_TRY(write_class_names());
    for (Handle* const handle : {&images_, &offset_rows_, &key_rows_, &label_rows_, &file_}) {
      if (!handle->close()) return failed("cannot write");
    }
    SPK_ASSIGN(const File file, File::open_read(directory_, temporary_name_));
    SPK_TRY(file.sync());
    SPK_ASSIGN(const EntryInfo info, file.info());
    SPK_TRY(directory_.rename(temporary_name_, name_));
    done_ = true;
    return ExportedFile{samples_, info.size_bytes, {}};
  }

 private:
  // The library keeps errno as the system call left it, where one failed.
  Status failed(const char* what) {
    // What could not be written is still in the library's memory; closing would try again, and 1.10
    // does not survive that.
    broken_ = true;
    const std::string path = directory_.path_of(name_);
    if (errno != 0) return io_error(errno, what, path);
    return internal_error(str_cat(what, ": the HDF5 library failed")).at_path(path);
  }

  // A dataset in one piece, which is not filled beforehand.
  Status make(const char* name, hid_t type, const std::vector<hsize_t>& sizes, Handle* into) {
    const Handle space(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
                       H5Sclose);
    const Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    const Handle link(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    if (!space.ok() || !how.ok() || H5Pset_obj_track_times(how.id(), false) < 0 ||
        H5Pset_create_intermediate_group(link.id(), 1) < 0) {
      return failed("cannot make a dataset");
    }
    *into = Handle(H5Dcreate2(file_.id(), name, type, space.id(), link.id(), how.id(), H5P_DEFAULT),
                   H5Dclose);
    return into->ok() ? Status() : failed("cannot make a dataset");
  }

  Status make_images(std::span<const uint64_t> samples, const PixelShape& shape) {
    const auto count = static_cast<hsize_t>(samples.size());
    switch (form_) {
      case Form::kGroups: return {};  // as they come
      case Form::kDense:
        return make("images", H5T_STD_U8LE, {count, shape.height, shape.width, shape.channels},
                    &images_);
      case Form::kFlat: {
        uint64_t bytes = 0;
        for (const uint64_t sample : samples) {
          SPK_ASSIGN(const SampleLocation place, pack_.locate(sample, known_.image));
          bytes += place.bytes;
        }
        return make("bytes", H5T_STD_U8LE, {bytes}, &images_);
      }
      default: {
        row_type_ = Handle(H5Tvlen_create(H5T_STD_U8LE), H5Tclose);
        return make("images", row_type_.id(), {count}, &images_);
      }
    }
  }

  // What lies beside the pictures; written piece by piece.
  Status make_columns(uint64_t count) {
    if (form_ == Form::kFlat) {
      SPK_TRY(make("offsets", H5T_STD_U64LE, {count + 1}, &offset_rows_));
    }
    SPK_TRY(make("keys", text_type().id(), {count}, &key_rows_));
    if (known_.label == kNoField || form_ == Form::kGroups) return {};
    const uint32_t length = pack_.schema().fields[known_.label].length;
    std::vector<hsize_t> sizes = {count};
    if (length != 1) sizes.push_back(length);
    return make("labels", label_type(), sizes, &label_rows_);
  }

  Status write_columns() {
    if (form_ == Form::kFlat && !offsets_.empty()) {
      SPK_TRY(write_slab(offset_rows_, {rows_written_}, {offsets_.size()}, H5T_NATIVE_UINT64,
                         offsets_.data()));
    }
    if (!keys_.empty()) {
      const Handle type = text_type();
      const std::vector<const char*> texts = pointers(keys_);
      SPK_TRY(write_slab(key_rows_, {rows_written_}, {texts.size()}, type.id(), texts.data()));
      if (label_rows_.ok()) SPK_TRY(write_labels(label_rows_));
    }
    rows_written_ += keys_.size();
    keys_.clear();
    offsets_.clear();
    labels_.clear();
    return {};
  }

  Status write_slab(const Handle& dataset, const std::vector<hsize_t>& start,
                    const std::vector<hsize_t>& count, hid_t type, const void* values) {
    errno = 0;
    const Handle space(H5Dget_space(dataset.id()), H5Sclose);
    const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                        H5Sclose);
    if (!space.ok() || !memory.ok() ||
        H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                            nullptr) < 0 ||
        H5Dwrite(dataset.id(), type, memory.id(), space.id(), transfer_.id(), values) < 0) {
      return failed("cannot write");
    }
    return {};
  }
  Status write_flat(ByteSpan piece) {
    if (piece.empty()) return {};
    SPK_TRY(write_slab(images_, {end_}, {piece.size()}, H5T_NATIVE_UINT8, piece.data()));
    end_ += piece.size();
    return {};
  }
  Status write_row(const std::vector<uint8_t>& bytes) {
    const hvl_t row{bytes.size(), const_cast<uint8_t*>(bytes.data())};
    return write_slab(images_, {samples_ - 1}, {1}, row_type_.id(), &row);
  }
  Status write_pixels(const std::vector<uint8_t>& bytes) {
    const Handle space(H5Dget_space(images_.id()), H5Sclose);
    std::vector<hsize_t> count(4);
    H5Sget_simple_extent_dims(space.id(), count.data(), nullptr);
    count[0] = 1;
    return write_slab(images_, {samples_ - 1, 0, 0, 0}, count, H5T_NATIVE_UINT8, bytes.data());
  }

  Status take_labels(const StoredSample& stored) {
    if (known_.label == kNoField) return {};
    const StoredField& field = stored.fields[known_.label];
    if (!field.present) return unsupported("has no label, and HDF5 has no absent values");
    for (uint32_t i = 0; i < field.count; ++i) labels_.push_back(stored.numbers[field.first + i]);
    return {};
  }
  // A sample's own datasets.
  Status write_group(const std::vector<uint8_t>& bytes) {
    const std::string group = group_name(samples_ - 1);
    const std::vector<hsize_t> sizes = {shape_.height, shape_.width, shape_.channels};
    Handle image, label;
    SPK_TRY(make((group + "/image").c_str(), H5T_STD_U8LE, sizes, &image));
    SPK_TRY(write_slab(image, {0, 0, 0}, sizes, H5T_NATIVE_UINT8, bytes.data()));
    if (known_.label == kNoField) return {};
    const std::vector<hsize_t> count = {pack_.schema().fields[known_.label].length};
    SPK_TRY(make((group + "/label").c_str(), label_type(), count, &label));
    SPK_TRY(write_labels(label, {0}, count));
    labels_.clear();
    return {};
  }
  hid_t label_type() const {
    switch (pack_.schema().fields[known_.label].kind) {
      case FieldKind::kInt64: return H5T_STD_I64LE;
      case FieldKind::kFloat64: return H5T_IEEE_F64LE;
      default: return H5T_IEEE_F32LE;
    }
  }
  // Rows of all labels that are held.
  Status write_labels(const Handle& rows) {
    const uint32_t length = pack_.schema().fields[known_.label].length;
    std::vector<hsize_t> start = {rows_written_};
    std::vector<hsize_t> count = {keys_.size()};
    if (length != 1) {
      start.push_back(0);
      count.push_back(length);
    }
    return write_labels(rows, start, count);
  }
  Status write_labels(const Handle& rows, const std::vector<hsize_t>& start,
                      const std::vector<hsize_t>& count) {
    const Field& shape = pack_.schema().fields[known_.label];
    if (shape.kind != FieldKind::kFloat32) {
      const hid_t type = shape.kind == FieldKind::kInt64 ? H5T_NATIVE_INT64 : H5T_NATIVE_DOUBLE;
      return write_slab(rows, start, count, type, labels_.data());
    }
    std::vector<float> floats;
    for (const uint64_t bits : labels_) {
      floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    }
    return write_slab(rows, start, count, H5T_NATIVE_FLOAT, floats.data());
  }
  // The classes once more, where readers of labels look for them.
  Status name_labels() {
    const std::vector<std::string>& classes = pack_.schema().classes;
    if (classes.empty() || classes.size() > kMostNamesInAttribute) return {};
    const std::vector<const char*> texts = pointers(classes);
    const Handle type = text_type();
    const hsize_t count = texts.size();
    const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Handle attribute(H5Acreate2(label_rows_.id(), "class_names", type.id(), space.id(),
                                      H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
    if (!attribute.ok() || H5Awrite(attribute.id(), type.id(), texts.data()) < 0) {
      return failed("cannot write an attribute");
    }
    return {};
  }
  static Handle text_type() {
    Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(type.id(), H5T_VARIABLE);
    H5Tset_cset(type.id(), H5T_CSET_UTF8);
    return type;
  }
  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> found;
    for (const std::string& text : texts) found.push_back(text.c_str());
    return found;
  }
  Status write_class_names() {
    const Handle type = text_type();
    const std::vector<const char*> texts = pointers(pack_.schema().classes);
    Handle dataset;
    SPK_TRY(make("class_names", type.id(), {texts.size()}, &dataset));
    return write_slab(dataset, {0}, {texts.size()}, type.id(), texts.data());
  }

  const Pack& pack_;
  const KnownFields& known_;
  const Form form_;
  const Directory& directory_;
  const std::string name_;
  const std::string temporary_name_;
  PixelShape shape_;
  Handle file_;
  Handle transfer_;
  Handle row_type_;
  Handle images_;
  Handle offset_rows_;
  Handle key_rows_;
  Handle label_rows_;
  // Of the samples since the last ones that were written.
  std::vector<std::string> keys_;
  std::vector<uint64_t> labels_;  // bits
  std::vector<uint64_t> offsets_;
  uint64_t rows_written_ = 0;
  uint64_t samples_ = 0;
  uint64_t end_ = 0;  // of the flat bytes
  bool done_ = false;
  bool broken_ = false;
};

class Hdf5Sink : public Sink {
 public:
  Hdf5Sink(const Pack& pack, std::string prefix, Form form, PixelShape shape)
      : pack_(pack),
        known_(pack.schema()),
        prefix_(std::move(prefix)),
        form_(form),
        shape_(shape) {}
  bool single_file() const override { return true; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile& file) const override {
    auto one = std::make_unique<Hdf5Output>(pack_, known_, form_, directory, file_name());
    SPK_TRY(one->open(file.samples, shape_));
    return std::unique_ptr<FileSink>(std::move(one));
  }
  Result<ReadBack> read_back() const override {
    if (form_ == Form::kGroups) return Sink::read_back();
    ReadBack how;
    how.options.source_kind = "hdf5";
    how.file = file_name();
    how.options.images_name = form_ == Form::kFlat ? "bytes" : "images";
    if (form_ == Form::kDense) how.options.array_layout = "nhwc";
    how.has_keys = true;
    return how;
  }

  // LBANN's sample list: its form; samples in, samples out, files; the folder; and of each file its
  // name, the same two numbers, and its samples.
  Status finish(const Directory& directory, std::span<const ExportedFile> files) const override {
    if (form_ != Form::kGroups) return {};
    uint64_t samples = 0;
    for (const ExportedFile& file : files) samples += file.samples;
    SPK_ASSIGN(OutputFile list, OutputFile::create(directory, prefix_ + ".list"));
    SPK_TRY(list.append(str_cat("CONDUIT_HDF5_INCLUSION\n", samples, " 0 1\n./\n", file_name(), " ",
                                samples, " 0")));
    for (uint64_t place = 0; place < samples; ++place) {
      SPK_TRY(list.append(" " + group_name(place)));
    }
    SPK_TRY(list.append(std::string_view("\n")));
    return list.finish();
  }

 private:
  std::string file_name() const { return prefix_ + ".h5"; }
  const Pack& pack_;
  const KnownFields known_;
  const std::string prefix_;
  const Form form_;
  const PixelShape shape_;
};

Result<std::unique_ptr<Sink>> open_hdf5(const ExportOptions& options, const Pack& pack) {
  const KnownFields known(pack.schema());
  if (known.image == kNoField) return unsupported("the pack has no field of bytes");
  if (known.label != kNoField && pack.schema().fields[known.label].length == 0) {
    return unsupported(
        "the pack's samples have different numbers of labels, a dataset has rows of "
        "one length");
  }
  Form form = Form::kRows;
  const bool groups = options.layout == "lbann";
  if (groups) {
    form = Form::kGroups;
  } else if (options.layout == "flat") {
    form = Form::kFlat;
  } else if (!options.layout.empty() && options.layout != "vlen") {
    return invalid_argument(str_cat("hdf5 has no layout '", escape_bytes(options.layout),
                                    "'; there are vlen, flat and lbann"))
        .with_hint("choose with --layout");
  }
  PixelShape shape;
  if (holds_pixels(pack)) {
    if (!options.layout.empty() && !groups) {
      return invalid_argument("the pack holds pixels, which are written as one array")
          .with_hint("leave --layout off");
    }
    SPK_ASSIGN(shape, uniform_shape(pack, known));
    if (!groups) form = Form::kDense;
  } else if (groups) {
    return unsupported("LBANN reads arrays of one size, and the pack holds encoded pictures")
        .with_hint("`stripepack repack --resize ... --encode raw` makes pixels of them");
  }
  return std::unique_ptr<Sink>(std::make_unique<Hdf5Sink>(pack, options.prefix, form, shape));
}

#else

Result<std::unique_ptr<Sink>> open_hdf5(const ExportOptions&, const Pack&) {
  return unsupported("this build cannot write HDF5")
      .with_hint("build it with libhdf5-dev (-DSPK_WITH_HDF5=ON)");
}

#endif

}  // namespace

SinkKind hdf5_sink_kind() {
  return {"hdf5", "an HDF5 file: pictures of any length, or bytes and offsets", open_hdf5};
}

}  // namespace spk
