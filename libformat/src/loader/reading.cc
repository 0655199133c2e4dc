#include "loader/reading.h"

#include "base/text.h"
#include "io/cache_memory.h"
#include "io/file.h"
#include "io/filesystem.h"

namespace spk {

namespace {

struct Decision {
  bool direct = false;
  std::string why;
};

Decision decide(const Pack& pack, const ReadingWish& wish, const FileSystemInfo& fs) {
  switch (wish.direct) {
    case DirectChoice::kOn: return {true, "as asked"};
    case DirectChoice::kOff: return {false, "as asked"};
    case DirectChoice::kAuto: break;
  }
  if (wish.engine == EngineChoice::kMmap) return {false, "files are mapped"};
  if (!wish.reads_each_once) return {false, "chunks are wanted in part, or more than once"};
  if (fs.kind == FileSystemKind::kTmpfs) return {false, "the file system is memory"};
  const uint64_t cache = wish.cache_bytes != 0 ? wish.cache_bytes : cache_memory_bytes();
  const bool fits = wish.epoch_bytes <= cache / 2;
  const std::string sizes = str_cat("an epoch's ", format_size(wish.epoch_bytes),
                                    fits ? " are at most" : " are more than", " half of the ",
                                    format_size(cache), " that it may use");
  if (fits) return {false, sizes};
  // Asked of one shard: another that is elsewhere and cannot is read through the page cache.
  const Result<File> shard = File::open_read(pack.data_directory(), shard_file_name(0));
  if (!shard.ok() || !shard->can_be_direct()) {
    return {false, str_cat(sizes, ", but ", fs.name, " cannot do without")};
  }
  return {true, sizes};
}

}  // namespace

const char* engine_choice_name(EngineChoice engine) noexcept {
  switch (engine) {
    case EngineChoice::kMmap: return "mmap";
    case EngineChoice::kUring: return "uring";
    default: return "pool";
  }
}

Result<Reading> choose_reading(const Pack& pack, const ReadingWish& wish) {
  const FileSystemInfo fs = detect_filesystem(pack.data_directory().fd());
  if (wish.engine == EngineChoice::kMmap && (fs.network || wish.direct == DirectChoice::kOn)) {
    return invalid_argument(
               fs.network ? str_cat("the mmap engine is for local file systems; this is ", fs.name)
                          : std::string("what is mapped cannot pass by the page cache"))
        .at_path(pack.path())
        .with_hint("choose engine auto or pool");
  }
  const Decision decision = decide(pack, wish, fs);
  const bool maps = wish.engine == EngineChoice::kMmap ||
                    (wish.engine == EngineChoice::kAuto && !fs.network && !decision.direct);
  Reading reading;
  reading.engine = maps                                  ? EngineChoice::kMmap
                   : wish.engine == EngineChoice::kUring ? EngineChoice::kUring
                                                         : EngineChoice::kPool;
  reading.direct = decision.direct;
  reading.network = fs.network;
  reading.why = str_cat(decision.direct ? "past" : "through", " the page cache: ", decision.why);
  return reading;
}

}  // namespace spk
