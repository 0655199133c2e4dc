// The ranks of paper_bench.py: processes that read one data set at once, each over a node of its
// own.
//
//   paper_rank make --lmdb DIR --samples N [--cifar FILE]
//   paper_rank run --side lmdb|loader|chunks --nodes DIR --world W --samples N
//                  [--chunk-bytes N] [--engine auto|pool|uring|mmap]
//
// `make` writes N CIFAR Datums as Caffe's tools do: raw planes, not encoded, under ascending
// keys of eight digits. The pixels are FILE's (CIFAR-10's binary form), copied until there are N
// with bytes that differ in each copy; or drawn ones.
//
// `run` starts W processes; rank r reads below DIR/r, in turn for each side:
//   lmdb    lmdb/data.mdb: a cursor goes over all records, as Caffe's DataLayer does; each W-th,
//           from the r-th on, is used
//   loader  pack: the library's loader in shuffled order, rank r of W
//   chunks  pack: whole chunks, the r-th W-th part of each shard, by pread
// Used is: each byte of the pixels added up (chunks: all bytes). The time is from when all ranks
// are there, so with all opening, until the last has its sum. One JSON object is printed.
#include <fcntl.h>
#include <lmdb.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/measure.h"
#include "loader/loader.h"

namespace spk::bench {
namespace {

constexpr size_t kSide = 32;
constexpr size_t kPixelBytes = 3 * kSide * kSide;
constexpr uint64_t kSamplesOfTransaction = 1000;
constexpr uint64_t kLmdbBytesOfSample = 8192;  // more than any takes
// channels 3, height 32, width 32, data of 3072 bytes; behind it the label.
constexpr std::array<uint8_t, 9> kDatumHead = {0x08, 3, 0x10, kSide, 0x18, kSide, 0x22, 0x80, 0x18};
constexpr size_t kDatumBytes = kDatumHead.size() + kPixelBytes + 2;

struct Settings {
  std::string side;
  std::string nodes;
  std::string lmdb;
  std::string cifar;
  uint64_t world = 1;
  uint64_t samples = 0;
  uint64_t chunk_bytes = 0;
  EngineChoice engine = EngineChoice::kAuto;
};

// What a rank tells; small enough to go through a pipe in one piece.
struct RankResult {
  uint64_t samples = 0;
  uint64_t sum = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  double opened_seconds = 0;  // all are from the start
  double first_seconds = 0;
  double done_seconds = 0;
  char how[96] = {};
};

// Byte by byte, in blocks of a fixed size, which compilers turn into vector instructions.
uint64_t sum_of(const uint8_t* bytes, size_t size) {
  constexpr size_t kBlock = 256;
  uint64_t sum = 0;
  size_t at = 0;
  for (; at + kBlock <= size; at += kBlock) {
    uint32_t part = 0;
    for (size_t i = 0; i < kBlock; ++i) part += bytes[at + i];
    sum += part;
  }
  for (; at < size; ++at) sum += bytes[at];
  return sum;
}

// --- The data set ------------------------------------------------------------------------------

std::vector<uint8_t> read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
  if (bytes.size() < 1 + kPixelBytes) give_up("no pictures of CIFAR-10's form in " + path);
  return bytes;
}

void make_datum(const std::vector<uint8_t>& cifar, uint64_t number, uint8_t* datum) {
  std::copy(kDatumHead.begin(), kDatumHead.end(), datum);
  uint8_t* const pixels = datum + kDatumHead.size();
  uint8_t label = static_cast<uint8_t>(number % 10);
  if (cifar.empty()) {
    for (size_t i = 0; i < kPixelBytes; ++i) {
      pixels[i] = static_cast<uint8_t>((number + i) * 0x9e3779b97f4a7c15 >> 56);
    }
  } else {
    const uint64_t pictures = cifar.size() / (1 + kPixelBytes);
    const uint8_t* const picture = cifar.data() + number % pictures * (1 + kPixelBytes);
    const auto copy = static_cast<uint8_t>(number / pictures);
    label = picture[0];
    for (size_t i = 0; i < kPixelBytes; ++i) pixels[i] = picture[1 + i] ^ copy;
  }
  pixels[kPixelBytes] = 0x28;
  pixels[kPixelBytes + 1] = label;
}

void make(const Settings& settings) {
  std::vector<uint8_t> cifar;
  if (!settings.cifar.empty()) cifar = read_all(settings.cifar);
  std::filesystem::create_directories(settings.lmdb);
  MDB_env* env = nullptr;
  lmdb_must(mdb_env_create(&env));
  lmdb_must(mdb_env_set_mapsize(env, (settings.samples + 1000) * kLmdbBytesOfSample));
  lmdb_must(mdb_env_open(env, settings.lmdb.c_str(), MDB_NOSYNC, 0664));
  std::array<uint8_t, kDatumBytes> datum;
  for (uint64_t number = 0; number < settings.samples;) {
    MDB_txn* txn = nullptr;
    MDB_dbi db = 0;
    lmdb_must(mdb_txn_begin(env, nullptr, 0, &txn));
    lmdb_must(mdb_dbi_open(txn, nullptr, 0, &db));
    const uint64_t end = std::min(number + kSamplesOfTransaction, settings.samples);
    for (; number < end; ++number) {
      make_datum(cifar, number, datum.data());
      char text[32];
      MDB_val key = {static_cast<size_t>(std::snprintf(text, sizeof text, "%08llu",
                                                       static_cast<unsigned long long>(number))),
                     text};
      MDB_val value = {datum.size(), datum.data()};
      lmdb_must(mdb_put(txn, db, &key, &value, 0));
    }
    lmdb_must(mdb_txn_commit(txn));
  }
  lmdb_must(mdb_env_sync(env, 1));
  mdb_env_close(env);
}

// --- The three ways to read --------------------------------------------------------------------

// Counts the samples it uses and tells when the first is there.
class Rank {
 public:
  Rank(const Settings& settings, uint64_t number, double start)
      : settings_(settings),
        number_(number),
        start_(start),
        node_(str_cat(settings.nodes, "/", number)) {}

