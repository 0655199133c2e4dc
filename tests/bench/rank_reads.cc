// One rank of R that together read all samples of a data set once, in random order.
//
//   rank_reads pack PACK EPOCH RANK RANKS    the pack's loader, shuffled order, checksums on
//   rank_reads direct PACK EPOCH RANK RANKS  the same past the page cache
//   rank_reads files ROOT LIST RANK RANKS    one file a sample: open, read, close
//   rank_reads lmdb DIR LIST RANK RANKS      an LMDB: get by key
//   rank_reads make-lmdb DIR LIST ROOT       fills an LMDB: a file's name in LIST is its key
//
// LIST has names, one a line, in the order in which they are read: the rank's share is a contiguous
// part of it. A rank says "ready", opens and reads once it gets a line, adds up every byte, and
// prints samples, bytes, the sum, which does not depend on the order or on how ranks divide, and
// the microseconds of CPU time since that line.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/text.h"
#include "bench/measure.h"
#include "loader/loader.h"

namespace spk::bench {
namespace {

struct Found {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t sum = 0;

  void add(const uint8_t* data, size_t size) {
    ++samples;
    bytes += size;
    sum += sum_of_words(data, size);
  }
};

// Of all ranks' work, the part of one.
struct Share {
  uint64_t rank = 0;
  uint64_t ranks = 1;
};

uint64_t cpu_us() { return static_cast<uint64_t>(process_cpu_seconds() * 1e6 + 0.5); }

void wait_for_start() {
  std::printf("ready\n");
  std::fflush(stdout);
  std::string line;
  if (!std::getline(std::cin, line)) give_up("nobody says when to start");
}

std::vector<std::string> names_of(const std::string& list, Share share) {
  std::ifstream file(list);
  if (!file) give_up("cannot open " + list);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  const auto at = [&](uint64_t rank) {
    return all.begin() + static_cast<ptrdiff_t>(all.size() * rank / share.ranks);
  };
  return {at(share.rank), at(share.rank + 1)};
}

// Into `buffer`, which grows; the number of bytes.
size_t read_file(const std::string& path, std::vector<uint8_t>& buffer) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info = {};
  if (file < 0 || ::fstat(file, &info) != 0) give_up("cannot open " + path);
  const auto size = static_cast<size_t>(info.st_size);
  if (buffer.size() < size) buffer.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got = ::read(file, buffer.data() + done, size - done);
    if (got <= 0) give_up("cannot read " + path);
    done += static_cast<size_t>(got);
  }
  ::close(file);
  return size;
}

Found read_files(const std::string& root, const std::vector<std::string>& names) {
  Found found;
  std::vector<uint8_t> buffer;
  for (const std::string& name : names) {
    const size_t size = read_file(str_cat(root, "/", name), buffer);
    found.add(buffer.data(), size);
  }
  return found;
}

Found read_pack(const std::string& path, uint64_t epoch, Share share, DirectChoice direct) {
  auto pack = Pack::open(path);
  must(pack.status());
  LoaderOptions options;
  options.epoch = epoch;
  options.rank = share.rank;
  options.world = share.ranks;
  options.tail = TailRule::kExact;
  options.direct = direct;
  options.fields = {"image"};
  auto loader = Loader::open(*pack, options);
  must(loader.status());
  std::fprintf(stderr, "%s %s\n", engine_choice_name((*loader)->reading().engine),
               (*loader)->reading().why.c_str());
  Found found;
  for (;;) {
    auto batch = (*loader)->next();
    must(batch.status());
    if (*batch == nullptr) return found;
    for (size_t i = 0; i < (*batch)->size(); ++i) {
      const ByteSpan blob = (*batch)->blob(i, 0);
      found.add(blob.data(), blob.size());
    }
  }
}

#if SPK_HAVE_LMDB
// An environment and a transaction in it, as long as the process lives.
struct Lmdb {
  MDB_env* env = nullptr;
  MDB_txn* txn = nullptr;
  MDB_dbi db = 0;

  Lmdb(const std::string& path, bool writes) {
    lmdb_must(mdb_env_create(&env));
    lmdb_must(mdb_env_set_mapsize(env, size_t{1} << 40));
    lmdb_must(mdb_env_open(env, path.c_str(), writes ? 0 : MDB_RDONLY | MDB_NOLOCK, 0644));
    lmdb_must(mdb_txn_begin(env, nullptr, writes ? 0 : MDB_RDONLY, &txn));
    lmdb_must(mdb_dbi_open(txn, nullptr, 0, &db));
  }
};

MDB_val value_of(std::string& name) { return {name.size(), name.data()}; }

Found read_lmdb(const std::string& path, std::vector<std::string> names) {
  const Lmdb lmdb(path, false);
  Found found;
  for (std::string& name : names) {
    MDB_val key = value_of(name);
    MDB_val value = {};
    lmdb_must(mdb_get(lmdb.txn, lmdb.db, &key, &value));
    found.add(static_cast<const uint8_t*>(value.mv_data), value.mv_size);
  }
  return found;
}

// In the order of the names, so that the file has no holes.
void make_lmdb(const std::string& path, const std::string& root, std::vector<std::string> names) {
  const Lmdb lmdb(path, true);
  std::sort(names.begin(), names.end());
  std::vector<uint8_t> buffer;
  for (std::string& name : names) {
    MDB_val key = value_of(name);
    MDB_val value = {read_file(str_cat(root, "/", name), buffer), buffer.data()};
    lmdb_must(mdb_put(lmdb.txn, lmdb.db, &key, &value, MDB_APPEND));
  }
  lmdb_must(mdb_txn_commit(lmdb.txn));
  mdb_env_close(lmdb.env);
}
#else
Found read_lmdb(const std::string&, const std::vector<std::string>&) {
  give_up("built without LMDB: `apt install liblmdb-dev`");
}
void make_lmdb(const std::string&, const std::string&, const std::vector<std::string>&) {
  give_up("built without LMDB: `apt install liblmdb-dev`");
}
#endif

uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

int run(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "make-lmdb" && argc == 5) {
    make_lmdb(argv[2], argv[4], names_of(argv[3], {}));
    return 0;
  }
  if (argc != 6) give_up("KIND PLACE LIST|EPOCH RANK RANKS");
  const std::string place = argv[2];
  const Share share = {number(argv[4]), number(argv[5])};
  if (share.rank >= share.ranks) give_up("RANK is below RANKS");
  const bool reads_pack = kind == "pack" || kind == "direct";
  const auto names = reads_pack ? std::vector<std::string>() : names_of(argv[3], share);
  wait_for_start();
  const uint64_t cpu_start_us = cpu_us();
  Found found;
  if (reads_pack) {
    found = read_pack(place, number(argv[3]), share,
                      kind == "direct" ? DirectChoice::kOn : DirectChoice::kAuto);
  } else if (kind == "files") {
    found = read_files(place, names);
  } else if (kind == "lmdb") {
    found = read_lmdb(place, names);
  } else {
    give_up("there is no kind " + kind);
  }
  std::cout << found.samples << ' ' << found.bytes << ' ' << found.sum << ' '
            << cpu_us() - cpu_start_us << std::endl;
  return 0;
}

}  // namespace
}  // namespace spk::bench

int main(int argc, char** argv) { return spk::bench::run(argc, argv); }
