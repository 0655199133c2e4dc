#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/text.h"
#include "container/repair.h"
#include "container/seal.h"
#include "io/file.h"
#include "pipeline/pack_proof.h"
#include "pipeline/side_by_side.h"

namespace spk {

namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// Keys that the source lists and the pack may miss: to each whether `repair` dropped it, which the
// pack once had.
Result<std::unordered_map<std::string, bool>> load_rejects(const Pack& pack) {
  std::unordered_map<std::string, bool> rejected;
  SPK_TRY(each_reject(pack.directory(), pack.shards(), [&](const RejectRow& row) {
    rejected.emplace(row.key, row.reason.starts_with(kDroppedByRepair));
    return Status();
  }));
  return rejected;
}

class CompareWithSource {
 public:
  CompareWithSource(const Pack& pack, const std::string& split, const Source& source,
                    const Listing& listing, const ProofOptions& options)
      : pack_(pack), split_(split), source_(source), listing_(listing), options_(options) {}

  Status prepare();
  Status compare(const SampleEntry& entry, uint64_t sample);
  ProofCounts counts() const { return counts_; }

 private:
  void report(uint64_t sample, std::string_view key, std::string what, bool unreadable = false);
  Result<std::string> stored_label(uint64_t sample) const;
  Result<bool> compare_blob(const SampleEntry& entry, uint64_t sample, size_t blob,
                            SampleHandle& handle, uint64_t start, uint64_t bytes);
  Status compare_numbers(const SampleEntry& entry, uint64_t sample);
  std::string listed_label(const SampleEntry& entry) const;
  std::string class_or_number(int64_t label, const std::vector<std::string>& classes) const;

  const Pack& pack_;
  const std::string& split_;
  const Source& source_;
  const Listing& listing_;
  const ProofOptions& options_;
  std::vector<uint16_t> blobs_;  // of the listing, where they are in the pack
  std::vector<uint16_t> numbers_;
  uint16_t label_ = kNoField;
  std::vector<File> shards_;
  std::mutex mutex_;  // guards counts_ and the sink
  ProofCounts counts_;
};

void CompareWithSource::report(uint64_t sample, std::string_view key, std::string what,
                               bool unreadable) {
  const std::lock_guard lock(mutex_);
  counts_.faults += 1;
  counts_.unreadable += unreadable ? 1 : 0;
  options_.fault({split_, sample, std::string(key), std::move(what)});
}

Status CompareWithSource::prepare() {
  label_ = pack_.schema().find("label");
  const auto find = [this](const std::string& name, std::vector<uint16_t>* into) -> Status {
    const uint16_t field = pack_.schema().find(name);
    if (field == kNoField) {
      return Status(Code::kNotFound,
                    str_cat("the pack has no field '", name, "', which the source has"))
          .at_path(pack_.path());
    }
    into->push_back(field);
    return {};
  };
  for (const SourceBlob& blob : listing_.blobs) SPK_TRY(find(blob.name, &blobs_));
  for (const Field& field : listing_.numbers) SPK_TRY(find(field.name, &numbers_));
  for (uint32_t shard = 0; shard < pack_.shards().size(); ++shard) {
    SPK_ASSIGN(File file, File::open_read(pack_.directory(), shard_file_name(shard)));
    shards_.push_back(std::move(file));
  }
  return {};
}

std::string CompareWithSource::class_or_number(int64_t label,
                                               const std::vector<std::string>& classes) const {
  if (label >= 0 && static_cast<uint64_t>(label) < classes.size()) {
    return escape_bytes(classes[static_cast<size_t>(label)]);
  }
  return str_cat(label);
}

// Labels are compared by their classes' names: a split by itself has its own numbers for them.
std::string CompareWithSource::listed_label(const SampleEntry& entry) const {
  std::string text;
  for (const int64_t label : entry.int_labels) {
    text += class_or_number(label, listing_.classes) + " ";
  }
  for (const double label : entry.float_labels) text += format_fixed(label, 9) + " ";
  return text;
}

Result<std::string> CompareWithSource::stored_label(uint64_t sample) const {
  std::string text;
  if (label_ == kNoField) return text;
  if (pack_.schema().fields[label_].kind == FieldKind::kInt64) {
    SPK_ASSIGN(const std::vector<int64_t> labels, pack_.ints(sample, label_));
    for (const int64_t label : labels) {
      text += class_or_number(label, pack_.schema().classes) + " ";
    }
    return text;
  }
  SPK_ASSIGN(const std::vector<double> labels, pack_.floats(sample, label_));
  for (const double label : labels) text += format_fixed(label, 9) + " ";
  return text;
}

// Of one field, which lies at `start` of what the handle reads. False, and reported, where it
// differs.
Result<bool> CompareWithSource::compare_blob(const SampleEntry& entry, uint64_t sample, size_t blob,
                                             SampleHandle& handle, uint64_t start, uint64_t bytes) {
  const std::string of_field =
      blobs_.size() == 1 ? "" : str_cat(" (field ", listing_.blobs[blob].name, ")");
  SPK_ASSIGN(const SampleLocation where, pack_.locate(sample, blobs_[blob]));
  if (where.present != (bytes != kAbsentBlob)) {
    report(sample, entry.key,
           str_cat("is only in the ", where.present ? "pack" : "source", of_field));
    return false;
  }
  if (!where.present) return true;
  if (bytes != where.bytes) {
    report(sample, entry.key,
           str_cat("has ", where.bytes, " bytes in the pack, ", bytes, " in the source", of_field));
    return false;
  }
  std::vector<uint8_t> ours(std::min(bytes, kPieceBytes));
  std::vector<uint8_t> theirs(ours.size());
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t now = std::min<uint64_t>(ours.size(), bytes - done);
    const MutableByteSpan our_piece = MutableByteSpan(ours).first(now);
    const MutableByteSpan their_piece = MutableByteSpan(theirs).first(now);
    SPK_TRY(shards_[where.shard].read_exact(where.offset + done, our_piece));
    SPK_TRY(handle.read_at(start + done, their_piece));
    if (std::memcmp(our_piece.data(), their_piece.data(), now) != 0) {
      const auto differs = std::mismatch(our_piece.begin(), our_piece.end(), their_piece.begin());
      report(sample, entry.key,
             str_cat("differs from the source at byte ",
                     done + static_cast<uint64_t>(differs.first - our_piece.begin()), of_field));
      return false;
    }
    done += now;
  }
  return true;
}

