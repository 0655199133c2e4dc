// Epochs of a loader, each against the plainest code that reads the same samples another way.
//
//   loader_bench --pack DIR [--files LIST] [--lmdb DIR] [--rounds N] [--cold]
//                [--touch-gib N] [--bytewise]
//
// Both sides run in turn, every byte is added up, and the sums must agree. LIST has the paths of
// the pack's source files, one a line; the LMDB is made where there is none. Warm: all is in the
// page cache. Cold (needs root): the page cache is dropped before each run, and so many GiB of
// memory are touched and freed, as a virtual machine's host hands out memory slowly.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/measure.h"
#include "loader/loader.h"

namespace spk::bench {
namespace {

constexpr uint64_t kPlainReadBytes = 4 << 20;

struct Settings {
  std::string pack;
  std::string files;
  std::string lmdb;
  int rounds = 9;
  int touch_gib = 6;
  bool cold = false;
};

// Eight bytes at a time, or one by one, as plain code does.
bool sums_bytes = false;
uint64_t sum_of(ByteSpan bytes) {
  if (!sums_bytes) return sum_of_words(bytes.data(), bytes.size());
  uint64_t sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

// One side of a comparison: reads all samples and gives the sum of their bytes (none: 0).
struct Side {
  std::string name;
  std::function<uint64_t()> run;
};

class Bench {
 public:
  Bench(std::shared_ptr<const Pack> pack, const Settings& settings)
      : pack_(std::move(pack)), settings_(settings) {
    for (uint64_t i = 0; i < pack_->sample_count(); ++i) {
      auto place = pack_->locate(i, 0);
      must(place.status());
      places_.push_back(*place);
      bytes_ += place->bytes;
    }
  }

  // `asked` is of the speed of `ours` as a multiple of that of `plain`.
  void compare(const Side& plain, const Side& ours, double asked) const {
    std::vector<double> walls[2];
    std::vector<double> cpus[2];
    std::vector<double> ratios;
    const Side* const sides[2] = {&plain, &ours};
    for (int round = settings_.cold ? 0 : -1; round < settings_.rounds; ++round) {
      uint64_t sums[2] = {};
      double wall[2] = {};
      for (int k = 0; k < 2; ++k) {
        const int i = round % 2 == 0 ? k : 1 - k;
        if (settings_.cold) make_cold();
        const double cpu_start = process_cpu_seconds();
        const double wall_start = wall_seconds();
        sums[i] = sides[i]->run();
        wall[i] = wall_seconds() - wall_start;
        if (round < 0) continue;  // maps pages and fills tables
        walls[i].push_back(wall[i]);
        cpus[i].push_back(process_cpu_seconds() - cpu_start);
      }
      if (sums[0] != 0 && sums[1] != 0 && sums[0] != sums[1]) give_up("the sums differ");
      if (round >= 0) ratios.push_back(wall[0] / wall[1]);
    }
    const double ratio = median(ratios);
    for (int i = 0; i < 2; ++i) {
      const double wall = median(walls[i]);
      std::printf("  %-44s %7.3f s %8.0f samples/s %6.0f MB/s  CPU %6.2f s, %5.2f s/GB\n",
                  sides[i]->name.c_str(), wall, static_cast<double>(places_.size()) / wall,
                  static_cast<double>(bytes_) / wall / 1e6, median(cpus[i]),
                  median(cpus[i]) / (static_cast<double>(bytes_) / 1e9));
    }
    std::printf("    speed %.2f (%.2f to %.2f), asked %.2f: %s; CPU %.2f\n", ratio,
                *std::min_element(ratios.begin(), ratios.end()),
                *std::max_element(ratios.begin(), ratios.end()), asked,
                ratio >= asked ? "reached" : "MISSED", median(cpus[1]) / median(cpus[0]));
    std::fflush(stdout);
  }

  // An epoch of a loader; each run the next one. Cold: of a new loader.
  Side loader(EngineChoice engine, bool check, bool direct = false,
              OrderKind order = OrderKind::kShuffled) {
    LoaderOptions options;
    options.order = order;
    options.engine = engine;
    options.check_checksums = check;
    options.direct = direct ? DirectChoice::kOn : DirectChoice::kOff;
    options.tail = TailRule::kExact;
    options.fields = {pack_->schema().fields[0].name};
    const auto kept = std::make_shared<std::unique_ptr<Loader>>();
    const auto run = [this, options, kept] {
      std::unique_ptr<Loader>& loader = *kept;
      if (settings_.cold || loader == nullptr) {
        loader.reset();
        auto made = Loader::open(pack_, options);
        must(made.status());
        loader = std::move(*made);
      } else {
        must(loader->start_epoch(loader->order().epoch + 1));
      }
      uint64_t sum = 0;
      for (;;) {
        auto batch = loader->next();
        must(batch.status());
        if (*batch == nullptr) break;
        for (size_t i = 0; i < (*batch)->size(); ++i) sum += sum_of((*batch)->blob(i, 0));
      }
      if (settings_.cold) loader.reset();
      return sum;
    };
    const char* const name = engine == EngineChoice::kMmap    ? "mmap"
                             : engine == EngineChoice::kUring ? "uring"
                                                              : "pool";
    return {str_cat("loader, ", name, direct ? ", direct" : "",
                    order == OrderKind::kSequential ? ", in storage order" : "", ", checks ",
                    check ? "on" : "off"),
            run};
  }

  // The samples in the order of an epoch, or as they are stored.
  Side mmap_walk(bool shuffled) {
    map_shards();
    std::vector<uint64_t> samples = numbers();
    if (shuffled) samples = epoch_samples();
    return {str_cat("plain mmap walk, ", shuffled ? "the order of an epoch" : "storage order"),
            [this, samples] {
              uint64_t sum = 0;
              for (const uint64_t sample : samples) {
                const SampleLocation& at = places_[sample];
                sum += sum_of({maps_[at.shard] + at.offset, at.bytes});
              }
              return sum;
            }};
  }

  Side pread_whole_files() const {
    return {"plain pread of whole files", [this] {
              std::vector<uint8_t> buffer(kPlainReadBytes);
              uint64_t sum = 0;
              for (uint32_t shard = 0; shard < pack_->shards().size(); ++shard) {
                const int file = open_file(pack_->path() + "/" + shard_file_name(shard));
                ssize_t got = 0;
                for (off_t at = 0; (got = ::pread(file, buffer.data(), buffer.size(), at)) > 0;) {
                  sum += sum_of({buffer.data(), static_cast<size_t>(got)});
                  at += got;
                }
                if (got < 0) give_up("cannot read a shard");
                ::close(file);
              }
              looked_at_ += sum;
              return uint64_t{0};  // of headers and tables, too
            }};
  }

  Side open_files() const {
    std::vector<std::string> paths;
    std::ifstream list(settings_.files);
    for (std::string line; std::getline(list, line);) paths.push_back(line);
    if (paths.size() != places_.size()) give_up("--files names another number of files");
    std::shuffle(paths.begin(), paths.end(), std::mt19937_64(3));
    return {"open, read, close, file by file", [paths] {
              std::vector<uint8_t> buffer(1 << 20);
              uint64_t sum = 0;
              for (const std::string& path : paths) {
                const int file = open_file(path);
                size_t size = 0;
                ssize_t got = 0;
                while ((got = ::read(file, buffer.data() + size, buffer.size() - size)) > 0) {
                  size += static_cast<size_t>(got);
                  if (size == buffer.size()) buffer.resize(2 * size);
                }
                ::close(file);
                sum += sum_of({buffer.data(), size});
              }
              return sum;
            }};
  }

#if SPK_HAVE_LMDB
  void make_lmdb() const {
    const std::string& path = settings_.lmdb;
    if (std::filesystem::exists(path + "/data.mdb")) return;
    std::filesystem::create_directories(path);
    MDB_env* const env = open_lmdb(0);
    MDB_txn* txn = nullptr;
    MDB_dbi db = 0;
    lmdb_must(mdb_txn_begin(env, nullptr, 0, &txn));
    lmdb_must(mdb_dbi_open(txn, nullptr, 0, &db));
    std::vector<uint8_t> bytes;
    for (uint64_t i = 0; i < places_.size(); ++i) {
      bytes.resize(places_[i].bytes);
      must(pack_->read(i, 0, bytes).status());
      uint64_t number = __builtin_bswap64(i);  // so that keys ascend
      MDB_val key = {sizeof number, &number};
      MDB_val value = {bytes.size(), bytes.data()};
      lmdb_must(mdb_put(txn, db, &key, &value, MDB_APPEND));
    }
    lmdb_must(mdb_txn_commit(txn));
    mdb_env_close(env);
  }

  Side lmdb_cursor() const {
    return {"LMDB, cursor", [this] {
              return with_lmdb([this](MDB_txn* txn, MDB_dbi db) {
                MDB_cursor* cursor = nullptr;
                lmdb_must(mdb_cursor_open(txn, db, &cursor));
                uint64_t sum = 0;
                MDB_val key, value;
                while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) sum += sum_of(value);
                mdb_cursor_close(cursor);
                return sum;
              });
            }};
  }

  // Samples in a random order.
  Side lmdb_get() const {
    std::vector<uint64_t> samples = numbers();
    std::shuffle(samples.begin(), samples.end(), std::mt19937_64(4));
    return {"LMDB, random get", [this, samples] {
              return with_lmdb([&](MDB_txn* txn, MDB_dbi db) {
                uint64_t sum = 0;
                for (const uint64_t sample : samples) {
                  uint64_t number = __builtin_bswap64(sample);
                  MDB_val key = {sizeof number, &number};
                  MDB_val value;
                  lmdb_must(mdb_get(txn, db, &key, &value));
                  sum += sum_of(value);
                }
                return sum;
              });
            }};
  }
#endif

 private:
  static int open_file(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) give_up("cannot open " + path);
    return file;
  }

