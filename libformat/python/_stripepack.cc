// The compiled half of the Python package: the C interface in Python's terms. The interpreter is
// let go of in every call that reads. stripepack/__init__.py makes it pleasant to use.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <string>
#include <vector>

#include "_binding.h"

namespace py = pybind11;

namespace stripepack_python {

namespace {

PyObject* error_type = nullptr;  // stripepack.Error; the module keeps it alive

// Of the file that the shard is read from; PATH where that is not known.
std::string shard_path(const spk_pack* pack, uint32_t shard, const std::string& path) {
  std::string file(256, '\0');
  uint64_t size = 0;
  while (pack != nullptr) {
    const int32_t code = spk_shard_path(pack, shard, file.data(), file.size() + 1, &size, nullptr);
    if (code != SPK_OK && size <= file.size()) break;
    file.resize(size);
    if (code == SPK_OK) return file;
  }
  return path;
}

}  // namespace

void refuse_zero_byte(const char* name, const std::string& text) {
  if (text.find('\0') == text.npos) return;
  throw py::value_error(std::string(name) + " has a zero byte in it");
}

void fail(const stripepack::Error& error, const std::string& path, const spk_pack* pack) {
  py::object instance = py::reinterpret_borrow<py::object>(error_type)(
      py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          error.what(), static_cast<Py_ssize_t>(std::strlen(error.what())), "replace")));
  std::string file = path;
  if (error.shard() != SPK_NO_SHARD) {
    file = shard_path(pack, error.shard(), path);
  }
  instance.attr("code") = error.code_name();
  instance.attr("path") =
      py::reinterpret_steal<py::object>(PyUnicode_DecodeFSDefault(file.c_str()));
  instance.attr("shard") = py::none();
  instance.attr("offset") = py::none();
  if (error.shard() != SPK_NO_SHARD) instance.attr("shard") = error.shard();
  if (error.offset() != SPK_NO_OFFSET) instance.attr("offset") = error.offset();
  instance.attr("os_errno") = error.os_errno();
  PyErr_SetObject(error_type, instance.ptr());
  throw py::error_already_set();
}

void PackHandle::fail(const stripepack::Error& error) const {
  stripepack_python::fail(error, path, pack.get());
}

namespace {

// A new bytes object of SIZE bytes, which may be written to until it is given out.
py::bytes new_bytes(uint64_t size) {
  if (size > static_cast<uint64_t>(PY_SSIZE_T_MAX)) throw std::bad_alloc();
  PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(made);
}

class PyPack : public PackHandle {
 public:
  // INDEX: the bytes of the pack's index.spki, or None to read them.
  // CACHE: a directory with copies of shards, or empty.
  PyPack(const std::string& where, const py::object& index, uint32_t engine, uint32_t threads,
         bool check, const std::string& cache) {
    refuse_zero_byte("path", where);
    refuse_zero_byte("cache", cache);
    path = where;
    const stripepack::Options options{engine, threads, !check, cache};
    stripepack::Error error;
    if (index.is_none()) {
      const py::gil_scoped_release released;
      pack = stripepack::Pack::open(path, options, error);
    } else {
      const py::buffer_info bytes = py::buffer(index).request();
      if (bytes.ndim != 1 || bytes.strides[0] != bytes.itemsize) {
        throw py::value_error("index is not a run of bytes");
      }
      const std::string_view view(static_cast<const char*>(bytes.ptr),
                                  static_cast<size_t>(bytes.size * bytes.itemsize));
      const py::gil_scoped_release released;
      pack = stripepack::Pack::open_index(path, view, options, error);
    }
    if (error) fail(error);
  }

  py::dict info() const {
    const spk_info info = pack.info();
    py::dict out;
    out["format_version"] = info.format_version;
    out["samples"] = info.sample_count;
    out["rejects"] = info.reject_count;
    out["chunks"] = info.chunk_count;
    out["chunk_bytes"] = info.chunk_bytes;
    out["payload_bytes"] = info.payload_bytes;
    out["shards"] = info.shard_count;
    out["content_id"] = std::string(info.content_id);
    out["plan_id"] = std::string(info.plan_id);
    return out;
  }

  py::list fields() const {
    py::list out;
    for (uint32_t i = 0; i < pack.info().field_count; ++i) {
      stripepack::Error error;
      spk_field field = {};
      field.struct_size = sizeof field;
      if (spk_field_info(pack.get(), i, &field, error.fill()) != SPK_OK) fail(error);
      out.append(py::make_tuple(field.name, field.kind, field.length));
    }
    return out;
  }

  py::list classes() const {
    py::list out;
    for (uint32_t i = 0; i < pack.info().class_count; ++i) {
      stripepack::Error error;
      const std::string name = pack.class_name(i, error);
      if (error) fail(error);
      out.append(py::bytes(name));
    }
    return out;
  }

  py::dict settings() const {
    py::dict out;
    for (uint32_t i = 0; i < pack.info().setting_count; ++i) {
      stripepack::Error error;
      const char* name = nullptr;
      const char* value = nullptr;
      uint64_t size = 0;
      if (spk_setting_at(pack.get(), i, &name, &value, &size, error.fill()) != SPK_OK) fail(error);
      out[py::bytes(name)] = py::bytes(value, size);
    }
    return out;
  }

