// A trainer's loop in C++: epochs of shuffled batches, read ahead, and a checkpoint to go on from.
//
//   train_loader PACK [RANK WORLD [STATE]]
//
// The same as train_loader.c, with owners that close what they hold and exceptions for errors.
// c++ -std=c++17 train_loader.cc -o train_loader $(pkg-config --cflags --libs stripepack)
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <stripepack/stripepack.hpp>
#include <system_error>

namespace {

constexpr std::uint64_t kBatch = 8;
constexpr std::uint64_t kEpochs = 2;

struct Model {
  std::uint64_t pictures = 0;
  std::uint64_t bytes = 0;
  std::int64_t labels = 0;  // their sum

  // The pictures lie in the loader's buffers, and stay there as long as the batch.
  void step(const stripepack::Batch& batch, std::uint32_t image, std::uint32_t label) {
    for (const std::string_view picture : batch.blobs(image)) bytes += picture.size();
    for (const std::int64_t number : batch.ints(label)) labels += number;
    pictures += batch.size();
  }
};

void train(const char* path, stripepack::LoaderOptions options) {
  const stripepack::Pack pack = stripepack::Pack::open(path);
  const std::uint32_t image = pack.field("image");
  const std::uint32_t label = pack.field("label");
  Model model;
  stripepack::Loader loader = pack.load(options);
  bool may_stop = options.state.empty();
  for (std::uint64_t epoch = loader.info().epoch; epoch < kEpochs;) {
    // Once, in the midst of the second epoch, training stops and goes on from its checkpoint.
    const bool stops = may_stop && epoch == 1;
    std::uint64_t left =
        stops ? loader.info().step_count / 2 : std::numeric_limits<std::uint64_t>::max();
    for (; left > 0; --left) {
      const stripepack::Batch batch = loader.next();
      if (!batch) break;
      model.step(batch, image, label);
    }
    if (stops) {
      options.state = loader.state();
      if (options.rank == 0) std::cout << options.state << '\n';
      loader = pack.load(options);
      may_stop = false;
    } else if (++epoch < kEpochs) {
      loader.start_epoch(epoch);
    }
  }
  std::cout << model.pictures << " pictures, " << model.bytes << " bytes, labels " << model.labels
            << '\n';
}

// RANK or WORLD: a whole number and nothing else, or the program ends.
std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end) {
    std::cerr << "train_loader: '" << text << "' is not a whole number\n";
    std::exit(2);
  }
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const bool help = argc == 2 && std::strcmp(argv[1], "--help") == 0;
  if (help || (argc != 2 && argc != 4 && argc != 5)) {
    (help ? std::cout : std::cerr) << "usage: train_loader PACK [RANK WORLD [STATE]]\n";
    return help ? 0 : 2;
  }
  stripepack::LoaderOptions options;
  options.rank = argc > 2 ? number(argv[2]) : 0;
  options.world = argc > 3 ? number(argv[3]) : 1;
  options.batch = kBatch;
  options.seed = 1;
  options.tail = SPK_TAIL_EXACT;  // every picture once an epoch
  options.state = argc > 4 ? argv[4] : "";
  try {
    train(argv[1], options);
  } catch (const stripepack::Error& error) {
    std::cerr << "train_loader: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
