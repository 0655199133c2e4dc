// The module _image: the C interface of libstripepack-image in Python's terms, apart from
// _stripepack so that this one needs no picture library. The interpreter is let go of while
// pictures are decoded. stripepack/image.py makes it pleasant to use.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stripepack/image.h"

namespace py = pybind11;

namespace {

using Numbers = py::array_t<uint64_t, py::array::c_style | py::array::forcecast>;

// What went wrong: a code and a message, for stripepack.Error to be made of. Code 0: nothing.
using Complaint = std::pair<int32_t, std::string>;

spk_error empty_error() {
  spk_error error = {};
  error.struct_size = sizeof error;
  return error;
}

Complaint complaint(int32_t code, const spk_error& error) {
  if (code == SPK_OK) return {SPK_OK, ""};
  return {code, error.message};
}

spk_image_ops ops_of(const py::dict& from, uint64_t seed, uint64_t epoch) {
  spk_image_ops ops = {};
  ops.struct_size = sizeof ops;
  const auto number = [&](const char* name, auto& to) {
    if (from.contains(name)) to = from[name].cast<std::decay_t<decltype(to)>>();
  };
  number("kind", ops.kind);
  number("layout", ops.layout);
  number("width", ops.width);
  number("height", ops.height);
  number("short_side", ops.short_side);
  number("exif_orientation", ops.exif_orientation);
  number("flip_probability", ops.flip_probability);
  number("scale_min", ops.scale_min);
  number("scale_max", ops.scale_max);
  number("ratio_min", ops.ratio_min);
  number("ratio_max", ops.ratio_max);
  number("max_pixels", ops.max_pixels);
  ops.seed = seed;
  ops.epoch = epoch;
  return ops;
}

// Encoded pictures: a sequence of objects with bytes, of which None is an empty one, or a pair of
// arrays of addresses and sizes. The objects are held.
class Pictures {
 public:
  explicit Pictures(const py::object& from) {
    if (py::isinstance<py::tuple>(from) && py::len(from) == 2 &&
        py::isinstance<py::array>(py::tuple(from)[0])) {
      add_addresses(py::tuple(from));
      return;
    }
    const py::sequence pictures(from);
    const size_t count = py::len(pictures);
    buffers_.reserve(count);
    items_.reserve(count);
    for (const py::handle picture : pictures) {
      spk_image_item item = {};
      if (!picture.is_none()) {
        buffers_.push_back(py::reinterpret_borrow<py::buffer>(picture).request());
        item.data = buffers_.back().ptr;
        item.size = static_cast<uint64_t>(buffers_.back().size * buffers_.back().itemsize);
      }
      items_.push_back(item);
    }
  }

  std::vector<spk_image_item>& items() { return items_; }

  void set_ids(const Numbers& ids) {
    if (static_cast<size_t>(ids.size()) != items_.size()) {
      throw py::value_error("there are " + std::to_string(items_.size()) + " pictures, but " +
                            std::to_string(ids.size()) + " ids");
    }
    for (size_t i = 0; i < items_.size(); ++i) items_[i].sample = ids.data()[i];
  }

 private:
  void add_addresses(const py::tuple& arrays) {
    const auto addresses = arrays[0].cast<Numbers>();
    const auto sizes = arrays[1].cast<Numbers>();
    if (addresses.size() != sizes.size()) {
      throw py::value_error("addresses and sizes are not equally many");
    }
    items_.resize(static_cast<size_t>(addresses.size()));
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].data = reinterpret_cast<const void*>(addresses.data()[i]);
      items_[i].size = sizes.data()[i];
    }
  }

  std::vector<py::buffer_info> buffers_;
  std::vector<spk_image_item> items_;
};

py::array_t<int32_t> codes_of(const std::vector<spk_image_item>& items) {
  py::array_t<int32_t> codes(static_cast<py::ssize_t>(items.size()));
  for (size_t i = 0; i < items.size(); ++i) codes.mutable_data()[i] = items[i].code;
  return codes;
}

// The shape of a picture's pixels; height 0: unknown.
struct Shape {
  uint32_t width = 0;
  uint32_t height = 0;
};

Shape shape_of(const spk_image_item& item, const spk_image_ops& ops) {
  spk_image_header header = {};
  header.struct_size = sizeof header;
  if (spk_image_info(item.data, item.size, &header, nullptr) != SPK_OK) return {};
  if (ops.exif_orientation != 0 && header.orientation > 4) std::swap(header.width, header.height);
  spk_image_crop crop = {};
  crop.struct_size = sizeof crop;
  if (spk_image_plan_crop(header.width, header.height, &ops, item.sample, &crop, nullptr) !=
      SPK_OK) {
    return {};
  }
  // What the decoder would refuse must not be allocated before.
  const uint64_t limit = ops.max_pixels != 0 ? ops.max_pixels : 178956970;
  if (uint64_t{header.width} * header.height > limit) return {};
  return {crop.width, crop.height};
}

