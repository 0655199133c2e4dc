// Loaders and their batches. The interpreter is let go of while reads are waited for; bytes are
// handed out where they lie, in objects that keep the batch alive.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "_binding.h"

namespace py = pybind11;

namespace stripepack_python {

namespace {

// Bytes of a batch as an exporter of the buffer protocol. pybind11's own would allocate five times
// for each sample.
struct BlobObject {
  PyObject head;
  PyObject* batch;  // owned
  void* data;
  Py_ssize_t size;
};

void blob_dealloc(PyObject* self) {
  Py_XDECREF(reinterpret_cast<BlobObject*>(self)->batch);
  PyObject_Free(self);
}

int blob_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* blob = reinterpret_cast<BlobObject*>(self);
  return PyBuffer_FillInfo(view, self, blob->data, blob->size, 1, flags);
}

PyBufferProcs blob_buffer = {blob_get_buffer, nullptr};
PyTypeObject blob_type{};

void prepare_blob_type() {
  Py_INCREF(&blob_type);  // never to be freed
  blob_type.tp_name = "stripepack._stripepack.Blob";
  blob_type.tp_basicsize = sizeof(BlobObject);
  blob_type.tp_flags = Py_TPFLAGS_DEFAULT;
  blob_type.tp_dealloc = blob_dealloc;
  blob_type.tp_as_buffer = &blob_buffer;
  if (PyType_Ready(&blob_type) != 0) throw py::error_already_set();
}

// A read-only memoryview of SPAN, which BATCH keeps where it is; None where there is no value.
py::object view_of(const py::object& batch, const spk_span& span) {
  if (span.data == nullptr) return py::none();
  BlobObject* blob = PyObject_New(BlobObject, &blob_type);
  if (blob == nullptr) throw py::error_already_set();
  const auto owner = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(blob));
  blob->batch = batch.inc_ref().ptr();
  blob->data = const_cast<void*>(span.data);
  blob->size = static_cast<Py_ssize_t>(span.size);
  PyObject* view = PyMemoryView_FromObject(owner.ptr());
  if (view == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(view);
}

class PyBatch {
 public:
  PyBatch(stripepack::Batch batch, std::string path, std::vector<uint32_t> lengths)
      : batch_(std::move(batch)), path_(std::move(path)), lengths_(std::move(lengths)) {}

  size_t size() const { return batch_.size(); }

  py::array_t<uint64_t> samples() const {
    py::array_t<uint64_t> out(static_cast<py::ssize_t>(size()));
    std::copy_n(batch_.samples(), size(), out.mutable_data());
    return out;
  }

  // (positions, repeated)
  py::tuple positions() const {
    py::array_t<uint64_t> positions(static_cast<py::ssize_t>(size()));
    py::array_t<bool> repeated(static_cast<py::ssize_t>(size()));
    static_assert(sizeof(bool) == 1);
    stripepack::Error error;
    spk_batch_positions(batch_.get(), positions.mutable_data(),
                        reinterpret_cast<uint8_t*>(repeated.mutable_data()), error.fill());
    if (error) fail(error, path_);
    return py::make_tuple(positions, repeated);
  }

  std::vector<spk_span> spans(uint32_t field) const {
    std::vector<spk_span> spans(size());
    stripepack::Error error;
    spk_batch_blobs(batch_.get(), field, spans.data(), error.fill());
    if (error) fail(error, path_);
    return spans;
  }

  static py::list blobs(const py::object& self, uint32_t field) {
    const std::vector<spk_span> spans = self.cast<const PyBatch&>().spans(field);
    py::list out(spans.size());
    for (size_t i = 0; i < spans.size(); ++i) {
      PyList_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(i),
                      view_of(self, spans[i]).release().ptr());
    }
    return out;
  }

