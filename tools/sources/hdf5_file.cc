#include "sources/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/text.h"
#include "sources/hdf5_heap.h"

#if SPK_HAVE_HDF5
#include <hdf5.h>
#endif

namespace spk {

bool is_hdf5_head(ByteSpan head) noexcept {
  return as_text(head).starts_with(std::string_view("\x89HDF\r\n\x1a\n", 8));
}

#if !SPK_HAVE_HDF5

bool hdf5_available() noexcept { return false; }

Result<std::unique_ptr<Hdf5File>> Hdf5File::open(const std::string& path) {
  return unsupported("an HDF5 file, which this build cannot read")
      .at_path(escape_bytes(path))
      .with_hint("build with HDF5: `apt install libhdf5-dev`, or `dnf install hdf5-devel`");
}

#else

bool hdf5_available() noexcept { return true; }

namespace {

constexpr unsigned kMostDepth = 64;  // of groups within groups
constexpr size_t kMostFilters = 32;

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Closes an id of the library.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id(hid_t id, Close close) : id_(id), close_(close) {}
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  hid_t get() const noexcept { return id_; }
  bool ok() const noexcept { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

// The deepest thing that the library has to say of its last error.
std::string library_complaint() {
  std::string text;
  const auto take = [](unsigned, const H5E_error2_t* error, void* to) -> herr_t {
    if (error->desc != nullptr) *static_cast<std::string*>(to) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, take, &text);
  return text.empty() ? "no reason given" : escape_bytes(text);
}

void describe_type(hid_t type, Hdf5Dataset* dataset) {
  const H5T_class_t kind = H5Tget_class(type);
  const size_t bytes = H5Tget_size(type);
  dataset->element_bytes = static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX));
  dataset->kind = Hdf5Dataset::Kind::kOther;
  dataset->what = "elements of another type";
  const auto number = [&](ArrayElement::Kind of, const char* name) {
    dataset->element = {of, dataset->element_bytes, H5Tget_order(type) == H5T_ORDER_BE};
    dataset->what = str_cat(name, 8 * bytes);
    dataset->kind = Hdf5Dataset::Kind::kNumbers;
  };
  if (kind == H5T_INTEGER && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8)) {
    if (H5Tget_sign(type) == H5T_SGN_NONE) {
      number(ArrayElement::Kind::kUnsigned, "uint");
    } else {
      number(ArrayElement::Kind::kSigned, "int");
    }
  } else if (kind == H5T_FLOAT && (bytes == 4 || bytes == 8)) {
    number(ArrayElement::Kind::kFloat, "float");
  } else if (kind == H5T_VLEN) {
    const Id base(H5Tget_super(type), H5Tclose);
    if (base.ok() && H5Tget_class(base.get()) == H5T_INTEGER && H5Tget_size(base.get()) == 1) {
      dataset->kind = Hdf5Dataset::Kind::kBytesRows;
      dataset->element_bytes = kHeapPlaceBytes;  // in the file: length, collection, number in it
      dataset->what = "rows of bytes";
    }
  } else if (kind == H5T_OPAQUE) {
    dataset->kind = Hdf5Dataset::Kind::kOpaque;
    dataset->what = "opaque bytes";
  } else if (kind == H5T_STRING) {
    dataset->kind = Hdf5Dataset::Kind::kStrings;
    dataset->in_heap = H5Tis_variable_str(type) > 0;
    if (dataset->in_heap) dataset->element_bytes = kHeapPlaceBytes;
    dataset->what = "texts";
  }
}

class LibraryFile : public Hdf5File {
 public:
  LibraryFile(hid_t id, std::string path) : id_(id), path_(std::move(path)) {}
  ~LibraryFile() override {
    const std::lock_guard lock(library_mutex());
    opened_.reset();
    H5Fclose(id_);
  }

  Result<std::vector<Hdf5Dataset>> list(size_t most) override {
    const std::lock_guard lock(library_mutex());
    std::vector<Hdf5Dataset> found;
    std::set<std::pair<unsigned long, haddr_t>> entered;
    SPK_TRY(list_group(id_, "", 0, most, &entered, &found));
    return found;
  }

  Result<ArrayStorage> storage_of(const Hdf5Dataset& dataset) override;
  Result<std::optional<std::vector<uint8_t>>> compact_bytes(const Hdf5Dataset& dataset) override;
  Result<std::vector<std::string>> strings(const Hdf5Dataset& dataset, uint64_t first,
                                           uint64_t count) override;