  void make_cold() const {
    std::vector<std::unique_ptr<uint8_t[]>> blocks;
    for (int gib = 0; gib < settings_.touch_gib; ++gib) {
      blocks.push_back(std::make_unique_for_overwrite<uint8_t[]>(size_t{1} << 30));
      std::memset(blocks.back().get(), gib + 1, size_t{1} << 30);
      looked_at_ += blocks.back()[12345];
    }
    blocks.clear();
    ::sync();
    std::ofstream drop("/proc/sys/vm/drop_caches");
    drop << "3\n";
    drop.flush();
    if (!drop) give_up("cannot drop the page cache: --cold needs root");
  }

  std::vector<uint64_t> numbers() const {
    std::vector<uint64_t> samples(places_.size());
    for (uint64_t i = 0; i < samples.size(); ++i) samples[i] = i;
    return samples;
  }

  std::vector<uint64_t> epoch_samples() const {
    LoaderOptions options;
    options.tail = TailRule::kExact;
    auto loader = Loader::open(pack_, options);
    must(loader.status());
    std::vector<uint64_t> samples;
    for (;;) {
      auto batch = (*loader)->next();
      must(batch.status());
      if (*batch == nullptr) return samples;
      for (size_t i = 0; i < (*batch)->size(); ++i) samples.push_back((*batch)->sample(i));
    }
  }

