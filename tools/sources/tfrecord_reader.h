// Records of a TFRecord file by their places: length, its CRC, data, their CRC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/forward_reader.h"

namespace spk {

struct TfRecord {
  uint64_t offset = 0;  // of the record
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
  bool crc_is_right = false;  // that of the data
  bool is_held = false;       // `data` are all its bytes, valid until the next record
  ByteSpan data;
};

class TfRecordReader {
 public:
  static constexpr uint64_t kFrameBytes = 16;  // of a record beside its data
  static constexpr uint64_t kHeaderBytes = 12;

  // READER outlives this. Records of more than HELD_BYTES are checked piece by piece.
  TfRecordReader(ForwardReader* reader, uint64_t held_bytes)
      : reader_(*reader), held_bytes_(held_bytes) {}

  // False at the end. kDamaged, with the record's offset, where a length is damaged or the file is
  // cut.
  Result<bool> next(TfRecord* record);

  // Whether a file may begin so: a length with its CRC.
  static bool is_tfrecord(ByteSpan head);

 private:
  Status bad(std::string what) const;
  Status check_large(TfRecord* record);

  ForwardReader& reader_;
  uint64_t held_bytes_;
  uint64_t at_ = 0;
};

}  // namespace spk
