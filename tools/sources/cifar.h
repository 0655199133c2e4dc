// CIFAR-10 and CIFAR-100 in their binary form: records of one label byte (CIFAR-100: a coarse and a
// fine one) and 32 x 32 pixels in a red, a green and a blue plane. SRC is the folder of
// data_batch_1.bin ... test_batch.bin, or of train.bin and test.bin; or one such file.
//
// The form has no magic number: it is told by the names that its files have, and by sizes that are
// whole records. Splits train and test; a single file has none. Keys are the file's name without
// its suffix and the record's number in it. Pixels are stored as height x width x RGB. Names of
// classes come from batches.meta.txt, or fine_label_names.txt, where that lies beside. CIFAR-100:
// the label is the fine one, `coarse` a field beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sources/container_set.h"
#include "sources/source.h"

namespace spk {

class CifarSource : public Source {
 public:
  static Result<std::unique_ptr<Source>> open_files(std::vector<std::string> paths,
                                                    std::shared_ptr<Spool> spool, bool is_folder);

  bool lists_in_order() const override { return true; }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  CifarSource(std::unique_ptr<ContainerSet> set, uint64_t record_bytes, bool has_splits)
      : set_(std::move(set)), record_bytes_(record_bytes), has_splits_(has_splits) {}
  Status list_file(uint32_t file, Listing* listing, uint64_t* ordinal, const Sink& sink) const;
  Status read_class_names(Listing* listing) const;

  std::unique_ptr<ContainerSet> set_;
  uint64_t record_bytes_;
  bool has_splits_;
};

}  // namespace spk
