#include "sources/hdf5_labels.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/text.h"

namespace spk {

namespace {

constexpr uint64_t kBlockBytes = 64 * 1024;
constexpr uint64_t kTextsAtOnce = 256;

uint64_t bits_at(const uint8_t* at, const ArrayElement& element) {
  const bool big = element.big_endian;
  switch (element.bytes) {
    case 1: return at[0];
    case 2: return big ? load_be<uint16_t>(at) : load_le<uint16_t>(at);
    case 4: return big ? load_be<uint32_t>(at) : load_le<uint32_t>(at);
    default: return big ? load_be<uint64_t>(at) : load_le<uint64_t>(at);
  }
}

}  // namespace

Hdf5Numbers::Hdf5Numbers(const Hdf5Dataset& dataset, ArrayReader* reader,
                         std::vector<uint8_t> whole)
    : element_(dataset.element), reader_(reader), block_(std::move(whole)) {
  rows_ = dataset.sizes.empty() ? 1 : dataset.sizes[0];
  for (size_t i = 1; i < dataset.sizes.size(); ++i) row_elements_ *= dataset.sizes[i];
  if (reader_ == nullptr) block_rows_ = rows_;
}

Result<const uint8_t*> Hdf5Numbers::next_row() {
  const uint64_t row_bytes = row_elements_ * element_.bytes;
  if (at_ >= rows_) return internal_error("more rows of numbers asked for than there are");
  if (at_ >= block_first_ + block_rows_) {
    block_first_ = at_;
    block_rows_ = std::min(std::max<uint64_t>(kBlockBytes / std::max<uint64_t>(row_bytes, 1), 1),
                           rows_ - at_);
    if (row_bytes > kBlockBytes) return unsupported("rows of more than 64 KiB of numbers");
    block_.resize(block_rows_ * row_bytes);
    SPK_TRY(reader_->read(block_first_, block_));
  }
  const uint64_t skip = (at_ - block_first_) * row_bytes;
  if (skip + row_bytes > block_.size()) return damaged("a dataset holds fewer bytes than it says");
  ++at_;
  return block_.data() + skip;
}

Result<const std::vector<int64_t>*> Hdf5Numbers::next_ints() {
  SPK_ASSIGN(const uint8_t* at, next_row());
  ints_.clear();
  for (uint64_t i = 0; i < row_elements_; ++i, at += element_.bytes) {
    const uint64_t bits = bits_at(at, element_);
    const unsigned unused = 64 - 8 * element_.bytes;
    if (element_.kind == ArrayElement::Kind::kUnsigned) {
      if (bits > INT64_MAX) return damaged(str_cat("number ", bits, " does not fit into 63 bits"));
      ints_.push_back(static_cast<int64_t>(bits));
    } else {
      ints_.push_back(static_cast<int64_t>(bits << unused) >> unused);
    }
  }
  return &ints_;
}

Result<const std::vector<double>*> Hdf5Numbers::next_floats() {
  SPK_ASSIGN(const uint8_t* at, next_row());
  floats_.clear();
  for (uint64_t i = 0; i < row_elements_; ++i, at += element_.bytes) {
    const uint64_t bits = bits_at(at, element_);
    floats_.push_back(element_.bytes == 8
                          ? std::bit_cast<double>(bits)
                          : double{std::bit_cast<float>(static_cast<uint32_t>(bits))});
  }
  return &floats_;
}

Status Hdf5Labels::next(SampleEntry* entry) {
  std::string why;
  if (numbers_.are_floats()) {
    SPK_ASSIGN(const std::vector<double>* labels, numbers_.next_floats());
    why = values_.set_floats(*labels, entry);
  } else {
    SPK_ASSIGN(const std::vector<int64_t>* labels, numbers_.next_ints());
    why = values_.set_ints(*labels, entry);
  }
  const uint64_t row = row_++;
  if (why.empty()) return {};
  return invalid_argument(str_cat("row ", row, ": ", why)).at_path(place_);
}

Result<std::unique_ptr<Hdf5Texts>> Hdf5Texts::open(Hdf5File& library, const File& file,
                                                   uint64_t memory_bytes,
                                                   const Hdf5Dataset& dataset) {
  std::unique_ptr<Hdf5Texts> texts(new Hdf5Texts(library, file, dataset));
  if (dataset.in_heap) {
    Status status = texts->open_heap(memory_bytes);
    if (!status.ok()) {
      return std::move(status).at_path(
          str_cat(escape_bytes(file.path()), ":", escape_bytes(dataset.path)));
    }
  }
  return texts;
}

Status Hdf5Texts::open_heap(uint64_t memory_bytes) {
  SPK_ASSIGN(storage_, library_.storage_of(dataset_));
  SPK_ASSIGN(const uint64_t file_bytes, file_.size());
  SPK_TRY(check_storage(storage_, file_bytes, memory_bytes));
  places_.emplace(file_, storage_, memory_bytes);
  SPK_ASSIGN(heap_, Hdf5Heap::open(file_));
  return {};
}

Result<std::string> Hdf5Texts::next_in_heap() {
  uint8_t place[kHeapPlaceBytes];
  SPK_TRY(places_->read(at_++, place));
  SPK_ASSIGN(const Hdf5Heap::Row row, heap_->find(place));
  if (row.bytes > kMostTextBytes) {
    return damaged(str_cat("a text of ", row.bytes, " bytes")).at_offset(row.offset);
  }
  std::vector<uint8_t> bytes(row.bytes);
  SPK_TRY(file_.read_exact(row.offset, bytes));
  return std::string(bytes.begin(), std::find(bytes.begin(), bytes.end(), 0));
}

Result<std::string> Hdf5Texts::next() {
  if (heap_) {
    auto text = next_in_heap();
    if (text.ok()) return text;
    const Status& status = text.status();
    return Status(status.code(), str_cat("texts of '", escape_bytes(dataset_.path), "', number ",
                                         at_ - 1, ": ", status.message()))
        .at_path(escape_bytes(file_.path()))
        .at_offset(status.offset());
  }
  if (at_ >= block_first_ + block_.size()) {
    block_first_ = at_;
    const uint64_t left = dataset_.sizes[0] - at_;
    SPK_ASSIGN(block_, library_.strings(dataset_, at_, std::min(left, kTextsAtOnce)));
  }
  return std::move(block_[at_++ - block_first_]);
}

}  // namespace spk