 private:
  Status error(const std::string& what, std::string_view inner = {}) const {
    std::string where = escape_bytes(path_);
    if (!inner.empty()) where += str_cat(":", escape_bytes(inner));
    return damaged(str_cat(what, ": ", library_complaint())).at_path(where);
  }
  Status list_group(hid_t group, const std::string& prefix, unsigned depth, size_t most,
                    std::set<std::pair<unsigned long, haddr_t>>* entered,
                    std::vector<Hdf5Dataset>* found) const;
  Status list_link(hid_t group, const std::string& name, const std::string& path, unsigned depth,
                   size_t most, std::set<std::pair<unsigned long, haddr_t>>* entered,
                   std::vector<Hdf5Dataset>* found) const;
  Result<ArrayChunk> find_chunk(const std::string& path, const std::vector<uint64_t>& first);
  Result<hid_t> opened(const std::string& path);
  Status read_filters(hid_t properties, const std::string& path,
                      std::vector<ArrayFilter>* filters) const;

  hid_t id_;
  std::string path_;
  std::unique_ptr<Id> opened_;  // the dataset that was asked for last
  std::string opened_path_;
};

// REQUIRES the lock.
Result<hid_t> LibraryFile::opened(const std::string& path) {
  if (opened_ != nullptr && opened_path_ == path) return opened_->get();
  opened_ = std::make_unique<Id>(H5Dopen2(id_, path.c_str(), H5P_DEFAULT), H5Dclose);
  if (!opened_->ok()) {
    opened_.reset();
    return error("a dataset cannot be opened", path);
  }
  opened_path_ = path;
  return opened_->get();
}

Status LibraryFile::list_group(hid_t group, const std::string& prefix, unsigned depth, size_t most,
                               std::set<std::pair<unsigned long, haddr_t>>* entered,
                               std::vector<Hdf5Dataset>* found) const {
  if (depth > kMostDepth) return error("groups within groups without end", prefix);
  std::vector<std::string> names;
  struct Gather {
    std::vector<std::string>* names;
    size_t most;
  } gather{&names, most};
  const auto take = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    auto* into = static_cast<Gather*>(to);
    if (into->names->size() >= into->most) return 1;
    into->names->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  const herr_t code = H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, take, &gather);
  if (code < 0) return error("a group cannot be read", prefix);
  if (code > 0 || found->size() > most) {
    return Status(Code::kNoMemory, str_cat("more than ", most, " datasets"))
        .at_path(escape_bytes(path_))
        .with_hint("more --memory allows more");
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    SPK_TRY(list_link(group, name, prefix + name, depth, most, entered, found));
  }
  return {};
}

Status LibraryFile::list_link(hid_t group, const std::string& name, const std::string& path,
                              unsigned depth, size_t most,
                              std::set<std::pair<unsigned long, haddr_t>>* entered,
                              std::vector<Hdf5Dataset>* found) const {
  H5L_info_t link;
  if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) {
    return error("a link cannot be read", path);
  }
  if (link.type == H5L_TYPE_EXTERNAL) {
    return unsupported("a link to another file, which is not followed")
        .at_path(str_cat(escape_bytes(path_), ":", escape_bytes(path)))
        .with_hint("`h5repack` or h5py's copy() brings it into this file");
  }
  if (link.type != H5L_TYPE_HARD) return {};
  const Id object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.ok()) return error("an object cannot be opened", path);
  const H5I_type_t type = H5Iget_type(object.get());
  if (type == H5I_GROUP) {
    H5O_info_t info;
    if (H5Oget_info(object.get(), &info) < 0) return error("a group cannot be read", path);
    if (!entered->insert({info.fileno, info.addr}).second) return {};
    return list_group(object.get(), path + "/", depth + 1, most, entered, found);
  }
  if (type != H5I_DATASET) return {};
  Hdf5Dataset dataset;
  dataset.path = path;
  const Id element(H5Dget_type(object.get()), H5Tclose);
  const Id space(H5Dget_space(object.get()), H5Sclose);
  if (!element.ok() || !space.ok()) return error("a dataset cannot be read", path);
  describe_type(element.get(), &dataset);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (rank < 0) return error("a dataset cannot be read", path);
  std::vector<hsize_t> sizes(static_cast<size_t>(rank));
  H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr);
  dataset.sizes.assign(sizes.begin(), sizes.end());
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) dataset.sizes = {0};
  found->push_back(std::move(dataset));
  return {};
}

