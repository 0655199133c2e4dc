// index.json of a MosaicML MDS dataset (version 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sources/forward_reader.h"

namespace spk {

// How a column's bytes are to be understood.
enum class MdsType { kBytes, kText, kPil, kInt, kUnsigned, kFloat16, kFloat32, kFloat64 };

struct MdsColumn {
  std::string name;
  std::string encoding;  // as written
  MdsType type = MdsType::kBytes;
  std::optional<uint64_t> bytes;  // where every sample has so many
  bool operator==(const MdsColumn&) const = default;

  bool is_number() const { return type >= MdsType::kInt; }
};

struct MdsShard {
  std::string name;  // of the file that is there: raw, or packed
  Packing packing = Packing::kNone;
  uint64_t samples = 0;
  uint64_t raw_bytes = 0;
  std::vector<MdsColumn> columns;
};

// Of the dataset in FOLDER. kNotThisFormat where there is no such index; kUnsupported for other
// versions, formats and ways of packing.
Result<std::vector<MdsShard>> read_mds_index(const std::string& folder);
// Whether FOLDER has an index that begins as one of MDS.
bool has_mds_index(const std::string& folder);

}  // namespace spk