  // All in one array, and where each begins, with the end behind the last. Absent ones are empty.
  py::tuple packed(uint32_t field) const {
    const std::vector<spk_span> found = spans(field);
    uint64_t total = 0;
    for (const spk_span& span : found) total += span.size;
    py::array_t<uint8_t> bytes(static_cast<py::ssize_t>(total));
    py::array_t<int64_t> offsets(static_cast<py::ssize_t>(size() + 1));
    // A batch without samples has no use for the one offset, but it is there.
    offsets.mutable_data()[0] = 0;
    uint8_t* const into = bytes.mutable_data();
    auto* const ends = reinterpret_cast<uint64_t*>(offsets.mutable_data());
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      uint64_t taken = 0;
      spk_batch_copy(batch_.get(), field, into, total, ends, &taken, error.fill());
    }
    if (error) fail(error, path_);
    return py::make_tuple(bytes, offsets);
  }

  // (numbers, present)
  py::tuple ints(uint32_t field) const { return numbers<int64_t>(spk_batch_ints, field); }
  py::tuple floats(uint32_t field) const { return numbers<double>(spk_batch_floats, field); }

 private:
  template <typename T, typename Get>
  py::tuple numbers(Get get, uint32_t field) const {
    const uint32_t length = field < lengths_.size() ? lengths_[field] : 0;
    std::vector<py::ssize_t> shape = {static_cast<py::ssize_t>(size())};
    if (length != 1) shape.push_back(static_cast<py::ssize_t>(length));
    py::array_t<T> out(shape);
    py::array_t<bool> present(static_cast<py::ssize_t>(size()));
    stripepack::Error error;
    get(batch_.get(), field, out.mutable_data(), reinterpret_cast<uint8_t*>(present.mutable_data()),
        error.fill());
    if (error) fail(error, path_);
    return py::make_tuple(out, present);
  }

  stripepack::Batch batch_;
  std::string path_;
  std::vector<uint32_t> lengths_;  // of the pack's fields
};

stripepack::LoaderOptions loader_options(const py::dict& from) {
  stripepack::LoaderOptions to;
  const auto take = [&](const char* name, auto& member) {
    member = from[name].cast<std::remove_reference_t<decltype(member)>>();
  };
  take("order", to.order);
  take("seed", to.seed);
  take("epoch", to.epoch);
  take("rank", to.rank);
  take("world", to.world);
  take("batch", to.batch);
  take("lanes", to.lanes);
  take("window", to.window);
  take("tail", to.tail);
  take("engine", to.engine);
  take("worker", to.worker);
  take("workers", to.workers);
  take("memory", to.memory_bytes);
  take("threads", to.threads);
  take("direct", to.direct);
  take("skip_damaged", to.skip_damaged);
  to.skip_checksums = !from["check"].cast<bool>();
  take("fields", to.fields);
  take("targets", to.targets);
  take("use_recorded_map", to.use_recorded_map);
  take("state", to.state);
  take("node_ranks", to.node_ranks);
  take("node_group", to.node_group);
  take("node_memory", to.node_memory_bytes);
  for (const std::string& field : to.fields) refuse_zero_byte("a field", field);
  refuse_zero_byte("state", to.state);
  refuse_zero_byte("node_group", to.node_group);
  return to;
}

