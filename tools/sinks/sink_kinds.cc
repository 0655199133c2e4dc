#include <algorithm>
#include <array>

#include "base/checked.h"
#include "base/text.h"
#include "sinks/sink.h"

namespace spk {

namespace {
constexpr uint64_t kUsualFileBytes = uint64_t{1} << 30;
}  // namespace

uint64_t Sink::default_file_count(uint64_t, uint64_t payload_bytes) const {
  return std::max<uint64_t>(divide_up(payload_bytes, kUsualFileBytes), 1);
}

Result<ReadBack> Sink::read_back() const {
  return unsupported("what this format keeps of a sample is not enough to compare it with the pack")
      .with_hint("leave --verify off");
}

Status Sink::finish(const Directory&, std::span<const ExportedFile>) const { return {}; }

std::span<const SinkKind> sink_kinds() {
  static const std::array kKinds = {
      folder_sink_kind(), tar_sink_kind(),  tfrecord_sink_kind(), recordio_sink_kind(),
      lmdb_sink_kind(),   hdf5_sink_kind(), mds_sink_kind(),      cifar_sink_kind(),
      idx_sink_kind(),    csv_sink_kind(),
  };
  return kKinds;
}

}  // namespace spk
