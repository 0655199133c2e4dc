// What verify finds and repair works from: one record for each thing that is wrong, with its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"

namespace spk {

enum class DamageKind : uint8_t {
  kFile,      // a file is missing, too short, too long, or another pack's
  kTrailer,   // last bytes of a shard
  kFooter,    // a shard's footer
  kChunk,     // header or sample table of a chunk
  kPadding,   // bytes of a shard that must be zero
  kSample,    // a blob: this sample's bytes are lost
  kIndex,     // index.spki
  kRejects,   // rejects.tsv
  kManifest,  // manifest.json
};
// Lower-case name ("chunk"), as it appears in JSON. Never null.
const char* damage_kind_name(DamageKind kind) noexcept;

struct Damage {
  static constexpr uint64_t kNoSample = UINT64_MAX;

  DamageKind kind = DamageKind::kFile;
  // kDamaged; kNotFound: missing; kMismatch: whole, but not what belongs there; kUnsupported:
  // whole, but of a newer version; kIo, kDenied and kNoMemory: could not be read.
  Code code = Code::kDamaged;
  std::string file;  // name within the pack
  uint32_t shard = Status::kNoShard;
  int64_t chunk = -1;                   // number within the shard
  uint64_t sample = kNoSample;          // number within the shard
  std::string key;                      // of the sample, where one is meant
  uint64_t offset = Status::kNoOffset;  // in the file
  std::string what;
  // Samples whose bytes are gone, each counted once in all damages together. A broken chunk header
  // costs none while footer or index place the blobs: readers find them, and repair writes the
  // header anew.
  uint64_t samples_lost = 0;
};

// Whether such a code tells of trouble with reading. What could not be read may be whole.
constexpr bool could_not_be_read(Code code) noexcept {
  return code == Code::kIo || code == Code::kDenied || code == Code::kNoMemory;
}

// Called by one thread at a time.
using DamageSink = std::function<void(const Damage&)>;

}  // namespace spk
