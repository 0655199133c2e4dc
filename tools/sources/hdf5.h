// HDF5 files of pictures, in the forms that people use (hdf5_choose.h): one array, rows of bytes of
// any length, all bytes with offsets, or a dataset for each picture in groups that are classes.
//
// Listing asks the library where bytes lie; packing reads them there, without it. What does not
// lie in the file as it is needed (packed chunks, chunks that cut pictures) is written to the spool
// while it is listed. Arrays become uint8 height x width x channels; which size is which must be
// plain or said (--array-layout), and what other elements than bytes stand for as well
// (--array-scale). Keys are texts beside the pictures, the paths of datasets, or numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sources/hdf5_layout.h"
#include "sources/pieces.h"
#include "sources/source.h"

namespace spk {

// Where a picture lies and what it is, as its entry's path says.
struct Hdf5Place {
  ArrayElement element;
  std::string order;  // of its sizes; empty: it is the file of a picture
  ArrayScale scale = ArrayScale::kUnsaid;
  std::vector<Piece> pieces;  // of file 0, the HDF5 file, or file 1, what is in the spool
  bool operator==(const Hdf5Place&) const = default;
};
std::string encode_place(const Hdf5Place& place);
Result<Hdf5Place> decode_place(std::string_view text);

class Hdf5Source : public Source {
 public:
  static Result<std::unique_ptr<Source>> open_file(const PackOptions& options, std::string path,
                                                   std::shared_ptr<Spool> spool);

  bool lists_in_order() const override { return true; }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  Hdf5Source(std::string path, std::string spooled_name, std::shared_ptr<Spool> spool);

  std::string path_;
  std::string spooled_name_;
  std::shared_ptr<Spool> spool_;
  ContainerFiles files_;
};

}  // namespace spk
