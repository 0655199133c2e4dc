// How a loader reads files: decided once, when it is opened.
//
// The rule for DirectChoice::kAuto: by the page cache, unless that cannot help. It cannot where all
// of these are true, and then reads pass it by (O_DIRECT), which costs less of the CPU and leaves
// the memory to others:
// - whole chunks are read, each of them once an epoch (a shuffled order, and no other rank or
//   worker wants the same chunks);
// - the pack's chunks are more than half of the memory that the cache may use
//   (io/cache_memory.h), so that little of an epoch is still there in the next one;
// - the engine is not mmap;
// - the file system can (not tmpfs, which is memory).
// A file system that takes the flag and refuses the reads is read by the page cache after all.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "container/pack.h"

namespace spk {

enum class DirectChoice : uint8_t { kAuto, kOn, kOff };

struct ReadingWish {
  EngineChoice engine = EngineChoice::kAuto;
  DirectChoice direct = DirectChoice::kAuto;
  uint64_t epoch_bytes = 0;      // of the pack's chunks: what a node reads sooner or later
  bool reads_each_once = false;  // whole chunks, each wanted by one loader only
  uint64_t cache_bytes = 0;      // that the page cache may use; 0: found out
};

struct Reading {
  EngineChoice engine = EngineChoice::kPool;  // kPool, kUring or kMmap
  bool direct = false;
  bool network = false;  // the file system of the pack's data_directory()
  std::string why;       // for people: "through the page cache: as asked"
};

// kInvalidArgument where the wish cannot be met.
Result<Reading> choose_reading(const Pack& pack, const ReadingWish& wish);

// "pool", "uring", "mmap"
const char* engine_choice_name(EngineChoice engine) noexcept;

}  // namespace spk
