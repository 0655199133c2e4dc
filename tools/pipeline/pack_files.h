// What lies at OUT, and the files of a pack that tell of its making.
#pragma once

#include <sys/stat.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "container/seal.h"
#include "pipeline/claim.h"
#include "pipeline/pack_options.h"
#include "pipeline/pack_run.h"

namespace spk {

enum class OutputKind { kEmptyDirectory, kPack, kForeign };
// REQUIRES that `name` exists in `parent`. A folder of packs (splits) is a pack.
Result<OutputKind> classify_output(const Directory& parent, const std::string& name);

// Whether FOLDER is TOP or lies inside it; by inode, so that links and .. cannot deceive.
bool is_or_lies_in(std::string folder, const struct stat& top);
// SRC is never written into: kInvalidArgument where OUT would lie inside a source folder, or be it.
Status refuse_output_in_source(const PackOptions& options, const OutputPlace& place);

// Empty where the published pack at `output` has the plans of `splits`; otherwise what differs.
// *rejects: of the packs that were found there.
Status describe_published_difference(const std::string& output,
                                     const std::vector<SplitOutcome>& splits,
                                     std::string* difference, uint64_t* rejects);

inline constexpr std::string_view kSha256Name = "SHA256SUMS";
// Reads all files of a pack that is sealed.
Status write_sha256_sums(const Directory& dir, uint32_t shard_count);

// layout.json, run.json and, with --sha256, SHA256SUMS: not part of the pack's identity.
Status write_companion_files(const Directory& dir, const PackOptions& options,
                             const std::string& command_line, const StripeOutcome& stripes,
                             const SealSummary& sealed);

std::string most_frequent(const std::map<std::string, uint64_t>& counts);

}  // namespace spk
