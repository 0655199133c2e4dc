#include "sources/manifest.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sources/file_sample.h"
#include "sources/list_labels.h"
#include "sources/ordered_stat.h"

namespace spk {

namespace {

constexpr unsigned kDefaultThreads = 16;
constexpr unsigned kMostThreads = 256;

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::unique_ptr<Source>> ManifestSource::open_list(const std::string& list_path,
                                                          const std::string& root) {
  SPK_ASSIGN(File file, File::open_read(list_path));
  Result<Directory> folder = Directory::open(root.empty() ? folder_of(list_path) : root);
  if (!folder.ok()) {
    return std::move(folder).status().with_hint(
        "--root names the folder that the list's paths are relative to");
  }
  std::unique_ptr<ManifestSource> source(new ManifestSource(std::move(file), std::move(*folder)));
  // What is wrong with the list is for list() to say.
  const auto form = recognise_form(source->file_, list_path);
  source->list_tells_sizes_ = form.ok() && form->form == ListForm::kStatted;
  return std::unique_ptr<Source>(std::move(source));
}

Result<Listing> ManifestSource::list(const PackOptions& options, const Sink& sink) {
  const std::string& list_path = file_.path();
  SPK_ASSIGN(const RecognisedForm form, recognise_form(file_, list_path));
  Listing listing;
  listing.source_kind = "manifest";
  listing.form = form.name;
  listing.splits = {""};
  listing.ordered = true;

  ListRecord record;
  SPK_ASSIGN(auto reader, open_records(file_, list_path, form));
  SPK_ASSIGN(bool more, reader->next(&record));
  if (!more) return invalid_argument("the list is empty: it names no sample").at_path(list_path);
  SPK_ASSIGN(const auto labels,
             choose_labels(options, form, *reader, record, list_path, root_.path()));
  if (labels->needs_first_reading()) {
    while (more) {
      SPK_TRY(labels->learn(record));
      SPK_ASSIGN(more, reader->next(&record));
    }
    SPK_TRY(labels->learned(&listing));
    SPK_ASSIGN(reader, open_records(file_, list_path, form));
    SPK_ASSIGN(more, reader->next(&record));
  }

  const unsigned threads = options.io_threads == 0 ? kDefaultThreads : options.io_threads;
  OrderedStat entries(root_.fd(), std::min(threads, kMostThreads), form.form != ListForm::kStatted,
                      sink);
  for (uint64_t ordinal = 0; more; ++ordinal) {
    SampleEntry entry;
    entry.key = record.path;
    entry.ordinal = ordinal;
    entry.size_bytes = record.size_bytes;
    entry.mtime_ns = record.mtime_ns;
    SPK_TRY(labels->apply(record, &entry));
    SPK_TRY(entries.add(std::move(entry)));
    SPK_ASSIGN(more, reader->next(&record));
  }
  SPK_TRY(entries.finish());
  labels->finish(&listing);
  return listing;
}

Result<std::unique_ptr<SampleHandle>> ManifestSource::open(const SampleEntry& entry) const {
  return open_file_sample(root_, entry, list_tells_sizes_ ? file_.path() : std::string());
}

}  // namespace spk