  RankResult run() {
    if (settings_.side == "lmdb") {
      walk_lmdb();
    } else if (settings_.side == "loader") {
      load();
    } else {
      read_chunks();
    }
    result_.done_seconds = wall_seconds() - start_;
    return result_;
  }

 private:
  void opened() { result_.opened_seconds = wall_seconds() - start_; }

  void use(const uint8_t* bytes, size_t size) {
    result_.sum += sum_of(bytes, size);
    if (result_.samples++ == 0) result_.first_seconds = wall_seconds() - start_;
  }

  void walk_lmdb() {
    const uint64_t world = settings_.world;
    // Of the epoch's samples, those of this rank.
    const uint64_t wanted = (settings_.samples + world - 1 - number_) / world;
    MDB_env* env = nullptr;
    MDB_txn* txn = nullptr;
    MDB_dbi db = 0;
    MDB_cursor* cursor = nullptr;
    lmdb_must(mdb_env_create(&env));
    const std::string path = node_ + "/lmdb";
    lmdb_must(mdb_env_open(env, path.c_str(), MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0664));
    lmdb_must(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
    lmdb_must(mdb_dbi_open(txn, nullptr, 0, &db));
    lmdb_must(mdb_cursor_open(txn, db, &cursor));
    opened();
    MDB_val key, value;
    for (uint64_t record = 0; result_.samples < wanted; ++record) {
      lmdb_must(mdb_cursor_get(cursor, &key, &value, record == 0 ? MDB_FIRST : MDB_NEXT));
      if (record % world != number_) continue;
      const auto* const datum = static_cast<const uint8_t*>(value.mv_data);
      if (value.mv_size != kDatumBytes ||
          !std::equal(kDatumHead.begin(), kDatumHead.end(), datum)) {
        give_up("a record is no Datum of CIFAR");
      }
      use(datum + kDatumHead.size(), kPixelBytes);
    }
  }

  void load() {
    auto pack = Pack::open(node_ + "/pack");
    must(pack.status());
    LoaderOptions options;
    options.rank = number_;
    options.world = settings_.world;
    options.tail = TailRule::kExact;  // so that every sample is used
    options.engine = settings_.engine;
    auto loader = Loader::open(*pack, options);
    must(loader.status());
    opened();
    for (;;) {
      auto batch = (*loader)->next();
      must(batch.status());
      if (*batch == nullptr) break;
      for (size_t i = 0; i < (*batch)->size(); ++i) {
        const ByteSpan pixels = (*batch)->blob(i, 0);
        use(pixels.data(), pixels.size());
      }
    }
    const LoaderStats stats = (*loader)->stats();
    result_.reads = stats.reads;
    result_.read_bytes = stats.read_bytes;
    (void)std::snprintf(result_.how, sizeof result_.how, "%s, %s",
                        engine_choice_name((*loader)->reading().engine),
                        (*loader)->reading().direct ? "past the page cache" : "by the page cache");
  }

  void read_chunks() {
    std::vector<uint8_t> chunk(settings_.chunk_bytes);
    for (uint32_t shard = 0;; ++shard) {
      const std::string path = str_cat(node_, "/pack/", shard_file_name(shard));
      const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (file < 0 && shard > 0) break;
      struct stat facts = {};
      if (file < 0 || ::fstat(file, &facts) != 0) give_up("cannot open " + path);
      if (shard == 0) opened();
      const uint64_t bytes = static_cast<uint64_t>(facts.st_size);
      const uint64_t chunks = (bytes + chunk.size() - 1) / chunk.size();
      const uint64_t end = (number_ + 1) * chunks / settings_.world;
      for (uint64_t k = number_ * chunks / settings_.world; k < end; ++k) {
        const ssize_t got =
            ::pread(file, chunk.data(), chunk.size(), static_cast<off_t>(k * chunk.size()));
        if (got <= 0) give_up("cannot read " + path);
        use(chunk.data(), static_cast<size_t>(got));
        result_.reads += 1;
        result_.read_bytes += static_cast<uint64_t>(got);
      }
      ::close(file);
    }
  }

  const Settings& settings_;
  const uint64_t number_;
  const double start_;
  const std::string node_;
  RankResult result_;
};

// --- All ranks at once -------------------------------------------------------------------------

struct Pipe {
  int read = -1, write = -1;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) give_up("cannot make a pipe");
  return {ends[0], ends[1]};
}

// Waits until the other side closes `start`, with the time at which it did in shared memory.
[[noreturn]] void be_rank(const Settings& settings, uint64_t number, const Pipe& start,
                          const Pipe& results, const double* start_seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(start.write);
  ::close(results.read);
  uint8_t byte = 0;
  if (::write(results.write, &byte, 1) != 1 || ::read(start.read, &byte, 1) != 0) std::_Exit(1);
  const RankResult result = Rank(settings, number, *start_seconds).run();
  const bool told = ::write(results.write, &result, sizeof result) == sizeof result;
  std::_Exit(told ? 0 : 1);
}

void read_fully(int file, void* to, size_t size) {
  for (size_t at = 0; at < size;) {
    const ssize_t got = ::read(file, static_cast<uint8_t*>(to) + at, size - at);
    if (got <= 0) give_up("a rank failed");
    at += static_cast<size_t>(got);
  }
}

void print(const Settings& settings, const std::vector<RankResult>& ranks) {
  RankResult all;
  std::vector<double> opened, first;
  for (const RankResult& rank : ranks) {
    all.samples += rank.samples;
    all.sum += rank.sum;
    all.reads += rank.reads;
    all.read_bytes += rank.read_bytes;
    all.done_seconds = std::max(all.done_seconds, rank.done_seconds);
    opened.push_back(rank.opened_seconds);
    first.push_back(rank.first_seconds);
  }
  std::sort(opened.begin(), opened.end());
  std::sort(first.begin(), first.end());
  std::printf(
      "{\"side\": \"%s\", \"world\": %llu, \"seconds\": %.6f, \"samples\": %llu, \"sum\": %llu, "
      "\"reads\": %llu, \"read_bytes\": %llu, \"opened_median_seconds\": %.6f, "
      "\"opened_last_seconds\": %.6f, \"first_median_seconds\": %.6f, "
      "\"first_last_seconds\": %.6f, \"how\": \"%s\"}\n",
      settings.side.c_str(), static_cast<unsigned long long>(settings.world), all.done_seconds,
      static_cast<unsigned long long>(all.samples), static_cast<unsigned long long>(all.sum),
      static_cast<unsigned long long>(all.reads), static_cast<unsigned long long>(all.read_bytes),
      opened[opened.size() / 2], opened.back(), first[first.size() / 2], first.back(),
      ranks[0].how);
}

void run(const Settings& settings) {
  // What this program consists of stays in memory, for it lies on the disk that is slowed down.
  if (::mlockall(MCL_CURRENT) != 0) give_up("cannot lock the program in memory: this needs root");
  void* const shared =
      ::mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) give_up("no memory");
  auto* const start_seconds = static_cast<double*>(shared);
  const Pipe start = make_pipe();
  const Pipe results = make_pipe();
  (void)std::fflush(nullptr);
  for (uint64_t rank = 0; rank < settings.world; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) give_up("cannot start a rank");
    if (child == 0) be_rank(settings, rank, start, results, start_seconds);
  }
  ::close(start.read);
  ::close(results.write);
  std::vector<uint8_t> there(settings.world);
  read_fully(results.read, there.data(), there.size());
  *start_seconds = wall_seconds();
  ::close(start.write);
  std::vector<RankResult> ranks(settings.world);
  for (RankResult& rank : ranks) read_fully(results.read, &rank, sizeof rank);
  for (int state = 0; ::wait(&state) > 0;) {
    if (state != 0) give_up("a rank failed");
  }
  print(settings, ranks);
}

