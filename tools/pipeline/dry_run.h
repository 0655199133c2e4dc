// What `stripepack pack --dry-run` finds out. Nothing is written anywhere.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipeline/pack_options.h"
#include "pipeline/plan.h"
#include "pipeline/quota.h"
#include "pipeline/read_timing.h"
#include "sources/source.h"

namespace spk {

// What one pack will take, told from the sizes of a sample of its samples.
struct PackEstimate {
  uint64_t chunk_count = 0;
  uint64_t padding_bytes = 0;  // zeros at the ends of chunks
  uint64_t table_bytes = 0;    // headers and sample tables of chunks, gaps between blobs
  uint64_t index_bytes = 0;    // footers and index
  uint64_t payload_bytes = 0;  // a guess where pictures are made anew
  uint64_t pack_bytes = 0;     // all of it and the payload
  uint64_t files = 0;
};

struct DryRunReport {
  Listing listing;
  struct Split {
    PlanInfo info;
    PackEstimate estimate;
    bool made_anew = false;
    std::string stripes_asked;                 // of the shards' files
    std::vector<std::string> stripes_reasons;  // why
  };
  std::vector<Split> splits;

  uint64_t pack_bytes = 0;  // all splits
  uint64_t files = 0;
  uint64_t work_bytes = 0;   // taken beside the packs while packing: plans and sorting
  uint64_t spool_bytes = 0;  // and by what of the source must be unpacked first

  std::string output_folder;  // the nearest folder of the output that exists
  std::optional<uint64_t> free_bytes;
  std::optional<uint64_t> free_files;
  QuotaLeft quota;
  // False: what is needed exceeds what is free or what a quota leaves, as far as either is known.
  bool fits = true;

  ReadRate sequential;
  ReadRate scattered;
  unsigned readers = 1;
  // To read the source once, in the order that packing does; nothing where no sample could be read.
  std::optional<double> read_seconds;
};

// Lists the source and reads a few dozen samples for about two seconds. Errors are those of
// make_plan, kCancelled among them. SPOOL: the measuring one that the source was opened with.
Result<DryRunReport> dry_run(const PackOptions& options, Source& source,
                             const std::atomic<bool>* cancel = nullptr, Spool* spool = nullptr);

// For people, several lines; and as one JSON object on one line (type "dry_run").
std::string to_text(const DryRunReport& report);
std::string to_json(const DryRunReport& report);

}  // namespace spk
