// An LMDB environment as Caffe's convert_imageset makes it: keys "00000042_KEY", values Datum.
//
// The file is written under a temporary name without locks (nobody else sees it), in transactions
// of a bounded size, and synced once at the end. Keys come in their order, so that pages get full.
#include "sinks/sink.h"

#if SPK_HAVE_LMDB
#include <lmdb.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/text.h"
#include "base/varint.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "sinks/folder_names.h"
#include "sinks/sample_text.h"
#include "sources/numbered_key.h"

namespace spk {

namespace {

#if SPK_HAVE_LMDB

constexpr char kDataName[] = "data.mdb";
constexpr uint64_t kMostTransactionBytes = uint64_t{32} << 20;
constexpr uint64_t kMostTransactionValues = 1024;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kProbeBytes = uint64_t{1} << 20;
constexpr uint64_t kMostValueBytes = std::numeric_limits<int32_t>::max();  // of a protobuf message
constexpr uint64_t kMostPlace = 99'999'999;  // keys of nine digits would not sort any more

// Tags of Datum.
constexpr uint32_t kChannels = 1, kHeight = 2, kWidth = 3, kData = 4, kLabel = 5, kEncoded = 7;

void append_number(std::string* out, uint32_t field, uint64_t value) {
  append_varint(*out, field << 3);
  append_varint(*out, value);
}

class LmdbFile : public FileSink {
 public:
  LmdbFile(const Pack& pack, const KnownFields& known, bool pixels, const Directory& directory)
      : pack_(pack),
        known_(known),
        pixels_(pixels),
        directory_(directory),
        temporary_name_(str_cat(kTemporaryPrefix, unique_token(), ".tmp")) {}
  ~LmdbFile() override {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
    if (env_ == nullptr) return;
    mdb_env_close(env_);
    (void)directory_.unlink(temporary_name_);
  }

  Status open() {
    SPK_TRY(check(mdb_env_create(&env_), "cannot make an environment"));
    // No lock file; syncing is done once, in finish().
    constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC | MDB_NOMETASYNC;
    const std::string path = directory_.path_of(temporary_name_);
    SPK_TRY(check(mdb_env_open(env_, path.c_str(), kFlags, 0666), "cannot make the file"));
    SPK_TRY(begin(0));
    return check(mdb_dbi_open(txn_, nullptr, 0, &dbi_), "cannot open the database");
  }

  Status add(const ExportSample& sample) override {
    const ExportBlob& image = sample.blobs[known_.image];
    if (!image.present) return unsupported("has no picture");
    if (sample.place > kMostPlace) {
      return unsupported(str_cat("is sample ", sample.place, " of the database, whose keys number ",
                                 "up to ", kMostPlace));
    }
    const std::string key = str_cat(numbered_key(sample.place), "_", sample.stored->key);
    const auto most_key_bytes = static_cast<size_t>(mdb_env_get_maxkeysize(env_));
    if (key.size() > most_key_bytes) {
      return unsupported(
          str_cat("makes a key of ", key.size(), " bytes, LMDB takes ", most_key_bytes));
    }
    PixelShape shape;  // zeros where it is not known
    SPK_TRY(take_shape(*sample.stored, image, &shape));
    const std::string head = make_head(shape, image);
    std::string tail;
    SPK_TRY(make_tail(*sample.stored, &tail));
    const uint64_t bytes = head.size() + image.bytes + tail.size();
    if (bytes > kMostValueBytes) {
      return unsupported(str_cat("has ", format_size(image.bytes), ", a Datum takes less than ",
                                 format_size(kMostValueBytes)));
    }
    SPK_TRY(make_room(bytes));
    MDB_val name{key.size(), const_cast<char*>(key.data())};
    MDB_val value{bytes, nullptr};
    SPK_TRY(check(mdb_put(txn_, dbi_, &name, &value, MDB_RESERVE | MDB_APPEND), "cannot add"));
    const MutableByteSpan into(static_cast<uint8_t*>(value.mv_data), bytes);
    std::memcpy(into.data(), head.data(), head.size());
    std::memcpy(into.data() + bytes - tail.size(), tail.data(), tail.size());
    SPK_TRY(fill(into.subspan(head.size(), image.bytes), image, shape));
    ++samples_;
    return {};
  }

  Result<ExportedFile> finish() override {
    SPK_TRY(commit());
    SPK_TRY(check(mdb_env_sync(env_, 1), "cannot sync"));
    mdb_env_close(env_);
    env_ = nullptr;
    SPK_ASSIGN(const EntryInfo info, directory_.stat(temporary_name_));
    SPK_TRY(directory_.rename(temporary_name_, kDataName));
    return ExportedFile{samples_, info.size_bytes, {}};
  }

 private:
  Status check(int result, const char* what) const {
    if (result == MDB_SUCCESS) return {};
    const std::string path = directory_.path_of(kDataName);
    if (result == EIO) return io_error(why_not_written(), what, path);
    if (result > 0) return io_error(result, what, path);
    return internal_error(str_cat(what, ": ", mdb_strerror(result))).at_path(path);
  }

  // The library says EIO where fewer bytes were written than it wanted to, as on a full disk. What
  // the system says of some more is the reason; EIO where these are written.
  int why_not_written() const {
    const auto file = File::open_write(directory_, temporary_name_);
    const auto bytes = file.ok() ? file->size() : Result<uint64_t>(file.status());
    if (!bytes.ok()) return EIO;
    const std::vector<uint8_t> more(kProbeBytes);
    const int reason = file->write_all(*bytes, more).os_errno();
    return reason == 0 ? EIO : reason;
  }

