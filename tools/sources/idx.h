// IDX files, as MNIST and its kin come: one of pictures (unsigned bytes, N x height x width, or
// with channels as a fourth size) and one of labels (integers of any size, N). SRC is the folder
// that holds such pairs, or a file of pictures whose labels lie beside it. Each may be packed with
// gzip, whatever its name: it is unpacked into the spool then.
//
// What a file is, its header says; which belong together, their names: "images" in the one is
// "labels" in the other. train-... and t10k-... (or test-, val-, valid-, validation-) are splits.
// Without labels the set is unlabelled, with a warning. Counts that differ, and files that are not
// as long as their header says, are refused. Keys are numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sources/container_set.h"
#include "sources/source.h"

namespace spk {

struct IdxHeader {
  uint8_t type = 0;  // kIdxUint8 ...
  std::vector<uint64_t> sizes;
  uint64_t element_bytes = 1;
  uint64_t head_bytes = 0;
  uint64_t data_bytes = 0;
};
inline constexpr uint8_t kIdxUint8 = 0x08;
inline constexpr uint8_t kIdxInt8 = 0x09;
inline constexpr uint8_t kIdxInt16 = 0x0b;
inline constexpr uint8_t kIdxInt32 = 0x0c;
inline constexpr uint8_t kIdxFloat32 = 0x0d;
inline constexpr uint8_t kIdxFloat64 = 0x0e;
inline constexpr size_t kIdxMostHeadBytes = 4 + 4 * 4;

// kNotThisFormat where HEAD does not begin an IDX file of one to four sizes; kDamaged where it is
// cut, or its sizes multiply to more than there can be.
Result<IdxHeader> parse_idx_header(ByteSpan head);

class IdxSource : public Source {
 public:
  // One set of pictures and its labels, by number of file.
  struct Pair {
    uint32_t images = 0;
    uint32_t labels = kNone;
    std::string split;
    static constexpr uint32_t kNone = UINT32_MAX;
  };
  static Result<std::unique_ptr<Source>> open_files(const std::vector<std::string>& paths,
                                                    bool is_folder, std::shared_ptr<Spool> spool);

  bool lists_in_order() const override { return true; }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  IdxSource(std::unique_ptr<ContainerSet> set, std::vector<Pair> pairs)
      : set_(std::move(set)), pairs_(std::move(pairs)) {}
  Status list_pair(const Pair& pair, const PackOptions& options, Listing* listing,
                   uint64_t* ordinal, const Sink& sink) const;

  std::unique_ptr<ContainerSet> set_;
  std::vector<Pair> pairs_;
};

}  // namespace spk