EngineChoice engine_named(const std::string& name) {
  if (name == "auto") return EngineChoice::kAuto;
  for (const EngineChoice engine :
       {EngineChoice::kPool, EngineChoice::kUring, EngineChoice::kMmap}) {
    if (name == engine_choice_name(engine)) return engine;
  }
  give_up("there is no engine " + name);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 2; i < argc; i += 2) {
    const std::string option = argv[i];
    if (i + 1 == argc) give_up(option + " needs a value");
    const std::string value = argv[i + 1];
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (option == "--side") {
      settings.side = value;
    } else if (option == "--nodes") {
      settings.nodes = value;
    } else if (option == "--lmdb") {
      settings.lmdb = value;
    } else if (option == "--cifar") {
      settings.cifar = value;
    } else if (option == "--world") {
      settings.world = std::max<uint64_t>(number, 1);
    } else if (option == "--samples") {
      settings.samples = number;
    } else if (option == "--chunk-bytes") {
      settings.chunk_bytes = number;
    } else if (option == "--engine") {
      settings.engine = engine_named(value);
    } else {
      give_up("there is no option " + option);
    }
  }
  return settings;
}

}  // namespace
}  // namespace spk::bench

int main(int argc, char** argv) {
  namespace bench = spk::bench;
  const std::string what = argc > 1 ? argv[1] : "";
  const bench::Settings settings = bench::parse(argc, argv);
  if (what == "make" && !settings.lmdb.empty()) {
    bench::make(settings);
  } else if (what == "run" && (settings.side == "lmdb" || settings.side == "loader" ||
                               (settings.side == "chunks" && settings.chunk_bytes > 0))) {
    bench::run(settings);
  } else {
    bench::give_up("say what to do: make --lmdb DIR, or run --side lmdb|loader|chunks");
  }
  return 0;
}
