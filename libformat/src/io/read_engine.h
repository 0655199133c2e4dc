// Bulk reads that block until all are done. An engine decides how many are in flight at a time; the
// bytes read are the same with each.
//
// Thread safety: read() may be called by any number of threads at once. No thread and no ring
// exists before the first read() that needs one. After fork() a child may go on using the engine:
// it makes its own threads or ring there, and leaves the parent's alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace spk {

struct ReadOp {
  int fd = -1;
  uint64_t offset = 0;
  MutableByteSpan into;  // filled whole, or status says why not
  Status status;         // set by read(); has the offset, but not the path, which fd does not tell
};

enum class EngineKind : uint8_t {
  kAuto,   // network: kPool. Local: what is in the page cache is copied in the calling thread, the
           // rest is read by a pool
  kSync,   // pread in the calling thread, one after the other
  kPool,   // pread by threads
  kUring,  // io_uring where it works, otherwise kPool
};

class ReadEngine {
 public:
  virtual ~ReadEngine() = default;  // REQUIRES that no read() is running
  ReadEngine(const ReadEngine&) = delete;
  ReadEngine& operator=(const ReadEngine&) = delete;

  // Fills every op and sets its status; one that fails does not stop the others. Ok where all are,
  // otherwise the status of the first in order that failed.
  virtual Status read(std::span<ReadOp> ops) = 0;
  // What it is: "sync", "pool", "auto" or "uring".
  virtual const char* name() const noexcept = 0;

 protected:
  ReadEngine() = default;
};

// THREADS: reads in flight besides the caller's own (pool); 0 takes a default of 16 (they wait,
// they do not compute). NETWORK: whether the files lie on a network file system (io/filesystem.h).
Result<std::unique_ptr<ReadEngine>> make_read_engine(EngineKind kind, uint32_t threads,
                                                     bool network = false);

// "auto", "sync", "pool", "uring"; kInvalidArgument otherwise.
Result<EngineKind> parse_engine_kind(std::string_view text);

}  // namespace spk