Status CompareWithSource::compare_numbers(const SampleEntry& entry, uint64_t sample) {
  if (numbers_.empty()) return {};
  SPK_ASSIGN(const StoredSample stored, pack_.sample(sample));
  for (size_t i = 0; i < entry.numbers.size(); ++i) {
    if (stored.values(numbers_[i]) == entry.numbers[i]) continue;
    report(sample, entry.key,
           str_cat("has other values of ", listing_.numbers[i].name, " than the source"));
  }
  return {};
}

Status CompareWithSource::compare(const SampleEntry& entry, uint64_t sample) {
  if (options_.cancel != nullptr && options_.cancel->load()) {
    return Status(Code::kCancelled, "stopped");
  }
  {
    const std::lock_guard lock(mutex_);
    counts_.samples += 1;
  }
  auto handle = source_.open(entry);
  if (!handle.ok()) {
    const Code code = handle.status().code();
    report(sample, entry.key, "cannot be read from the source: " + handle.status().to_string(),
           code == Code::kIo || code == Code::kDenied || code == Code::kNoMemory);
    return {};
  }
  uint64_t start = 0;
  for (size_t blob = 0; blob < blobs_.size(); ++blob) {
    const bool one_blob = entry.blob_bytes.empty() && blob == 0;
    const uint64_t bytes = one_blob ? (*handle)->size_bytes() : entry.bytes_of_blob(blob);
    SPK_ASSIGN(const bool same, compare_blob(entry, sample, blob, **handle, start, bytes));
    if (!same) return {};
    if (bytes != kAbsentBlob) start += bytes;
  }
  SPK_TRY(compare_numbers(entry, sample));
  SPK_ASSIGN(const std::string stored, stored_label(sample));
  const std::string listed = listed_label(entry);
  if (stored != listed) {
    report(sample, entry.key,
           str_cat("has label ", stored, "in the pack, ", listed, "in the source"));
  }
  if (options_.advance) options_.advance(1, start);
  return {};
}

}  // namespace

Result<std::vector<SourceMatch>> match_source(const Pack& pack, const std::string& split,
                                              const Listing& listing,
                                              std::vector<SampleEntry> entries,
                                              const ProofOptions& options, ProofCounts* counts) {
  const auto report = [&](uint64_t sample, const std::string& key, const char* what) {
    counts->faults += 1;
    options.fault({split, sample, key, what});
  };
  SPK_ASSIGN(const auto rejected, load_rejects(pack));
  // A list may name one file several times; each naming has a sample of its own.
  std::unordered_multimap<std::string, uint64_t> by_key;
  by_key.reserve(pack.sample_count());
  for (uint64_t sample = 0; sample < pack.sample_count(); ++sample) {
    SPK_ASSIGN(std::string key, pack.key(sample));
    by_key.emplace(std::move(key), sample);
  }
  std::vector<SourceMatch> matches;
  matches.reserve(entries.size());
  for (SampleEntry& entry : entries) {
    // Among equal keys the one of the same place in the list, where places are known.
    auto [first, last] = by_key.equal_range(entry.key);
    auto match = first;
    for (auto at = first; listing.ordered && at != last; ++at) {
      SPK_ASSIGN(const uint64_t ordinal, pack.ordinal(at->second));
      if (ordinal == entry.ordinal) match = at;
    }
    if (first == last) {
      const auto reject = rejected.find(entry.key);
      if (reject != rejected.end() && reject->second) {
        report(UINT64_MAX, entry.key, "is in the source, and was dropped from the pack by repair");
      } else if (entry.reject.empty() && reject == rejected.end()) {
        report(UINT64_MAX, entry.key, "is in the source but not in the pack");
      }
      continue;
    }
    matches.push_back({match->second, std::move(entry)});
    by_key.erase(match);
  }
  if (options.subset) return matches;
  for (const auto& [key, sample] : by_key) {
    report(sample, key, "is in the pack but not in the source");
  }
  return matches;
}

Result<ProofCounts> compare_matches(const Pack& pack, const std::string& split,
                                    const Source& source, const Listing& listing,
                                    const std::vector<SourceMatch>& matches,
                                    const ProofOptions& options) {
  CompareWithSource compare(pack, split, source, listing, options);
  SPK_TRY(compare.prepare());
  SPK_TRY(side_by_side(options.jobs, matches.size(), [&](uint64_t i) -> Status {
    return compare.compare(matches[i].entry, matches[i].sample);
  }));
  return compare.counts();
}

Result<ProofCounts> compare_with_source(const Pack& pack, const std::string& split,
                                        const Source& source, const Listing& listing,
                                        std::vector<SampleEntry> entries,
                                        const ProofOptions& options) {
  ProofCounts unmatched;
  SPK_ASSIGN(const std::vector<SourceMatch> matches,
             match_source(pack, split, listing, std::move(entries), options, &unmatched));
  SPK_ASSIGN(ProofCounts counts, compare_matches(pack, split, source, listing, matches, options));
  counts.faults += unmatched.faults;
  return counts;
}

}  // namespace spk
