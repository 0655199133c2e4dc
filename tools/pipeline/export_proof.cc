#include "pipeline/export_proof.h"

#include <algorithm>
#include <mutex>

#include "base/text.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

// How the source is to understand what it reads, as far as the pack tells.
PackOptions source_options(const ExportJob& job, const ReadBack& how, const std::string& path) {
  PackOptions options = how.options;
  options.source = how.file.empty() ? path : path + "/" + how.file;
  if (how.options.source_kind == "manifest") options.root = path;
  options.splits = SplitMode::kNone;
  options.jobs = job.jobs;
  options.memory_bytes = job.options.memory_bytes;
  const Schema& schema = job.pack->schema();
  const uint16_t label = schema.find("label");
  if (label == kNoField) {
    options.labels = LabelMode::kNone;
  } else if (schema.fields[label].kind != FieldKind::kInt64) {
    options.labels = LabelMode::kFloat;
  }
  return options;
}

// The files hold the samples in the order of the export: each entry gets the key and the place
// that its sample has in the pack. Those that are no samples are told and left out.
Status match_entries(const ExportJob& job, const std::string& split, bool has_keys,
                     const ProofOptions& options, std::vector<SampleEntry>* entries,
                     uint64_t* faults) {
  const auto report = [&](uint64_t sample, const std::string& key, std::string what) {
    ++*faults;
    options.fault({split, sample, key, std::move(what)});
  };
  std::sort(entries->begin(), entries->end(),
            [](const auto& a, const auto& b) { return a.ordinal < b.ordinal; });
  if (entries->size() != job.samples.size()) {
    report(UINT64_MAX, "",
           str_cat(entries->size(), " samples are in the files, ", job.samples.size(),
                   " were exported"));
    entries->clear();
    return {};
  }
  std::vector<SampleEntry> good;
  for (size_t i = 0; i < entries->size(); ++i) {
    SampleEntry& entry = (*entries)[i];
    const uint64_t sample = job.samples[i];
    SPK_ASSIGN(std::string key, job.pack->key(sample));
    if (!entry.reject.empty()) {
      report(sample, key, "is no sample in the files: " + entry.reject);
      continue;
    }
    if (has_keys && entry.key != key) {
      report(sample, key, str_cat("has the key '", escape_bytes(entry.key), "' in the files"));
      continue;
    }
    if (entry.path.empty()) entry.path = entry.key;  // where the file lies stays what it is
    entry.key = std::move(key);
    SPK_ASSIGN(entry.ordinal, job.pack->ordinal(sample));
    good.push_back(std::move(entry));
  }
  *entries = std::move(good);
  return {};
}

}  // namespace

Status can_prove_export(const ExportJob& job) {
  SPK_ASSIGN(const ReadBack how, job.sink->read_back());
  for (const SourceKind& kind : source_kinds()) {
    if (kind.name == how.options.source_kind) return {};
  }
  return unsupported(str_cat("this program has no source '", how.options.source_kind,
                             "' to read the files back"))
      .with_hint("leave --verify off");
}

Result<ProofCounts> prove_export(const ExportJob& job, const std::string& path,
                                 const std::string& split, const ProofOptions& options) {
  SPK_ASSIGN(const ReadBack how, job.sink->read_back());
  const PackOptions source_is = source_options(job, how, path);
  SPK_ASSIGN(const std::unique_ptr<Source> source, open_source(source_is, Spool::make_temporary()));
  std::mutex mutex;
  std::vector<SampleEntry> entries;
  SPK_ASSIGN(Listing listing, source->list(source_is, [&](SampleEntry&& entry) -> Status {
    if (job.cancel != nullptr && job.cancel->load()) return Status(Code::kCancelled, "stopped");
    const std::lock_guard lock(mutex);
    entries.push_back(std::move(entry));
    return {};
  }));
  uint64_t faults = 0;
  SPK_TRY(match_entries(job, split, how.has_keys, options, &entries, &faults));
  listing.ordered = true;
  // Labels are compared by the names of their classes where there are names; few formats keep them.
  if (listing.classes.empty()) listing.classes = job.pack->schema().classes;
  ProofOptions of_some = options;
  of_some.subset = true;
  SPK_ASSIGN(ProofCounts counts,
             compare_with_source(*job.pack, split, *source, listing, std::move(entries), of_some));
  counts.faults += faults;
  return counts;
}

}  // namespace spk