  void map_shards() {
    for (uint32_t shard = 0; maps_.size() < pack_->shards().size(); ++shard) {
      const int file = open_file(pack_->path() + "/" + shard_file_name(shard));
      void* const map =
          ::mmap(nullptr, pack_->shards()[shard].file_bytes, PROT_READ, MAP_SHARED, file, 0);
      if (map == MAP_FAILED) give_up("cannot map a shard");
      ::close(file);
      maps_.push_back(static_cast<const uint8_t*>(map));
    }
  }

#if SPK_HAVE_LMDB
  static uint64_t sum_of(const MDB_val& value) {
    return bench::sum_of({static_cast<const uint8_t*>(value.mv_data), value.mv_size});
  }
  static uint64_t sum_of(ByteSpan bytes) { return bench::sum_of(bytes); }
  MDB_env* open_lmdb(unsigned flags) const {
    MDB_env* env = nullptr;
    lmdb_must(mdb_env_create(&env));
    lmdb_must(mdb_env_set_mapsize(env, 2 * bytes_ + (size_t{1} << 30)));
    lmdb_must(mdb_env_open(env, settings_.lmdb.c_str(), flags, 0644));
    return env;
  }
  template <typename Read>
  uint64_t with_lmdb(const Read& read) const {
    if (settings_.cold || env_ == nullptr) env_ = open_lmdb(MDB_RDONLY | MDB_NOLOCK);
    MDB_txn* txn = nullptr;
    MDB_dbi db = 0;
    lmdb_must(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn));
    lmdb_must(mdb_dbi_open(txn, nullptr, 0, &db));
    const uint64_t sum = read(txn, db);
    mdb_txn_abort(txn);
    if (settings_.cold) mdb_env_close(env_);
    return sum;
  }
  mutable MDB_env* env_ = nullptr;
#endif