// Calls take turns; in a child of fork() without a lock, as a thread of the parent may have held
// it.
class PyLoader {
 public:
  PyLoader(const PackHandle& pack, const py::dict& options) : pack_(pack), made_by_(::getpid()) {
    const stripepack::LoaderOptions wanted = loader_options(options);
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      loader_ = pack.pack.load(wanted, error);
    }
    if (error) pack_.fail(error);
    lengths_.resize(pack.pack.info().field_count);
    for (uint32_t i = 0; i < lengths_.size(); ++i) {
      spk_field field = {};
      field.struct_size = sizeof field;
      spk_field_info(pack.pack.get(), i, &field, nullptr);
      lengths_[i] = field.length;
    }
  }

  // None at the end of the epoch.
  py::object next() {
    stripepack::Error error;
    stripepack::Batch batch;
    {
      const py::gil_scoped_release released;
      const std::unique_lock<std::mutex> turn = take_turn();
      batch = loader_.next(error);
    }
    if (error) pack_.fail(error);
    if (!batch) return py::none();
    return py::cast(std::make_unique<PyBatch>(std::move(batch), pack_.path, lengths_));
  }

  void start_epoch(uint64_t epoch) {
    stripepack::Error error;
    {
      const py::gil_scoped_release released;
      const std::unique_lock<std::mutex> turn = take_turn();
      loader_.start_epoch(epoch, error);
    }
    if (error) pack_.fail(error);
  }

  std::string state() {
    stripepack::Error error;
    std::string state;
    {
      const py::gil_scoped_release released;
      const std::unique_lock<std::mutex> turn = take_turn();
      state = loader_.state(error);
    }
    if (error) pack_.fail(error);
    return state;
  }

  py::dict info() {
    spk_loader_info info = {};
    std::string reading;
    {
      const py::gil_scoped_release released;
      const std::unique_lock<std::mutex> turn = take_turn();
      info = loader_.info();
      reading = loader_.reading();
    }
    py::dict out;
    out["order"] = info.order;
    out["lanes"] = info.lanes;
    out["window"] = info.window;
    out["seed"] = info.seed;
    out["epoch"] = info.epoch;
    out["consumed"] = info.consumed;
    out["step_count"] = info.step_count;
    out["steps"] = info.steps;
    out["samples"] = info.samples;
    out["payload_bytes"] = info.payload_bytes;
    out["repeated"] = info.repeated;
    out["skipped"] = info.skipped;
    out["reads"] = info.reads;
    out["read_bytes"] = info.read_bytes;
    out["wait_ns"] = info.wait_ns;
    out["memory_limit_bytes"] = info.memory_limit_bytes;
    out["memory_peak_bytes"] = info.memory_peak_bytes;
    out["engine"] = info.engine;
    out["direct"] = info.direct;
    out["shared_reads"] = info.shared_reads;
    out["shared_hits"] = info.shared_hits;
    out["reading"] = reading;
    return out;
  }

  std::string warning() {
    const py::gil_scoped_release released;
    const std::unique_lock<std::mutex> turn = take_turn();
    return loader_.warning();
  }

  // Ends the threads and lets go of the memory. Batches stay.
  void close() {
    const py::gil_scoped_release released;
    const std::unique_lock<std::mutex> turn = take_turn();
    loader_ = stripepack::Loader();
  }

 private:
  std::unique_lock<std::mutex> take_turn() {
    if (::getpid() != made_by_) return {};
    return std::unique_lock<std::mutex>(mutex_);
  }

  const PackHandle& pack_;  // kept alive by the module's keep_alive
  const pid_t made_by_;
  std::mutex mutex_;  // guards loader_
  stripepack::Loader loader_;
  std::vector<uint32_t> lengths_;
};

}  // namespace

void add_loader(py::module_& module) {
  prepare_blob_type();
  py::class_<PyBatch>(module, "Batch")
      .def("__len__", &PyBatch::size)
      .def("samples", &PyBatch::samples)
      .def("positions", &PyBatch::positions)
      .def("blobs", &PyBatch::blobs)
      .def("packed", &PyBatch::packed)
      .def("ints", &PyBatch::ints)
      .def("floats", &PyBatch::floats);
  py::class_<PyLoader>(module, "Loader")
      .def(py::init<const PackHandle&, const py::dict&>(), py::keep_alive<1, 2>())
      .def("next", &PyLoader::next)
      .def("start_epoch", &PyLoader::start_epoch)
      .def("state", &PyLoader::state)
      .def("info", &PyLoader::info)
      .def("warning", &PyLoader::warning)
      .def("close", &PyLoader::close);
}

}  // namespace stripepack_python
