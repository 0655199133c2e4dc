// What a format that packs are exported to must offer. A sink writes files; which samples go into
// which file, threads, names that appear only when all is done, and going on after a stop are the
// exporter's (pipeline/export_run.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "container/pack.h"
#include "io/directory.h"
#include "pipeline/pack_options.h"
#include "sinks/blob_copy.h"

namespace spk {

struct ExportOptions {
  std::string kind;            // --to
  uint64_t shard_bytes = 0;    // payload of an output file, about; 0: the sink's own choice
  uint64_t shard_count = 0;    // instead of that
  uint64_t shard_samples = 0;  // likewise
  bool source_order = false;   // by ordinal instead of as stored
  std::string prefix;          // of file names; empty: the split's name, else "data"
  std::string layout;          // of kinds that have several; empty: the first
  uint64_t memory_bytes = uint64_t{512} << 20;
};

// One field of bytes of a sample. Small ones are in memory; large ones come in pieces.
struct ExportBlob {
  bool present = false;
  uint64_t bytes = 0;
  ByteSpan data;                                       // where `stream` is not set
  std::function<Status(const ByteSink& take)> stream;  // from the beginning, at each call
  Status each_piece(const ByteSink& take) const { return stream ? stream(take) : take(data); }
};

struct ExportSample {
  uint64_t place = 0;                    // among those exported, through all files
  uint64_t number = 0;                   // in the pack
  const StoredSample* stored = nullptr;  // key, ordinal, numbers
  std::span<const ExportBlob> blobs;     // by field of the schema; numeric ones are absent
};

// What an output file holds. `note` is the sink's own, for finish(); it survives a stop.
struct ExportedFile {
  uint64_t samples = 0;
  uint64_t bytes = 0;  // of the file
  std::string note;
};

// An output file that is to be written.
struct ExportFile {
  uint64_t number = 0;
  uint64_t count = 1;  // of all files
  uint64_t first_place = 0;
  std::span<const uint64_t> samples;  // their numbers in the pack, in order
};

// Writes one output file; for one thread.
class FileSink {
 public:
  virtual ~FileSink() = default;
  // In order. kUnsupported where the format cannot take the sample; the export ends then.
  virtual Status add(const ExportSample& sample) = 0;
  // The file is on disk and has its name.
  virtual Result<ExportedFile> finish() = 0;
};

// How this program's own source reads what a sink has written.
struct ReadBack {
  PackOptions options;    // the kind of the source, and what shapes its samples
  std::string file;       // what to open of the directory; empty: the directory
  bool has_keys = false;  // the source gives the pack's own keys; else samples are told by place
};

class Sink {
 public:
  virtual ~Sink() = default;
  // How many files SAMPLES samples of PAYLOAD_BYTES make, where the user did not say.
  virtual uint64_t default_file_count(uint64_t samples, uint64_t payload_bytes) const;
  // Formats that know only one file.
  virtual bool single_file() const { return false; }
  // False: blobs are told with their sizes, but without bytes.
  virtual bool reads_blobs() const { return true; }
  // Writes below `directory`, which is there and outlives it; what an earlier
  // attempt left there under the same names is replaced. Thread-safe.
  virtual Result<std::unique_ptr<FileSink>> begin(const Directory& directory,
                                                  const ExportFile& file) const = 0;
  // kUnsupported where the files cannot be read back.
  virtual Result<ReadBack> read_back() const;
  // Once all files are there: indexes over them.
  virtual Status finish(const Directory& directory, std::span<const ExportedFile> files) const;
};

struct SinkKind {
  const char* name;  // --to NAME
  const char* what;  // for help
  // kUnsupported where the pack has what the format cannot hold; kInvalidArgument names the option.
  Result<std::unique_ptr<Sink>> (*open)(const ExportOptions& options, const Pack& pack);
};

std::span<const SinkKind> sink_kinds();

// Of each kind's own file.
SinkKind folder_sink_kind();
SinkKind tar_sink_kind();
SinkKind tfrecord_sink_kind();
SinkKind recordio_sink_kind();
SinkKind csv_sink_kind();
SinkKind lmdb_sink_kind();
SinkKind hdf5_sink_kind();
SinkKind mds_sink_kind();
SinkKind cifar_sink_kind();
SinkKind idx_sink_kind();

}  // namespace spk