  const std::shared_ptr<const Pack> pack_;
  const Settings& settings_;
  std::vector<SampleLocation> places_;
  uint64_t bytes_ = 0;
  std::vector<const uint8_t*> maps_;
  mutable uint64_t looked_at_ = 0;
};

void measure_warm(Bench& bench, const Settings& settings) {
  for (const bool shuffled : {false, true}) {
    bench.compare(bench.mmap_walk(shuffled), bench.loader(EngineChoice::kMmap, false), 0.95);
    bench.compare(bench.mmap_walk(shuffled), bench.loader(EngineChoice::kMmap, true), 0);
  }
#if SPK_HAVE_LMDB
  if (!settings.lmdb.empty()) {
    for (const OrderKind order : {OrderKind::kShuffled, OrderKind::kSequential}) {
      bench.compare(bench.lmdb_cursor(), bench.loader(EngineChoice::kPool, false, false, order), 1);
      bench.compare(bench.lmdb_cursor(), bench.loader(EngineChoice::kPool, true, false, order), 0);
    }
  }
#endif
}

void measure_cold(Bench& bench, const Settings& settings) {
  const struct {
    EngineChoice engine;
    bool check, direct;
  } cases[] = {{EngineChoice::kPool, true, false},
               {EngineChoice::kMmap, true, false},
               {EngineChoice::kPool, true, true},
               {EngineChoice::kUring, true, true},
               {EngineChoice::kUring, false, true}};
  for (const auto& [engine, check, direct] : cases) {
    const Side ours = bench.loader(engine, check, direct);
    bench.compare(bench.pread_whole_files(), ours, 0.9);
#if SPK_HAVE_LMDB
    if (!settings.lmdb.empty()) bench.compare(bench.lmdb_get(), ours, 1.8);
#endif
    if (!settings.files.empty()) bench.compare(bench.open_files(), ours, 3);
  }
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--cold" || option == "--bytewise") {
      (option == "--cold" ? settings.cold : sums_bytes) = true;
      continue;
    }
    if (i + 1 == argc) give_up(option + " needs a value");
    const std::string value = argv[++i];
    if (option == "--pack") {
      settings.pack = value;
    } else if (option == "--files") {
      settings.files = value;
    } else if (option == "--lmdb") {
      settings.lmdb = value;
    } else if (option == "--rounds") {
      settings.rounds = std::max(std::atoi(value.c_str()), 1);
    } else if (option == "--touch-gib") {
      settings.touch_gib = std::atoi(value.c_str());
    } else {
      give_up("there is no option " + option);
    }
  }
  if (settings.pack.empty()) give_up("name a pack: --pack DIR");
  return settings;
}

}  // namespace
}  // namespace spk::bench

int main(int argc, char** argv) {
  namespace bench = spk::bench;
  const bench::Settings settings = bench::parse(argc, argv);
  auto pack = spk::Pack::open(settings.pack);
  bench::must(pack.status());
  bench::Bench measured(*pack, settings);
#if SPK_HAVE_LMDB
  if (!settings.lmdb.empty()) measured.make_lmdb();
#endif
  if (settings.cold) {
    bench::measure_cold(measured, settings);
  } else {
    bench::measure_warm(measured, settings);
  }
  return 0;
}
