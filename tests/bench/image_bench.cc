// Decoding with random resized crop, 224 x 224: libstripepack-image beside OpenCV, which decodes
// all, then cuts and resizes (INTER_LINEAR, its fastest; and INTER_AREA, which averages as this
// library does). The same crops on both sides, in turns, so that both see the same machine.
//   image_bench [FOLDER [THREADS [ROUNDS]]]      FOLDER: otherwise $STRIPEPACK_BENCH_PICTURES
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "stripepack/image.h"

#if SPK_HAVE_OPENCV
#include "bench/opencv_crop.h"
#endif

namespace {

using spk::bench::median;
using spk::bench::process_cpu_seconds;

constexpr uint32_t kSide = 224;
constexpr size_t kSlot = size_t{3} * kSide * kSide;

std::vector<std::string> read_pictures(const char* folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> pictures;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    std::string picture((std::istreambuf_iterator<char>(file)), {});
    spk_image_header header = {};
    header.struct_size = sizeof header;
    if (spk_image_info(picture.data(), picture.size(), &header, nullptr) == SPK_OK) {
      pictures.push_back(std::move(picture));
    }
  }
  return pictures;
}

spk_image_ops random_crop(uint64_t epoch) {
  spk_image_ops ops = {};
  ops.struct_size = sizeof ops;
  ops.kind = SPK_IMAGE_RANDOM_RESIZED_CROP;
  ops.width = ops.height = kSide;
  ops.flip_probability = 0.5;
  ops.epoch = epoch;
  return ops;
}

struct Side {
  std::string name;
  std::function<void(uint64_t epoch)> run;
  std::vector<double> wall_s;
  std::vector<double> cpu_s;
};

void measure(Side& side, uint64_t epoch) {
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  side.run(epoch);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  side.wall_s.push_back(wall.count());
  side.cpu_s.push_back(process_cpu_seconds() - cpu);
}

}  // namespace

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("STRIPEPACK_BENCH_PICTURES");
  if (folder == nullptr) {
    std::fprintf(stderr, "usage: image_bench [FOLDER [THREADS [ROUNDS]]]\n");
    return 2;
  }
  const auto threads = static_cast<uint32_t>(argc > 2 ? std::atoi(argv[2]) : 2);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  const std::vector<std::string> pictures = read_pictures(folder);
  if (pictures.empty() || threads < 1 || rounds < 1) return 2;
  std::vector<uint8_t> batch(kSlot * pictures.size());

  spk_image_pool* pool = nullptr;
  if (spk_image_pool_open(threads, &pool, nullptr) != SPK_OK) return 1;
  std::vector<spk_image_item> items(pictures.size());
  std::atomic<bool> failed{false};
  std::vector<Side> sides(1);
  sides[0].name = "stripepack";
  sides[0].run = [&](uint64_t epoch) {
    for (size_t i = 0; i < items.size(); ++i) {
      items[i] = {pictures[i].data(), pictures[i].size(), &batch[kSlot * i], kSlot, i, 0, 0, 0, 0};
    }
    const spk_image_ops ops = random_crop(epoch);
    spk_error error = {};
    error.struct_size = sizeof error;
    if (spk_image_decode_many(pool, items.data(), items.size(), &ops, &error) != SPK_OK) {
      std::fprintf(stderr, "%s\n", error.message);
      failed = true;
    }
  };
#if SPK_HAVE_OPENCV
  cv::setNumThreads(1);
  for (const auto& [name, how] : {std::pair("opencv linear", int{cv::INTER_LINEAR}),
                                  std::pair("opencv area", int{cv::INTER_AREA})}) {
    sides.push_back({name,
                     [&, how = how](uint64_t epoch) {
                       const spk_image_ops ops = random_crop(epoch);
                       std::atomic<size_t> next{0};
                       const auto work = [&] {
                         for (size_t i = next++; i < pictures.size(); i = next++) {
                           opencv_crop(pictures[i], i, ops, how, &batch[kSlot * i]);
                         }
                       };
                       std::vector<std::thread> others;
                       for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work);
                       work();
                       for (std::thread& thread : others) thread.join();
                     },
                     {},
                     {}});
  }
#endif
  for (Side& side : sides) side.run(0);
  for (int round = 1; round <= rounds; ++round) {
    for (Side& side : sides) measure(side, static_cast<uint64_t>(round));
  }
  const auto count = static_cast<double>(pictures.size());
  std::printf("%zu pictures, %u threads, %d rounds, medians\n", pictures.size(), threads, rounds);
  for (const Side& side : sides) {
    std::vector<double> wall_ratio;
    std::vector<double> cpu_ratio;
    for (size_t i = 0; i < side.wall_s.size(); ++i) {
      wall_ratio.push_back(side.wall_s[i] / sides[0].wall_s[i]);
      cpu_ratio.push_back(side.cpu_s[i] / sides[0].cpu_s[i]);
    }
    std::printf(
        "%-14s %8.0f pictures/s  %6.3f CPU ms each  stripepack is %.2f x in time, %.2f x in CPU\n",
        side.name.c_str(), count / median(side.wall_s), median(side.cpu_s) / count * 1e3,
        median(wall_ratio), median(cpu_ratio));
  }
  spk_image_pool_close(pool);
  return failed ? 1 : 0;
}
