// The reading half of a trainer in C++: batches of samples in random order, one call a batch.
//
//   train PACK [RANK WORLD]
//
// The model is a stand-in (what each class weighs in bytes): step() is where a decoder and a model
// go. c++ -std=c++17 train.cc -o train $(pkg-config --cflags --libs stripepack); where stripepack
// lies outside the system's folders, add -Wl,-rpath,$(pkg-config --variable=libdir stripepack).
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <stripepack/stripepack.hpp>
#include <system_error>
#include <vector>

namespace {

constexpr std::size_t kBatch = 32;
constexpr int kEpochs = 2;

struct Class {
  std::uint64_t pictures = 0;
  std::uint64_t bytes = 0;
};
using Model = std::map<std::int64_t, Class>;

void step(Model& model, std::int64_t label, const std::vector<std::uint8_t>& picture) {
  ++model[label].pictures;
  model[label].bytes += picture.size();
}

// Reads the samples of one batch; neighbours are read together. A sample that cannot be read is
// told and left out.
void run_batch(const stripepack::Pack& pack, std::uint32_t image,
               const std::vector<std::uint64_t>& samples, const std::vector<std::int64_t>& labels,
               std::uint64_t first, Model& model) {
  std::vector<std::vector<std::uint8_t>> pictures(samples.size());
  std::vector<spk_read_item> items(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    pictures[i].resize(pack.locate(image, samples[i]).size);
    items[i] = {samples[i], pictures[i].data(), pictures[i].size(), 0, 0, 0};
  }
  stripepack::Error error;
  pack.read_many(image, items, error);
  if (error) std::cerr << "train: " << error.what() << '\n';
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].code == SPK_OK) step(model, labels[samples[i] - first], pictures[i]);
  }
}

void train(const char* path, std::uint64_t rank, std::uint64_t world) {
  const stripepack::Pack pack = stripepack::Pack::open(path);
  const std::uint32_t image = pack.field("image");
  const auto part = pack.part(rank, world);
  const std::vector<std::int64_t> labels = pack.ints(pack.field("label"), part);

  std::vector<std::uint64_t> order(part.end - part.begin);
  std::iota(order.begin(), order.end(), part.begin);
  Model model;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), std::mt19937_64(epoch));
    for (std::size_t begin = 0; begin < order.size(); begin += kBatch) {
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(kBatch, order.size() - begin));
      run_batch(pack, image, {from, to}, labels, part.begin, model);
    }
  }
  for (const auto& [label, of_class] : model) {
    std::cout << "rank " << rank << ": " << pack.class_name(static_cast<std::uint64_t>(label))
              << ' ' << of_class.pictures << " pictures of " << of_class.bytes / of_class.pictures
              << " bytes in " << kEpochs << " epochs\n";
  }
}

// RANK or WORLD: a whole number and nothing else, or the program ends.
std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end) {
    std::cerr << "train: '" << text << "' is not a whole number\n";
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
  if (help || (argc != 2 && argc != 4)) {
    (help ? std::cout : std::cerr) << "usage: train PACK [RANK WORLD]\n";
    return help ? 0 : 2;
  }
  const bool ranks = argc == 4;
  train(argv[1], ranks ? number(argv[2]) : 0, ranks ? number(argv[3]) : 1);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "train: " << error.what() << '\n';
  return 1;
}