  // A transaction for values of BYTES and more: the map is made large enough beforehand, which can
  // only be done between transactions.
  Status begin(uint64_t bytes) {
    MDB_envinfo info;
    SPK_TRY(check(mdb_env_info(env_, &info), "cannot look at the map"));
    // A value may be alone in its pages; the tree above them and pages that are written again are
    // less than what the values take.
    const uint64_t wanted =
        (info.me_last_pgno + 1) * kPageBytes +
        2 * (std::max(bytes, kMostTransactionBytes) + kMostTransactionValues * 2 * kPageBytes) +
        (uint64_t{16} << 20);
    if (info.me_mapsize < wanted) {
      // A quarter more each time, so that it is not done for every transaction.
      SPK_TRY(check(mdb_env_set_mapsize(env_, round_up(wanted + wanted / 4, kPageBytes)),
                    "cannot map the file"));
    }
    SPK_TRY(check(mdb_txn_begin(env_, nullptr, 0, &txn_), "cannot begin a transaction"));
    txn_bytes_ = 0;
    txn_values_ = 0;
    return {};
  }
  Status commit() {
    if (txn_ == nullptr) return {};
    MDB_txn* const txn = txn_;
    txn_ = nullptr;  // it is gone, whatever comes
    return check(mdb_txn_commit(txn), "cannot write");
  }
  Status make_room(uint64_t bytes) {
    const bool full = txn_values_ == kMostTransactionValues ||
                      (txn_values_ != 0 && txn_bytes_ + bytes > kMostTransactionBytes);
    // The first transaction was begun for values of usual size.
    if (txn_ != nullptr && (full || bytes > kMostTransactionBytes)) SPK_TRY(commit());
    if (txn_ == nullptr) SPK_TRY(begin(bytes));
    txn_bytes_ += bytes;
    ++txn_values_;
    return {};
  }

  Status take_shape(const StoredSample& stored, const ExportBlob& image, PixelShape* shape) const {
    const auto found = pixel_shape(known_, stored);
    if (found.ok()) *shape = *found;
    if (!pixels_) return {};
    if (!found.ok()) return found.status();
    return check_pixels(*shape, image.bytes);
  }
  static std::string make_head(const PixelShape& shape, const ExportBlob& image) {
    std::string head;
    if (shape != PixelShape()) {
      append_number(&head, kChannels, shape.channels);
      append_number(&head, kHeight, shape.height);
      append_number(&head, kWidth, shape.width);
    }
    append_varint(head, kData << 3 | 2);
    append_varint(head, image.bytes);
    return head;
  }
  Status make_tail(const StoredSample& stored, std::string* tail) const {
    if (known_.label != kNoField && stored.fields[known_.label].present) {
      const auto label = single_label(pack_.schema(), stored, known_.label);
      if (!label) return unsupported("has not one label, which a Datum needs");
      if (*label != static_cast<int32_t>(*label)) {
        return unsupported(str_cat("has label ", *label, ", a Datum takes 32 bits"));
      }
      append_number(tail, kLabel, static_cast<uint64_t>(*label));
    }
    if (!pixels_) append_number(tail, kEncoded, 1);
    return {};
  }
  Status fill(MutableByteSpan data, const ExportBlob& image, const PixelShape& shape) const {
    if (pixels_) {
      SPK_ASSIGN(const std::vector<uint8_t> pixels, collect(image, kMostValueBytes));
      to_planes(pixels, shape.channels, shape.channels == 3, data);
      return {};
    }
    uint64_t at = 0;
    return image.each_piece([&](ByteSpan piece) -> Status {
      if (piece.size() > data.size() - at) return internal_error("a blob grew");
      std::memcpy(data.data() + at, piece.data(), piece.size());
      at += piece.size();
      return {};
    });
  }

  const Pack& pack_;
  const KnownFields& known_;
  const bool pixels_;
  const Directory& directory_;
  const std::string temporary_name_;
  MDB_env* env_ = nullptr;
  MDB_txn* txn_ = nullptr;
  MDB_dbi dbi_ = 0;
  uint64_t txn_bytes_ = 0;
  uint64_t txn_values_ = 0;
  uint64_t samples_ = 0;
};

class LmdbSink : public Sink {
 public:
  explicit LmdbSink(const Pack& pack)
      : pack_(pack), known_(pack.schema()), pixels_(holds_pixels(pack)) {}
  bool single_file() const override { return true; }
  Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                          const ExportFile&) const override {
    auto file = std::make_unique<LmdbFile>(pack_, known_, pixels_, directory);
    SPK_TRY(file->open());
    return std::unique_ptr<FileSink>(std::move(file));
  }
  Result<ReadBack> read_back() const override {
    ReadBack how;
    how.options.source_kind = "lmdb";
    how.options.features = "key=name";
    how.has_keys = true;
    return how;
  }

 private:
  const Pack& pack_;
  const KnownFields known_;
  const bool pixels_;
};

Result<std::unique_ptr<Sink>> open_lmdb(const ExportOptions&, const Pack& pack) {
  const KnownFields known(pack.schema());
  if (known.image == kNoField) return unsupported("the pack has no field of bytes");
  if (known.label != kNoField) {
    const Field& label = pack.schema().fields[known.label];
    if (label.kind != FieldKind::kInt64 || label.length != 1) {
      return unsupported("the pack's labels are not one whole number a sample, as a Datum has it");
    }
  }
  return std::unique_ptr<Sink>(std::make_unique<LmdbSink>(pack));
}

#else

Result<std::unique_ptr<Sink>> open_lmdb(const ExportOptions&, const Pack&) {
  return unsupported("this build cannot write LMDB")
      .with_hint("build it with liblmdb-dev (-DSPK_WITH_LMDB=ON)");
}

#endif

}  // namespace

SinkKind lmdb_sink_kind() { return {"lmdb", "an LMDB environment of Caffe's Datum", open_lmdb}; }

}  // namespace spk
