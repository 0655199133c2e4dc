// What a source lists, and the bytes that it gives, gathered for comparison.
#pragma once

#include <string>
#include <vector>

#include "sources/source.h"

namespace spk::test {

struct Listed {
  Listing listing;
  std::vector<SampleEntry> entries;
  std::vector<std::string> payloads;  // of each; empty where it is rejected
};

// Lists and reads all of what lies at options.source; the reading by a second source that never
// listed, as another process would.
Result<Listed> list_all(const PackOptions& options, std::shared_ptr<Spool> spool = nullptr);

}  // namespace spk::test