Status LibraryFile::read_filters(hid_t properties, const std::string& path,
                                 std::vector<ArrayFilter>* filters) const {
  const int count = H5Pget_nfilters(properties);
  if (count < 0 || static_cast<size_t>(count) > kMostFilters) {
    return error("the filters of a dataset cannot be read", path);
  }
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0, values[8] = {};
    size_t value_count = 8;
    char name[64] = {};
    const H5Z_filter_t id = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                                           &value_count, values, sizeof name, name, &config);
    ArrayFilter filter;
    if (id == H5Z_FILTER_DEFLATE) {
      filter.kind = ArrayFilter::Kind::kDeflate;
    } else if (id == H5Z_FILTER_SHUFFLE) {
      filter.kind = ArrayFilter::Kind::kShuffle;
      filter.element_bytes = value_count > 0 ? values[0] : 1;
    } else if (id == H5Z_FILTER_FLETCHER32) {
      filter.kind = ArrayFilter::Kind::kFletcher32;
    } else {
      return unsupported(str_cat("a dataset packed with filter ", id, " (", escape_bytes(name),
                                 "); gzip, shuffle and fletcher32 are read"))
          .at_path(str_cat(escape_bytes(path_), ":", escape_bytes(path)))
          .with_hint("`h5repack -f GZIP=1 IN OUT` packs it anew");
    }
    filters->push_back(filter);
  }
  return {};
}

Result<ArrayStorage> LibraryFile::storage_of(const Hdf5Dataset& dataset) {
  const std::lock_guard lock(library_mutex());
  const std::string where = str_cat(escape_bytes(path_), ":", escape_bytes(dataset.path));
  SPK_ASSIGN(const hid_t id, opened(dataset.path));
  const Id properties(H5Dget_create_plist(id), H5Pclose);
  if (!properties.ok()) return error("a dataset cannot be read", dataset.path);
  ArrayStorage storage;
  storage.sizes = dataset.sizes.empty() ? std::vector<uint64_t>{1} : dataset.sizes;
  storage.element_bytes = dataset.element_bytes;
  const H5D_layout_t layout = H5Pget_layout(properties.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(properties.get()) > 0) {
    return unsupported("a dataset whose bytes lie in other files, which are not opened")
        .at_path(where)
        .with_hint("`h5repack` brings them into one file");
  }
  H5D_fill_value_t fill = H5D_FILL_VALUE_UNDEFINED;
  if (dataset.kind == Hdf5Dataset::Kind::kNumbers &&
      H5Pfill_value_defined(properties.get(), &fill) >= 0 && fill == H5D_FILL_VALUE_USER_DEFINED) {
    const Id type(H5Dget_type(id), H5Tclose);
    storage.fill.resize(dataset.element_bytes);
    if (!type.ok() || H5Pget_fill_value(properties.get(), type.get(), storage.fill.data()) < 0) {
      return error("the fill value of a dataset cannot be read", dataset.path);
    }
  }
  if (layout == H5D_CONTIGUOUS) {
    storage.contiguous = true;
    const haddr_t offset = H5Dget_offset(id);
    storage.stored = offset != HADDR_UNDEF;
    storage.offset = storage.stored ? offset : 0;
    return storage;
  }
  if (layout != H5D_CHUNKED) {
    return unsupported("a dataset that is kept in its header").at_path(where);
  }
  std::vector<hsize_t> chunk(storage.sizes.size());
  if (H5Pget_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()) !=
      static_cast<int>(chunk.size())) {
    return error("the chunks of a dataset cannot be read", dataset.path);
  }
  storage.chunk_sizes.assign(chunk.begin(), chunk.end());
  SPK_TRY(read_filters(properties.get(), dataset.path, &storage.filters));
  storage.find_chunk = [this, path = dataset.path](const std::vector<uint64_t>& first) {
    return find_chunk(path, first);
  };
  return storage;
}

Result<ArrayChunk> LibraryFile::find_chunk(const std::string& path,
                                           const std::vector<uint64_t>& first) {
  const std::lock_guard lock(library_mutex());
  SPK_ASSIGN(const hid_t id, opened(path));
  const std::vector<hsize_t> at(first.begin(), first.end());
  unsigned left_out = 0;
  haddr_t offset = HADDR_UNDEF;
  hsize_t bytes = 0;
  if (H5Dget_chunk_info_by_coord(id, at.data(), &left_out, &offset, &bytes) < 0) {
    return error("a chunk cannot be found", path);
  }
  ArrayChunk chunk;
  chunk.stored = offset != HADDR_UNDEF;
  chunk.offset = chunk.stored ? offset : 0;
  chunk.bytes = bytes;
  chunk.left_out = left_out;
  return chunk;
}