  py::bytes key(uint64_t sample) const {
    stripepack::Error error;
    std::string key;
    {
      const py::gil_scoped_release released;
      key = pack.key(sample, error);
    }
    if (error) fail(error);
    return key;
  }

  uint64_t find_key(const std::string& key) const {
    stripepack::Error error;
    uint64_t sample = 0;
    {
      const py::gil_scoped_release released;
      sample = pack.find_key(key, error);
    }
    if (error) fail(error);
    return sample;
  }

  py::array_t<int64_t> ints(uint32_t field, uint64_t begin, uint64_t end, uint64_t length) const {
    return numbers<int64_t>(spk_get_ints, field, begin, end, length);
  }
  py::array_t<double> floats(uint32_t field, uint64_t begin, uint64_t end, uint64_t length) const {
    return numbers<double>(spk_get_floats, field, begin, end, length);
  }
  // Of one sample, of any length.
  std::vector<int64_t> sample_ints(uint32_t field, uint64_t sample) const {
    return sample_numbers<int64_t>(spk_get_sample_ints, field, sample);
  }
  std::vector<double> sample_floats(uint32_t field, uint64_t sample) const {
    return sample_numbers<double>(spk_get_sample_floats, field, sample);
  }

  // (present, shard, offset, size, checksum)
  py::tuple locate(uint32_t field, uint64_t sample) const {
    stripepack::Error error;
    spk_extent extent = {};
    {
      const py::gil_scoped_release released;
      extent = pack.locate(field, sample, error);
    }
    if (error) fail(error);
    return py::make_tuple(extent.present != 0, extent.shard, extent.offset, extent.size,
                          extent.checksum);
  }

  // None where the sample has no value.
  py::object read(uint32_t field, uint64_t sample) const {
    stripepack::Error error;
    spk_extent extent = {};
    {
      const py::gil_scoped_release released;
      extent = pack.locate(field, sample, error);
    }
    if (error) fail(error);
    if (extent.present == 0) return py::none();
    py::bytes blob = new_bytes(extent.size);
    char* into = PyBytes_AS_STRING(blob.ptr());
    {
      const py::gil_scoped_release released;
      spk_read(pack.get(), field, sample, into, extent.size, nullptr, error.fill());
    }
    if (error) fail(error);
    return py::object(blob);
  }

  py::list read_many(uint32_t field, const std::vector<uint64_t>& samples) const {
    const std::vector<spk_extent> extents = locate_all(field, samples);
    std::vector<spk_read_item> items;
    std::vector<py::object> blobs;
    blobs.reserve(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      if (extents[i].present == 0) {
        blobs.push_back(py::none());
        continue;
      }
      py::bytes blob = new_bytes(extents[i].size);
      items.push_back({samples[i], PyBytes_AS_STRING(blob.ptr()), extents[i].size, 0, 0, 0});
      blobs.push_back(std::move(blob));
    }
    read_items(field, items);
    py::list out(blobs.size());
    for (size_t i = 0; i < blobs.size(); ++i) out[i] = std::move(blobs[i]);
    return out;
  }

  // All in one array, and where each begins, with the end behind the last. Absent ones are empty.
  py::tuple read_packed(uint32_t field, const std::vector<uint64_t>& samples) const {
    const std::vector<spk_extent> extents = locate_all(field, samples);
    py::array_t<int64_t> offsets(static_cast<py::ssize_t>(samples.size() + 1));
    uint64_t total = 0;
    for (size_t i = 0; i < samples.size(); ++i) {
      offsets.mutable_data()[i] = static_cast<int64_t>(total);
      // Each size fits into a file, so that only many of them could overflow.
      if (__builtin_add_overflow(total, extents[i].size, &total)) throw std::bad_alloc();
    }
    if (total > static_cast<uint64_t>(PY_SSIZE_T_MAX)) throw std::bad_alloc();
    offsets.mutable_data()[samples.size()] = static_cast<int64_t>(total);
    py::array_t<uint8_t> bytes(static_cast<py::ssize_t>(total));
    std::vector<spk_read_item> items;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (extents[i].present == 0) continue;
      items.push_back(
          {samples[i], bytes.mutable_data() + offsets.data()[i], extents[i].size, 0, 0, 0});
    }
    read_items(field, items);
    return py::make_tuple(bytes, offsets);
  }

  py::tuple part(uint64_t rank, uint64_t world) const {
    stripepack::Error error;
    const stripepack::Pack::Range range = pack.part(rank, world, error);
    if (error) fail(error);
    return py::make_tuple(range.begin, range.end);
  }

