#include "container/reject_rescue.h"

#include <charconv>

#include "base/text.h"
#include "container/manifest.h"
#include "container/pack.h"
#include "io/atomic_file.h"

namespace spk {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

std::optional<RejectRow> parse_line(std::string_view line) {
  const size_t first = line.find('\t');
  const size_t second = first == line.npos ? line.npos : line.find('\t', first + 1);
  if (second == line.npos) return std::nullopt;
  RejectRow row;
  const auto [end, error] = std::from_chars(line.data(), line.data() + first, row.ordinal);
  auto key = unescape_bytes(line.substr(first + 1, second - first - 1));
  auto reason = unescape_bytes(line.substr(second + 1));
  if (error != std::errc() || end != line.data() + first || !key.ok() || !reason.ok()) {
    return std::nullopt;
  }
  row.key = std::move(*key);
  row.reason = std::move(*reason);
  return row;
}

}  // namespace

std::optional<std::vector<RejectRow>> RejectRescue::of_footer(const FooterCheck& footer) {
  const auto part = footer.part(PartKind::kRejects);
  if (!part) return std::nullopt;
  auto rows = decode_reject_rows(*part);
  if (!rows.ok() || rows->size() != footer.header().reject_count) return std::nullopt;
  return std::move(*rows);
}

std::optional<std::vector<RejectRow>> RejectRescue::of_file(uint32_t shard) const {
  std::string before = rejects_header();
  std::string after;
  for (const ShardSummary& other : shards_) {
    if (other.shard == shard) continue;
    if (!other.rejects) return std::nullopt;
    (other.shard < shard ? before : after) += *other.rejects;
  }
  const auto bytes = read_whole_file(dir_, kRejectsName, kMostBytes);
  if (!bytes.ok()) return std::nullopt;
  std::string_view text = as_text(*bytes);
  if (text.size() < before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after)) {
    return std::nullopt;
  }
  text = text.substr(before.size(), text.size() - before.size() - after.size());
  std::vector<RejectRow> rows;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == text.npos) return std::nullopt;
    auto row = parse_line(text.substr(0, end));
    if (!row) return std::nullopt;
    rows.push_back(std::move(*row));
    text.remove_prefix(end + 1);
  }
  const ShardSummary& own = shards_[shard];
  if (own.known && rows.size() != own.row.reject_count) return std::nullopt;
  return rows;
}

}  // namespace spk
