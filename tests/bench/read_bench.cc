// Opening and reading packs, each against the plainest code that does the same:
//   read_bench [--samples N] [--bytes MEAN] [--rounds N] [--work DIR]
// Both sides run in turn, on the same samples in the same random order, from a warm page cache;
// medians are given, and the ratio of the speeds (1 = as fast as the plain code): by the clock, and
// by the CPU time of the calling thread, which tells little where other threads read.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/measure.h"
#include "container/pack.h"
#include "support/big_index.h"
#include "support/test_pack.h"

namespace spk::bench {
namespace {

constexpr uint64_t kImageNetSamples = 1'281'167;
constexpr size_t kBatch = 256;

struct Settings {
  uint64_t samples = 4000;
  uint64_t mean_bytes = 110'000;
  int rounds = 11;
  std::string work;
};

// Of the calling thread: on a busy machine, a steadier measure where it alone works.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds_of(const std::function<void()>& run) {
  const double start = wall_seconds();
  run();
  return wall_seconds() - start;
}

// Reads the places BEGIN .. END - 1.
using ReadBatch = std::function<void(size_t begin, size_t end)>;

struct Times {
  double wall = 0;
  double cpu = 0;
  void add(const ReadBatch& read, size_t begin, size_t end) {
    const double wall_start = wall_seconds();
    const double cpu_start = cpu_seconds();
    read(begin, end);
    cpu += cpu_seconds() - cpu_start;
    wall += wall_seconds() - wall_start;
  }
};

// Runs both batch by batch in turn, half of the places apart so that neither finds the other's
// bytes in a cache, and prints one line: what of the speed of `plain` does `ours` have?
void compare(const char* name, int rounds, size_t samples, uint64_t bytes, const ReadBatch& plain,
             const ReadBatch& ours) {
  const size_t batches = (samples + kBatch - 1) / kBatch;
  std::vector<double> plain_walls;
  std::vector<double> our_walls;
  std::vector<double> wall_ratios;
  std::vector<double> cpu_ratios;
  for (int round = -1; round < rounds; ++round) {
    Times plain_times;
    Times our_times;
    for (size_t batch = 0; batch < batches; ++batch) {
      const auto run = [&](Times& times, const ReadBatch& read, size_t number) {
        times.add(read, number * kBatch, std::min((number + 1) * kBatch, samples));
      };
      const size_t other = (batch + batches / 2) % batches;
      if (batch % 2 == 0) run(plain_times, plain, batch);
      run(our_times, ours, other);
      if (batch % 2 != 0) run(plain_times, plain, batch);
    }
    if (round < 0) continue;  // the first one maps pages and fills tables
    plain_walls.push_back(plain_times.wall);
    our_walls.push_back(our_times.wall);
    wall_ratios.push_back(plain_times.wall / our_times.wall);
    cpu_ratios.push_back(plain_times.cpu / our_times.cpu);
  }
  const double plain_wall = median(plain_walls);
  const double our_wall = median(our_walls);
  std::printf(
      "%-28s plain %8.0f samples/s %6.2f GB/s   ours %8.0f samples/s %6.2f GB/s   "
      "ratio: wall %.3f (%.3f to %.3f), own CPU %.3f\n",
      name, samples / plain_wall, bytes / plain_wall / 1e9, samples / our_wall,
      bytes / our_wall / 1e9, median(wall_ratios),
      *std::min_element(wall_ratios.begin(), wall_ratios.end()),
      *std::max_element(wall_ratios.begin(), wall_ratios.end()), median(cpu_ratios));
  std::fflush(stdout);
}

std::shared_ptr<Pack> open_pack(const std::string& path, EngineChoice engine, bool check) {
  OpenOptions options;
  options.engine = engine;
  options.check_checksums = check;
  auto pack = Pack::open(path, options);
  if (!pack.ok()) give_up(pack.status().to_string());
  return std::move(pack).value();
}

void measure_open(const Settings& settings) {
  const std::string path = settings.work + "/imagenet";
  const Status made = write_big_index(path, kImageNetSamples, settings.mean_bytes);
  if (!made.ok()) give_up(made.to_string());
  std::vector<double> open_times;
  std::vector<double> first_times;
  for (int round = 0; round < 2 * settings.rounds; ++round) {
    std::shared_ptr<Pack> pack;
    open_times.push_back(seconds_of([&] { pack = open_pack(path, EngineChoice::kAuto, true); }));
    first_times.push_back(seconds_of([&] {
      if (!pack->locate(kImageNetSamples / 3, 0).ok()) give_up("cannot locate a sample");
    }));
  }
  std::vector<int64_t> labels(kImageNetSamples);
  const auto pack = open_pack(path, EngineChoice::kAuto, true);
  const auto read_labels = [&] {
    if (!pack->copy_ints(1, 0, labels.size(), labels.data(), nullptr).ok()) give_up("no labels");
  };
  const double first_labels = seconds_of(read_labels);
  const double labels_again = seconds_of(read_labels);
  std::printf(
      "open of %s samples in %s chunks: %.2f ms; place of the first sample: %.2f ms; "
      "all labels: %.1f ms, again %.1f ms\n",
      format_count(pack->sample_count()).c_str(), format_count(pack->chunk_count()).c_str(),
      median(open_times) * 1e3, median(first_times) * 1e3, first_labels * 1e3, labels_again * 1e3);
  std::fflush(stdout);
}

// A pack with sizes spread as those of photographs are.
void make_pack(const std::string& path, const Settings& settings) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> sizes(std::log(0.9 * settings.mean_bytes), 0.45);
  std::vector<test::TestSample> samples = test::image_samples(settings.samples, 0, 0);
  for (test::TestSample& sample : samples) {
    const double wanted = std::min(sizes(random), 20.0 * settings.mean_bytes);
    std::string bytes(static_cast<size_t>(wanted) + 1, '\0');
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      store_le<uint64_t>(reinterpret_cast<uint8_t*>(bytes.data()) + at, random());
    }
    sample.values[0] = std::move(bytes);
  }
  test::TestPackOptions options;
  options.schema = test::image_schema();
  options.geometry.chunk_bytes = 4 << 20;
  options.geometry.shard_count = 4;
  const auto made = test::write_test_pack(path, samples, options);
  if (!made.ok()) give_up(made.status().to_string());
}