  // The first sample of each chunk.
  py::array_t<uint64_t> chunk_samples() const {
    const uint64_t chunks = pack.info().chunk_count;
    py::array_t<uint64_t> firsts(static_cast<py::ssize_t>(chunks));
    uint64_t* into = firsts.mutable_data();
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      spk_chunk_samples(pack.get(), 0, chunks, into, error.fill());
    }
    if (error) fail(error);
    return firsts;
  }

  // The target of each chunk; empty where none are known.
  py::array_t<uint32_t> recorded_targets(const std::string& digest) const {
    refuse_zero_byte("digest", digest);
    std::vector<uint32_t> targets;
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      targets = pack.recorded_targets(digest, error);
    }
    if (error) fail(error);
    return py::array_t<uint32_t>(static_cast<py::ssize_t>(targets.size()), targets.data());
  }

 private:
  template <typename T, typename Get>
  py::array_t<T> numbers(Get get, uint32_t field, uint64_t begin, uint64_t end,
                         uint64_t length) const {
    const uint64_t samples = end - begin;
    std::vector<py::ssize_t> shape = {static_cast<py::ssize_t>(samples)};
    if (length != 1) shape.push_back(static_cast<py::ssize_t>(length));
    py::array_t<T> out(shape);
    T* into = out.mutable_data();
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      get(pack.get(), field, begin, samples, into, nullptr, error.fill());
    }
    if (error) fail(error);
    return out;
  }

  template <typename T, typename Get>
  std::vector<T> sample_numbers(Get get, uint32_t field, uint64_t sample) const {
    stripepack::Error error;
    std::vector<T> out(1);
    uint64_t count = 0;
    int code = get(pack.get(), field, sample, out.data(), out.size(), &count, error.fill());
    if (code == SPK_INVALID_ARGUMENT && count > out.size()) {
      out.resize(count);
      code = get(pack.get(), field, sample, out.data(), out.size(), &count, error.fill());
    }
    if (code != SPK_OK) fail(error);
    out.resize(count);
    return out;
  }

  std::vector<spk_extent> locate_all(uint32_t field, const std::vector<uint64_t>& samples) const {
    std::vector<spk_extent> extents(samples.size());
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      spk_locate(pack.get(), field, samples.data(), samples.size(), extents.data(), error.fill());
    }
    if (error) fail(error);
    return extents;
  }

  void read_items(uint32_t field, std::vector<spk_read_item>& items) const {
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      spk_read_many(pack.get(), field, items.data(), items.size(), error.fill());
    }
    if (error) fail(error);
  }
};

class PyIterator {
 public:
  PyIterator(const PyPack& pack, uint32_t field, uint64_t rank, uint64_t world)
      : pack_(pack), field_(field) {
    stripepack::Error error;
    iterator_ = pack.pack.iterate(rank, world, error);
    if (error) pack.fail(error);
  }

  // (sample, bytes), or (sample, None) where it has no value.
  py::tuple next() {
    stripepack::Error error;
    bool there = false;
    std::string_view blob;
    {
      const py::gil_scoped_release released;
      there = iterator_.next(error);
      if (there) blob = iterator_.blob(field_, error);
    }
    if (!there && !error) throw py::stop_iteration();
    if (there && error.code() == SPK_NOT_FOUND) {
      return py::make_tuple(iterator_.sample(), py::none());
    }
    if (error) pack_.fail(error);
    return py::make_tuple(iterator_.sample(), py::bytes(blob.data(), blob.size()));
  }

 private:
  const PyPack& pack_;  // kept alive by the module's keep_alive
  uint32_t field_;
  stripepack::Iterator iterator_;
};

}  // namespace

}  // namespace stripepack_python

PYBIND11_MODULE(_stripepack, module) {
  using namespace stripepack_python;
  error_type = PyErr_NewException("stripepack.Error", nullptr, nullptr);
  if (error_type == nullptr) throw py::error_already_set();
  module.attr("Error") = py::handle(error_type);
  module.attr("version") = spk_version_string();
  module.attr("KIND_BLOB") = static_cast<int>(SPK_KIND_BLOB);
  module.attr("KIND_INT64") = static_cast<int>(SPK_KIND_INT64);

  // Only so that what derives from it can name it.
  [[maybe_unused]] const py::class_<PackHandle> handle(module, "PackHandle");
  py::class_<PyPack, PackHandle>(module, "Pack")
      .def(py::init<const std::string&, const py::object&, uint32_t, uint32_t, bool,
                    const std::string&>())
      .def("info", &PyPack::info)
      .def("fields", &PyPack::fields)
      .def("classes", &PyPack::classes)
      .def("settings", &PyPack::settings)
      .def("key", &PyPack::key)
      .def("find_key", &PyPack::find_key)
      .def("ints", &PyPack::ints)
      .def("floats", &PyPack::floats)
      .def("sample_ints", &PyPack::sample_ints)
      .def("sample_floats", &PyPack::sample_floats)
      .def("locate", &PyPack::locate)
      .def("read", &PyPack::read)
      .def("read_many", &PyPack::read_many)
      .def("read_packed", &PyPack::read_packed)
      .def("chunk_samples", &PyPack::chunk_samples)
      .def("recorded_targets", &PyPack::recorded_targets)
      .def("part", &PyPack::part);
  py::class_<PyIterator>(module, "Iterator")
      .def(py::init<const PyPack&, uint32_t, uint64_t, uint64_t>(), py::keep_alive<1, 2>())
      .def("__iter__", [](py::object self) { return self; })
      .def("__next__", &PyIterator::next);
  add_loader(module);
}
