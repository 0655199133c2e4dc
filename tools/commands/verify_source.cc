#include "commands/verify_source.h"

#include <algorithm>
#include <mutex>

#include "base/varint.h"
#include "commands/rank_damage.h"
#include "pipeline/entry_codec.h"

namespace spk {

namespace {

// What ranks are told of their samples at a time.
constexpr size_t kMessageBytes = size_t{16} << 20;

using Matches = std::vector<std::vector<SourceMatch>>;  // of each pack

Status garbled() { return internal_error("a rank sent what no rank sends"); }

std::string setting(const Settings& settings, std::string_view wanted) {
  for (const auto& [name, value] : settings) {
    if (name == wanted) return value;
  }
  return {};
}

// Its source has other bytes, rightly.
Status refuse_made_anew(const Pack& pack) {
  if (setting(pack.settings(), "transform").empty()) return {};
  return unsupported("the pack's pictures were made anew while packing; the source has other bytes")
      .at_path(pack.path())
      .with_hint("verify --decode looks at what is in the pack");
}

PackOptions as_packed(PackOptions options, const NamedPack& pack) {
  options.splits = pack.split.empty() ? SplitMode::kNone : SplitMode::kAuto;
  if (options.labels != LabelMode::kAuto) return options;
  const std::string labels = setting(pack.pack->settings(), "labels");
  if (labels == "float") options.labels = LabelMode::kFloat;
  if (labels == "none") options.labels = LabelMode::kNone;
  return options;
}

// All that comparing needs of it.
std::string encode_names(const Listing& listing) {
  std::string bytes;
  append_varint(bytes, listing.blobs.size());
  for (const SourceBlob& blob : listing.blobs) append_string(bytes, blob.name);
  append_varint(bytes, listing.numbers.size());
  for (const Field& field : listing.numbers) append_string(bytes, field.name);
  append_varint(bytes, listing.classes.size());
  for (const std::string& name : listing.classes) append_string(bytes, name);
  return bytes;
}

bool decode_names(std::string_view bytes, Listing* listing) {
  ByteSpan rest = as_bytes(bytes);
  const auto each = [&](const auto& take) {
    uint64_t count = 0;
    if (!take_varint(&rest, &count)) return false;
    for (std::string_view name; count != 0; --count) {
      if (!take_string(&rest, &name)) return false;
      take(std::string(name));
    }
    return true;
  };
  listing->blobs.clear();
  return each([&](std::string name) { listing->blobs.push_back({std::move(name)}); }) &&
         each([&](std::string name) { listing->numbers.emplace_back().name = std::move(name); }) &&
         each([&](std::string name) { listing->classes.push_back(std::move(name)); }) &&
         rest.empty();
}

class ProveBySource {
 public:
  ProveBySource(Team& team, Progress& progress, const std::vector<NamedPack>& packs,
                const ProofOptions& options)
      : team_(team), progress_(progress), packs_(packs), options_(options) {
    options_.fault = [this](const ProofFault& fault) { faults_.push_back(fault); };
  }

  Status run(const PackOptions& against);
  const ProofCounts& counts() const { return counts_; }
  const std::vector<ProofFault>& faults() const { return faults_; }
  const std::string& other_features() const { return other_features_; }

 private:
  Status list_and_match(const PackOptions& against);
  void report(const std::string& split, const char* what);
  Result<uint32_t> rank_of(const Pack& pack, uint64_t sample) const;
  Status deal();
  Status take(std::string_view message);
  Status compare();

