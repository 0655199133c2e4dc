// What `pack --resize 256 --encode jpeg --quality 90` does to each picture, beside OpenCV: decode,
// INTER_AREA, encode at the same quality. In turns, so that both see the same machine. Then how
// near both come to a reference, where pictures get smaller: all decoded, averaged in floating
// point.
//   transform_bench [FOLDER [THREADS [ROUNDS]]]     FOLDER: otherwise $STRIPEPACK_BENCH_PICTURES
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "bench/measure.h"
#include "image/transform.h"

#if SPK_HAVE_OPENCV
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#endif

namespace {

using spk::bench::median;

constexpr uint32_t kSide = 256;
constexpr uint32_t kQuality = 90;

using Bytes = std::vector<uint8_t>;

std::vector<Bytes> read_files(const char* folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> files;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    files.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  return files;
}

struct Side {
  std::string name;
  std::function<Bytes(const Bytes&)> make;
  std::vector<double> wall_s;
  std::vector<double> cpu_s;
};

void measure(Side& side, const std::vector<Bytes>& files, unsigned threads) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) (void)side.make(files[i]);
  };
  const auto cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (unsigned t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  side.wall_s.push_back(wall.count());
  side.cpu_s.push_back(static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC);
}

#if SPK_HAVE_OPENCV
cv::Mat decoded(const Bytes& bytes) {
  return cv::imdecode(bytes, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
}

cv::Size target(const cv::Mat& whole) {
  const int shorter = std::min(whole.cols, whole.rows);
  const auto made = [&](int side) {
    return (2 * side * static_cast<int>(kSide) + shorter) / (2 * shorter);
  };
  return {made(whole.cols), made(whole.rows)};
}

Bytes with_opencv(const Bytes& file) {
  const cv::Mat whole = decoded(file);
  if (whole.empty()) return {};
  cv::Mat small;
  cv::resize(whole, small, target(whole), 0, 0, cv::INTER_AREA);
  Bytes out;
  cv::imencode(".jpg", small, out, {cv::IMWRITE_JPEG_QUALITY, kQuality});
  return out;
}

// In dB; 0 where there is nothing to compare.
double psnr(const Bytes& made, const cv::Mat& reference) {
  const cv::Mat picture = decoded(made);
  if (picture.empty() || picture.size() != reference.size()) return 0;
  cv::Mat exact;
  picture.convertTo(exact, CV_32F);
  const double norm = cv::norm(exact, reference, cv::NORM_L2);
  const double error = norm * norm / (3.0 * static_cast<double>(exact.total()));
  return 10 * std::log10(255 * 255 / std::max(error, 1e-9));
}

void compare(const std::vector<Side>& sides, const std::vector<Bytes>& files) {
  std::vector<double> total(sides.size());
  std::vector<double> bytes(sides.size());
  double count = 0;
  for (const Bytes& file : files) {
    const cv::Mat whole = decoded(file);
    if (whole.empty() || std::min(whole.cols, whole.rows) < static_cast<int>(kSide)) continue;
    cv::Mat exact;
    whole.convertTo(exact, CV_32F);
    cv::Mat reference;
    cv::resize(exact, reference, target(whole), 0, 0, cv::INTER_AREA);
    count += 1;
    for (size_t i = 0; i < sides.size(); ++i) {
      const Bytes made = sides[i].make(file);
      total[i] += psnr(made, reference);
      bytes[i] += static_cast<double>(made.size());
    }
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    std::printf("%-12s PSNR %.3f dB, %.0f bytes a picture\n", sides[i].name.c_str(),
                total[i] / count, bytes[i] / count);
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : std::getenv("STRIPEPACK_BENCH_PICTURES");
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  if (folder == nullptr || threads < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: transform_bench [FOLDER [THREADS [ROUNDS]]]\n");
    return 2;
  }
  const std::vector<Bytes> files = read_files(folder);
  if (files.empty()) return 2;

  spk::TransformOptions options;
  options.width = options.height = kSide;
  options.encode = spk::EncodeAs::kJpeg;
  options.quality = kQuality;
  const spk::Transformer transformer(options, spk::PackOptions{}.max_pixels, uint64_t{1} << 30);
  std::atomic<uint64_t> rejected{0};
  std::vector<Side> sides;
  sides.push_back({"stripepack",
                   [&](const Bytes& file) -> Bytes {
                     auto made = transformer.run(file, {});
                     if (!made.ok() || !made->reject.empty()) {
                       ++rejected;
                       return {};
                     }
                     return made->same ? file : std::move(made->bytes);
                   },
                   {},
                   {}});
#if SPK_HAVE_OPENCV
  cv::setNumThreads(1);
  sides.push_back({"opencv", with_opencv, {}, {}});
#endif
  for (int round = -1; round < rounds; ++round) {
    for (Side& side : sides) {
      measure(side, files, static_cast<unsigned>(threads));
      if (round < 0) side.wall_s.clear(), side.cpu_s.clear();  // warming up
    }
  }
  for (const Side& side : sides) {
    const auto count = static_cast<double>(files.size());
    std::printf("%-12s %d threads: %.0f pictures/s, %.3f ms CPU a picture; %.2f x as fast\n",
                side.name.c_str(), threads, count / median(side.wall_s),
                1e3 * median(side.cpu_s) / count,
                median(sides.back().wall_s) / median(side.wall_s));
  }
#if SPK_HAVE_OPENCV
  compare(sides, files);
#endif
  if (rejected != 0) std::printf("%lu rejected\n", static_cast<unsigned long>(rejected.load()));
  return 0;
}
