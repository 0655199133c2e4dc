#include "commands/order_samples.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "io/file.h"

namespace spk {

Result<std::vector<uint64_t>> first_samples_of(const Pack& pack) {
  std::vector<uint64_t> first_samples;
  first_samples.reserve(pack.chunk_count() + 1);
  for (uint64_t i = 0; i < pack.chunk_count(); ++i) {
    SPK_ASSIGN(const ChunkLocation chunk, pack.chunk(i));
    first_samples.push_back(chunk.first_sample);
  }
  first_samples.push_back(pack.sample_count());
  return first_samples;
}

Result<std::vector<uint64_t>> first_samples_of(const std::vector<uint64_t>& unit_samples) {
  constexpr uint64_t kMostSamples = uint64_t{1} << 62;
  std::vector<uint64_t> first_samples{0};
  first_samples.reserve(unit_samples.size() + 1);
  for (const uint64_t count : unit_samples) {
    if (count > kMostSamples - first_samples.back()) {
      return invalid_argument("more than 2^62 samples in all");
    }
    first_samples.push_back(first_samples.back() + count);
  }
  return first_samples;
}

Result<std::vector<uint64_t>> read_numbers(const std::string& path, uint64_t least, uint64_t most) {
  SPK_ASSIGN(const File file, File::open_read(path));
  SPK_ASSIGN(const uint64_t bytes, file.size());
  std::string text(bytes, '\0');
  SPK_TRY(file.read_exact(0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  std::vector<uint64_t> numbers;
  const char* const end = text.data() + text.size();
  uint64_t line = 1;
  for (const char* at = text.data(); at < end; ++line) {
    const char* line_end = std::find(at, end, '\n');
    uint64_t number = 0;
    if (at != line_end) {
      const auto [stop, error] = std::from_chars(at, line_end, number);
      if (error != std::errc() || stop != line_end || number < least || number > most) {
        return invalid_argument(
                   str_cat("line ", line, ": '",
                           escape_bytes(std::string_view(at, std::min<size_t>(line_end - at, 40))),
                           "' is not a whole number from ", least, " to ", most))
            .at_path(path);
      }
      numbers.push_back(number);
    }
    at = line_end == end ? end : line_end + 1;
  }
  return numbers;
}

PositionReader::PositionReader(EpochOrder& order)
    : order_(order), open_(order.has_windows() ? order.lanes() : 0) {}

uint64_t PositionReader::sample_at(uint64_t position) {
  if (!order_.has_windows()) return order_.sample_at(position);
  const auto lane = static_cast<uint32_t>(position % order_.lanes());
  const uint64_t row = position / order_.lanes();
  OpenWindow& open = open_[lane];
  if (row < open.first_row || row - open.first_row >= open.samples.size()) {
    const LaneWindow& window = order_.window_at(lane, row);
    open.first_row = window.first_row;
    order_.window_samples(window, open.samples);
  }
  return open.samples[row - open.first_row];
}

}  // namespace spk