  Team& team_;
  Progress& progress_;
  const std::vector<NamedPack>& packs_;
  ProofOptions options_;
  std::shared_ptr<Spool> spool_ = Spool::make_temporary();
  std::unique_ptr<Source> source_;
  Listing listing_;  // of other ranks than the first: names only
  Matches matches_;  // of the first rank all, until they are dealt
  ProofCounts counts_;
  std::vector<ProofFault> faults_;
  std::string other_features_;
};

void ProveBySource::report(const std::string& split, const char* what) {
  counts_.faults += 1;
  options_.fault({split, UINT64_MAX, "", what});
}

Status ProveBySource::list_and_match(const PackOptions& against) {
  progress_.stage("listing");
  std::mutex mutex;
  std::vector<std::vector<SampleEntry>> entries;
  SPK_ASSIGN(listing_, source_->list(against, [&](SampleEntry&& entry) -> Status {
    if (options_.cancel->load()) return Status(Code::kCancelled, "stopped");
    const std::lock_guard lock(mutex);
    if (entry.split >= entries.size()) entries.resize(entry.split + 1);
    entries[entry.split].push_back(std::move(entry));
    return {};
  }));
  entries.resize(std::max(entries.size(), listing_.splits.size()));
  // The likeliest reason why all differs: SRC was not read as it was when it was packed.
  const std::string packed_by = setting(packs_.front().pack->settings(), "features");
  if (packed_by != setting(listing_.decisions, "features")) other_features_ = packed_by;
  std::vector<bool> listed(packs_.size());
  for (size_t split = 0; split < listing_.splits.size(); ++split) {
    const std::string& name = listing_.splits[split];
    const auto pack = std::find_if(packs_.begin(), packs_.end(),
                                   [&](const NamedPack& one) { return one.split == name; });
    if (pack == packs_.end()) {
      report(name, "is a split that has no pack");
      continue;
    }
    const auto number = static_cast<size_t>(pack - packs_.begin());
    listed[number] = true;
    SPK_ASSIGN(matches_[number], match_source(*pack->pack, name, listing_,
                                              std::move(entries[split]), options_, &counts_));
  }
  for (size_t i = 0; i < packs_.size(); ++i) {
    if (!listed[i]) report(packs_[i].split, "is a pack that the source has no split for");
  }
  return {};
}

Result<uint32_t> ProveBySource::rank_of(const Pack& pack, uint64_t sample) const {
  if (spool_->is_used()) return 0;
  SPK_ASSIGN(const uint64_t chunk, pack.chunk_of(sample));
  return static_cast<uint32_t>(chunk % team_.size());
}

// The first rank tells all ranks of all samples but its own, some at a time, and ends with nothing.
// After trouble the ranks go on to meet as often as the others do.
Status ProveBySource::deal() {
  Status status;
  std::string message;
  const auto exchange = [&]() -> Result<bool> {
    SPK_ASSIGN(const std::vector<std::string> told, team_.all_gather(message));
    message.clear();
    if (!team_.first() && status.ok()) status = take(told[0]);
    return !told[0].empty();
  };
  for (size_t pack = 0; team_.first() && pack < packs_.size(); ++pack) {
    std::vector<SourceMatch> own;
    for (SourceMatch& match : matches_[pack]) {
      const auto rank = rank_of(*packs_[pack].pack, match.sample);
      if (status.ok()) status = rank.status();
      if (!status.ok()) break;
      if (*rank == 0) {
        own.push_back(std::move(match));
        continue;
      }
      append_varint(message, pack);
      append_varint(message, match.sample);
      append_entry(message, match.entry);
      if (message.size() >= kMessageBytes) SPK_TRY(exchange().status());
    }
    matches_[pack] = std::move(own);
  }
  for (bool more = true; more;) {
    SPK_ASSIGN(more, exchange());
  }
  return status;
}

// Keeps what is dealt to this rank.
Status ProveBySource::take(std::string_view message) {
  ByteSpan rest = as_bytes(message);
  while (!rest.empty()) {
    uint64_t pack = 0;
    SourceMatch match;
    if (!take_varint(&rest, &pack) || !take_varint(&rest, &match.sample) || pack >= packs_.size() ||
        !take_entry(&rest, &match.entry).ok()) {
      return garbled();
    }
    SPK_ASSIGN(const uint32_t rank, rank_of(*packs_[pack].pack, match.sample));
    if (rank == team_.rank()) matches_[pack].push_back(std::move(match));
  }
  return {};
}

Status ProveBySource::compare() {
  StageTotals totals;
  for (const auto& of_pack : matches_) totals.samples += of_pack.size();
  progress_.stage("comparing", totals);
  for (size_t i = 0; i < packs_.size(); ++i) {
    if (matches_[i].empty()) continue;
    SPK_ASSIGN(const ProofCounts counts, compare_matches(*packs_[i].pack, packs_[i].split, *source_,
                                                         listing_, matches_[i], options_));
    counts_.samples += counts.samples;
    counts_.faults += counts.faults;
    counts_.unreadable += counts.unreadable;
  }
  return {};
}

Status ProveBySource::run(const PackOptions& against) {
  matches_.resize(packs_.size());
  Status status;
  for (const NamedPack& pack : packs_) {
    if (status.ok()) status = refuse_made_anew(*pack.pack);
  }
  if (status.ok()) {
    auto opened = open_source(against, spool_);
    status = opened.status();
    if (opened.ok()) source_ = std::move(opened).value();
  }
  // Nobody lists before all ranks can read the source.
  SPK_TRY(agree(team_, status, "").status());
  if (team_.first()) status = list_and_match(against);
  SPK_ASSIGN(const std::vector<std::string> told,
             agree(team_, status, team_.first() && status.ok() ? encode_names(listing_) : ""));
  if (!team_.first() && !decode_names(told[0], &listing_)) status = garbled();
  const Status dealt = deal();
  if (status.ok()) status = dealt;
  return status.ok() ? compare() : status;
}

}  // namespace

Result<SourceProof> prove_by_source(Team& team, Progress& progress,
                                    const std::vector<NamedPack>& packs, PackOptions against,
                                    const ProofOptions& options) {
  ProveBySource prove(team, progress, packs, options);
  const Status status = prove.run(as_packed(std::move(against), packs.front()));
  SourceProof proof;
  SPK_ASSIGN(proof.counts,
             combine_proofs(team, status, prove.counts(), prove.faults(), options.fault));
  proof.other_features = prove.other_features();
  return proof;
}

}  // namespace spk