class Pool {
 public:
  explicit Pool(uint32_t threads) {
    spk_error error = empty_error();
    if (spk_image_pool_open(threads, &pool_, &error) != SPK_OK)
      throw py::value_error(error.message);
  }
  ~Pool() {
    const py::gil_scoped_release released;
    spk_image_pool_close(pool_);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint32_t threads() const { return spk_image_pool_threads(pool_); }

  // Fills out[i] for each picture: (codes, complaint).
  py::tuple decode_many(const py::object& from, const py::dict& options, uint64_t seed,
                        uint64_t epoch, const Numbers& ids, const py::array& out) const {
    const spk_image_ops ops = ops_of(options, seed, epoch);
    Pictures pictures(from);
    pictures.set_ids(ids);
    auto& items = pictures.items();
    if (!out.dtype().is(py::dtype::of<uint8_t>()) || (out.flags() & py::array::c_style) == 0 ||
        !out.writeable()) {
      throw py::value_error("out is no writable array of uint8 in C order");
    }
    if (out.ndim() < 1 || static_cast<size_t>(out.shape(0)) != items.size()) {
      throw py::value_error("out has not as many slots as there are pictures");
    }
    auto* slot = static_cast<uint8_t*>(const_cast<void*>(out.data()));
    const auto bytes = items.empty() ? 0 : static_cast<uint64_t>(out.nbytes()) / items.size();
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].out = slot + bytes * i;
      items[i].capacity = bytes;
    }
    const Complaint told = run(items, ops);
    return py::make_tuple(codes_of(items), told.first, told.second);
  }

  // Arrays of the pictures' own sizes, None where there is none: (arrays, codes, complaint).
  py::tuple decode_each(const py::object& from, const py::dict& options, uint64_t seed,
                        uint64_t epoch, const Numbers& ids) const {
    const spk_image_ops ops = ops_of(options, seed, epoch);
    Pictures pictures(from);
    pictures.set_ids(ids);
    auto& items = pictures.items();
    py::list arrays;
    for (spk_image_item& item : items) {
      const Shape shape = shape_of(item, ops);
      if (shape.height == 0) {
        arrays.append(py::none());
        continue;
      }
      const auto height = static_cast<py::ssize_t>(shape.height);
      const auto width = static_cast<py::ssize_t>(shape.width);
      py::array_t<uint8_t> array(ops.layout == SPK_IMAGE_CHW
                                     ? std::vector<py::ssize_t>{3, height, width}
                                     : std::vector<py::ssize_t>{height, width, 3});
      item.out = array.mutable_data();
      item.capacity = static_cast<uint64_t>(array.nbytes());
      arrays.append(std::move(array));
    }
    const Complaint told = run(items, ops);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].code != SPK_OK) arrays[i] = py::none();
    }
    return py::make_tuple(arrays, codes_of(items), told.first, told.second);
  }

 private:
  Complaint run(std::vector<spk_image_item>& items, const spk_image_ops& ops) const {
    spk_error error = empty_error();
    const py::gil_scoped_release released;
    const int32_t code = spk_image_decode_many(pool_, items.data(), items.size(), &ops, &error);
    return complaint(code, error);
  }

  spk_image_pool* pool_ = nullptr;
};

py::tuple info(const py::buffer& picture) {
  const py::buffer_info bytes = picture.request();
  spk_image_header header = {};
  header.struct_size = sizeof header;
  spk_error error = empty_error();
  const int32_t code = spk_image_info(bytes.ptr, static_cast<uint64_t>(bytes.size * bytes.itemsize),
                                      &header, &error);
  py::dict out;
  out["format"] = header.format;
  out["width"] = header.width;
  out["height"] = header.height;
  out["channels"] = header.channels;
  out["depth"] = header.depth;
  out["orientation"] = header.orientation;
  return py::make_tuple(out, code, code == SPK_OK ? "" : error.message);
}

py::tuple plan(uint32_t width, uint32_t height, const py::dict& options, uint64_t seed,
               uint64_t epoch, uint64_t id) {
  const spk_image_ops ops = ops_of(options, seed, epoch);
  spk_image_crop crop = {};
  crop.struct_size = sizeof crop;
  spk_error error = empty_error();
  const int32_t code = spk_image_plan_crop(width, height, &ops, id, &crop, &error);
  py::dict out;
  out["left"] = crop.left;
  out["top"] = crop.top;
  out["right"] = crop.right;
  out["bottom"] = crop.bottom;
  out["width"] = crop.width;
  out["height"] = crop.height;
  out["flipped"] = crop.flipped != 0;
  return py::make_tuple(out, code, code == SPK_OK ? "" : error.message);
}

}  // namespace

PYBIND11_MODULE(_image, module) {
  module.doc() = "The C interface of libstripepack-image; see stripepack.image.";
  py::class_<Pool>(module, "Pool")
      .def(py::init<uint32_t>(), py::arg("threads") = 0)
      .def_property_readonly("threads", &Pool::threads)
      .def("decode_many", &Pool::decode_many, py::arg("pictures"), py::arg("ops"), py::arg("seed"),
           py::arg("epoch"), py::arg("ids"), py::arg("out"))
      .def("decode_each", &Pool::decode_each, py::arg("pictures"), py::arg("ops"), py::arg("seed"),
           py::arg("epoch"), py::arg("ids"));
  module.def("info", &info, py::arg("picture"));
  module.def("plan", &plan, py::arg("width"), py::arg("height"), py::arg("ops"), py::arg("seed"),
             py::arg("epoch"), py::arg("id"));
  module.def(
      "decodes", [](uint32_t format) { return spk_image_decodes(format) != 0; }, py::arg("format"));
}
