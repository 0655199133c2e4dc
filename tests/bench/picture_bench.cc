// Pictures of a pack, decoded with random resized crop 224 x 224: one run of one side, for
// picture_bench.py, which runs the sides in turns.
//   picture_bench PACK stripepack|linear|area EPOCH BATCHES [BATCH [THREADS]]
// All read batches with the same loader. stripepack decodes with libstripepack-image; the others
// with OpenCV, which decodes all, then cuts and resizes. Prints a line of JSON.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "stripepack/image.h"
#include "stripepack/stripepack.hpp"

#if SPK_HAVE_OPENCV
#include "bench/opencv_crop.h"
#endif

namespace {

using spk::bench::process_cpu_seconds;

constexpr uint32_t kSide = 224;
constexpr size_t kSlot = size_t{3} * kSide * kSide;

using Batch = std::vector<std::string_view>;
using Decode = std::function<bool(const Batch& pictures, const uint64_t* samples, uint8_t* out)>;

spk_image_ops random_crop(uint64_t epoch) {
  spk_image_ops ops = {};
  ops.struct_size = sizeof ops;
  ops.kind = SPK_IMAGE_RANDOM_RESIZED_CROP;
  ops.width = ops.height = kSide;
  ops.flip_probability = 0.5;
  ops.epoch = epoch;
  return ops;
}

Decode by_stripepack(uint32_t threads, const spk_image_ops& ops) {
  spk_image_pool* pool = nullptr;
  if (spk_image_pool_open(threads, &pool, nullptr) != SPK_OK) return {};
  return [pool, ops](const Batch& pictures, const uint64_t* samples, uint8_t* out) {
    std::vector<spk_image_item> items(pictures.size());
    for (size_t i = 0; i < items.size(); ++i) {
      items[i] = {
          pictures[i].data(), pictures[i].size(), out + kSlot * i, kSlot, samples[i], 0, 0, 0, 0};
    }
    return spk_image_decode_many(pool, items.data(), items.size(), &ops, nullptr) == SPK_OK;
  };
}

#if SPK_HAVE_OPENCV
Decode by_opencv(uint32_t threads, const spk_image_ops& ops, int how) {
  cv::setNumThreads(1);
  return [=](const Batch& pictures, const uint64_t* samples, uint8_t* out) {
    std::atomic<size_t> next{0};
    std::atomic<bool> good{true};
    const auto work = [&] {
      for (size_t i = next++; i < pictures.size(); i = next++) {
        if (!opencv_crop(pictures[i], samples[i], ops, how, out + kSlot * i)) good = false;
      }
    };
    std::vector<std::thread> others;
    for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work);
    work();
    for (std::thread& thread : others) thread.join();
    return good.load();
  };
}
#endif

Decode decoder(const std::string& name, uint32_t threads, const spk_image_ops& ops) {
  if (name == "stripepack") return by_stripepack(threads, ops);
#if SPK_HAVE_OPENCV
  if (name == "linear") return by_opencv(threads, ops, cv::INTER_LINEAR);
  if (name == "area") return by_opencv(threads, ops, cv::INTER_AREA);
#endif
  return {};
}

int run(int argc, char** argv) {
  const auto number = [&](int at, uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const uint64_t epoch = number(3, 0);
  const uint64_t batches = number(4, 1);
  stripepack::LoaderOptions options;
  options.epoch = epoch;
  options.batch = number(5, 256);
  const Decode decode = decoder(argv[2], static_cast<uint32_t>(number(6, 2)), random_crop(epoch));
  if (!decode) {
    std::fprintf(stderr, "this build has no %s\n", argv[2]);
    return 2;
  }
  const stripepack::Pack pack = stripepack::Pack::open(argv[1]);
  const uint32_t image = pack.field("image");
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  stripepack::Loader loader = pack.load(options);
  std::vector<uint8_t> out(kSlot * options.batch);
  uint64_t pictures = 0;
  for (uint64_t i = 0; i < batches; ++i) {
    const stripepack::Batch batch = loader.next();
    if (!batch) break;
    if (!decode(batch.blobs(image), batch.samples(), out.data())) {
      std::fprintf(stderr, "a picture cannot be decoded\n");
      return 1;
    }
    pictures += batch.size();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("{\"pictures\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f}\n",
              static_cast<unsigned long long>(pictures), seconds.count(),
              process_cpu_seconds() - cpu);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(
        stderr,
        "usage: picture_bench PACK stripepack|linear|area EPOCH BATCHES [BATCH [THREADS]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