Result<std::optional<std::vector<uint8_t>>> LibraryFile::compact_bytes(const Hdf5Dataset& dataset) {
  const std::lock_guard lock(library_mutex());
  SPK_ASSIGN(const hid_t id, opened(dataset.path));
  const Id properties(H5Dget_create_plist(id), H5Pclose);
  if (!properties.ok()) return error("a dataset cannot be read", dataset.path);
  if (H5Pget_layout(properties.get()) != H5D_COMPACT) {
    return std::optional<std::vector<uint8_t>>();
  }
  const bool is_plain =
      dataset.kind == Hdf5Dataset::Kind::kNumbers || dataset.kind == Hdf5Dataset::Kind::kOpaque;
  const hsize_t stored = H5Dget_storage_size(id);  // a header holds less than 64 KiB
  if (!is_plain || stored > (1 << 16)) {
    return unsupported(str_cat("a small dataset of ", dataset.what))
        .at_path(str_cat(escape_bytes(path_), ":", escape_bytes(dataset.path)));
  }
  const Id type(H5Dget_type(id), H5Tclose);
  std::vector<uint8_t> bytes(stored);
  if (!type.ok() || H5Dread(id, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
    return error("a dataset cannot be read", dataset.path);
  }
  return std::optional(std::move(bytes));
}

Result<std::vector<std::string>> LibraryFile::strings(const Hdf5Dataset& dataset, uint64_t first,
                                                      uint64_t count) {
  if (dataset.in_heap) return internal_error("texts of the heap asked of the library");
  const std::lock_guard lock(library_mutex());
  SPK_ASSIGN(const hid_t id, opened(dataset.path));
  const Id type(H5Dget_type(id), H5Tclose);
  const Id space(H5Dget_space(id), H5Sclose);
  const hsize_t start = first, length = count;
  const Id memory(H5Screate_simple(1, &length, nullptr), H5Sclose);
  if (!type.ok() || !space.ok() || !memory.ok() || dataset.sizes.size() != 1 ||
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr) < 0) {
    return error("texts cannot be read", dataset.path);
  }
  std::vector<std::string> texts;
  if (H5Tis_variable_str(type.get()) != 0 || H5Tget_size(type.get()) != dataset.element_bytes) {
    return error("texts are not what they were", dataset.path);
  }
  if (dataset.element_bytes > kMostTextBytes) return error("texts are too long", dataset.path);
  std::vector<char> read(count * dataset.element_bytes);
  if (H5Dread(id, type.get(), memory.get(), space.get(), H5P_DEFAULT, read.data()) < 0) {
    return error("texts cannot be read", dataset.path);
  }
  for (uint64_t i = 0; i < count; ++i) {
    const char* const text = read.data() + i * dataset.element_bytes;
    texts.emplace_back(text, strnlen(text, dataset.element_bytes));
  }
  return texts;
}

}  // namespace

Result<std::unique_ptr<Hdf5File>> Hdf5File::open(const std::string& path) {
  std::unique_ptr<LibraryFile> file;  // closes behind the lock
  const std::lock_guard lock(library_mutex());
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // of this thread: nothing is printed
  H5PLset_loading_state(0);
  const Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (!access.ok()) return internal_error("the HDF5 library does not start");
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access.get(), false,
                      true);  // no lock is needed to read, nor always to be had
#endif
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get());
  if (id < 0) {
    const std::string complaint = library_complaint();
    return damaged(str_cat("HDF5 cannot open the file: ", complaint))
        .at_path(escape_bytes(path))
        .with_hint("a file whose writer was killed may be cut; `h5clear -s` mends some");
  }
  file = std::make_unique<LibraryFile>(id, path);
  const Id creation(H5Fget_create_plist(id), H5Pclose);
  hsize_t user_block = 0;
  size_t address_bytes = 0, size_bytes = 0;
  if (!creation.ok() || H5Pget_userblock(creation.get(), &user_block) < 0 ||
      H5Pget_sizes(creation.get(), &address_bytes, &size_bytes) < 0 || user_block != 0 ||
      address_bytes != 8 || size_bytes != 8) {
    return unsupported("an HDF5 file with a user block, or with addresses of other than 64 bits")
        .at_path(escape_bytes(path))
        .with_hint("`h5repack IN OUT` writes it anew");
  }
  return std::unique_ptr<Hdf5File>(std::move(file));
}

#endif

}  // namespace spk
