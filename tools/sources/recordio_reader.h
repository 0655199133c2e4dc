// Records of an MXNet RecordIO file by their places. A payload is cut wherever the file's magic
// word would stand in it, at a multiple of four; the word is left out and comes back on reading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/forward_reader.h"
#include "sources/pieces.h"

namespace spk {

struct RecordIoRecord {
  uint64_t offset = 0;        // of its first part
  uint64_t bytes = 0;         // of the payload
  std::vector<Piece> pieces;  // of the payload, with the words that were left out
  // IRHeader, where the payload has one.
  bool has_header = false;
  std::vector<float> labels;
  uint64_t id = 0;
  uint64_t picture_offset = 0;  // in the payload: behind header and labels

  // What lies behind the header.
  std::vector<Piece> picture() const;
};

class RecordIoReader {
 public:
  // READER outlives this. Places are in file number FILE.
  RecordIoReader(ForwardReader* reader, uint32_t file) : reader_(*reader), file_(file) {}

  // False at the end. kDamaged, with the offset, where the file breaks its form or is cut.
  Result<bool> next(RecordIoRecord* record);

  static bool is_recordio(ByteSpan head);

 private:
  struct Part;
  Status bad(std::string what, uint64_t offset) const;
  Result<bool> take_part(Part* part);
  Status take_head(const Part& part, std::string* head, uint64_t* wanted);
  static void read_head(const std::string& head, RecordIoRecord* record);

  ForwardReader& reader_;
  uint32_t file_;
  uint64_t at_ = 0;
};

}  // namespace spk
