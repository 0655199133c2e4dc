// An LMDB environment: Caffe's (each value a Datum) or a plain one (each value a picture), told by
// the values. SRC is the environment's folder, its data.mdb, or a file made with MDB_NOSUBDIR.
//
// Keys and order are the database's. The unnamed database is taken, or --db NAME; where the unnamed
// one holds nothing but one named database, that one.
// Datum: encoded pictures are kept; raw ones become uint8 height x width x channels, RGB (Caffe
// keeps blue, green, red planes; other numbers of channels than 3 stay in their order). One
// database holds one sort, that of its first Datum. Labels as in the Datum; where the first has
// none, the set is unlabelled.
// Pictures: labels by --label-from; names of classes are numbered in byte order.
// A value that does not fit rejects its sample; where that is half of them, the environment is
// refused, for it is something else. A cut file is refused, or read as far as it goes (--salvage).
// No lock is taken: a file that changes meanwhile is told by its mtime.
#pragma once

#include <memory>
#include <string>

#include "sources/container_set.h"
#include "sources/source.h"

namespace spk {

class LmdbSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> open_file(const std::string& data_path);

  bool lists_in_order() const override { return true; }
  // Reads the tree twice; of the values only what is around the pictures.
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  explicit LmdbSource(std::unique_ptr<ContainerSet> set) : set_(std::move(set)) {}
  std::unique_ptr<ContainerSet> set_;  // one file
};

}  // namespace spk