// What both sides read: places in a random order, and buffers for one batch.
struct Work {
  struct Place {
    uint64_t sample;
    SampleLocation where;
  };
  std::vector<Place> places;
  uint64_t bytes = 0;
  std::vector<uint8_t> arena;
  uint64_t largest = 0;

  explicit Work(const Pack& pack) {
    std::mt19937_64 random(2);
    for (uint64_t i = 0; i < pack.sample_count(); ++i) {
      const uint64_t sample = random() % pack.sample_count();
      places.push_back({sample, pack.locate(sample, 0).value()});
      bytes += places.back().where.bytes;
      largest = std::max(largest, places.back().where.bytes);
    }
    arena.assign(largest * kBatch, 1);
  }
  uint8_t* buffer(size_t i) { return arena.data() + (i % kBatch) * largest; }
};

void measure_reads(const Settings& settings) {
  const std::string path = settings.work + "/photographs";
  make_pack(path, settings);
  const auto reference = open_pack(path, EngineChoice::kPread, false);
  Work work(*reference);
  std::vector<int> files;
  std::vector<const uint8_t*> maps;
  for (uint32_t shard = 0; shard < reference->shards().size(); ++shard) {
    files.push_back(::open((path + "/" + shard_file_name(shard)).c_str(), O_RDONLY | O_CLOEXEC));
    void* map = ::mmap(nullptr, reference->shards()[shard].file_bytes, PROT_READ, MAP_SHARED,
                       files.back(), 0);
    if (files.back() < 0 || map == MAP_FAILED) give_up("cannot map a shard");
    maps.push_back(static_cast<const uint8_t*>(map));
  }
  const auto plain_mmap = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const SampleLocation& at = work.places[i].where;
      std::memcpy(work.buffer(i), maps[at.shard] + at.offset, at.bytes);
    }
  };
  const auto plain_pread = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const SampleLocation& at = work.places[i].where;
      if (::pread(files[at.shard], work.buffer(i), at.bytes, static_cast<off_t>(at.offset)) < 0) {
        give_up("pread failed");
      }
    }
  };
  std::vector<ReadItem> items;
  const auto read_many = [&](const Pack& pack, size_t begin, size_t end) {
    items.clear();
    for (size_t i = begin; i < end; ++i) {
      items.push_back({work.places[i].sample, {work.buffer(i), work.largest}, 0, {}});
    }
    const Status status = pack.read_many(0, items);
    if (!status.ok()) give_up(status.to_string());
  };
  const auto read_one_by_one = [&](const Pack& pack, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto bytes = pack.read(work.places[i].sample, 0, {work.buffer(i), work.largest});
      if (!bytes.ok()) give_up(bytes.status().to_string());
    }
  };
  const struct {
    const char* name;
    EngineChoice engine;
    bool check, many, against_mmap;
  } cases[] = {
      {"mmap, many", EngineChoice::kMmap, false, true, true},
      {"mmap, many, checked", EngineChoice::kMmap, true, true, true},
      {"mmap, one by one", EngineChoice::kMmap, false, false, true},
      {"pread, many", EngineChoice::kPread, false, true, false},
      {"pread, many, checked", EngineChoice::kPread, true, true, false},
      {"pread, one by one", EngineChoice::kPread, false, false, false},
      {"pool, many, against pread", EngineChoice::kPool, false, true, false},
      {"uring, many, against pread", EngineChoice::kUring, false, true, false},
  };
  std::printf("%s random reads in batches of %zu, %s bytes each on average\n",
              format_count(work.places.size()).c_str(), kBatch,
              format_count(work.bytes / work.places.size()).c_str());
  for (const auto& one : cases) {
    const auto pack = open_pack(path, one.engine, one.check);
    const ReadBatch plain = one.against_mmap ? ReadBatch(plain_mmap) : ReadBatch(plain_pread);
    compare(one.name, settings.rounds, work.places.size(), work.bytes, plain,
            [&](size_t begin, size_t end) {
              one.many ? read_many(*pack, begin, end) : read_one_by_one(*pack, begin, end);
            });
  }
  for (size_t shard = 0; shard < files.size(); ++shard) {
    ::munmap(const_cast<uint8_t*>(maps[shard]), reference->shards()[shard].file_bytes);
    ::close(files[shard]);
  }
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (i + 1 == argc) give_up(option + " needs a value");
    const std::string value = argv[++i];
    if (option == "--work") {
      settings.work = value;
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number == 0) {
      give_up("'" + value + "' is no number");
    }
    if (option == "--samples") {
      settings.samples = number;
    } else if (option == "--bytes") {
      settings.mean_bytes = number;
    } else if (option == "--rounds") {
      settings.rounds = static_cast<int>(number);
    } else {
      give_up("there is no option " + option);
    }
  }
  return settings;
}

}  // namespace
}  // namespace spk::bench

int main(int argc, char** argv) {
  spk::bench::Settings settings = spk::bench::parse(argc, argv);
  const spk::test::TempDir dir;
  if (settings.work.empty()) settings.work = dir.path();
  spk::bench::measure_open(settings);
  spk::bench::measure_reads(settings);
  return 0;
}
