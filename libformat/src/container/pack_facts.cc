#include "container/pack_facts.h"

#include <algorithm>
#include <charconv>

#include "base/checked.h"
#include "base/text.h"
#include "container/footer_check.h"
#include "container/pack.h"

namespace spk {

namespace {

constexpr uint64_t kMaxFooterBytes = uint64_t{1} << 30;

struct Vote {
  Hash128 plan_id;
  uint64_t count = 0;
};

void vote(std::vector<Vote>& votes, const Hash128& plan_id) {
  for (Vote& known : votes) {
    if (known.plan_id != plan_id) continue;
    known.count += 1;
    return;
  }
  votes.push_back({plan_id, 1});
}

Result<Trailer> read_trailer(const Directory& dir, std::string_view name) {
  SPK_ASSIGN(const File file, File::open_read(dir, name));
  SPK_ASSIGN(const uint64_t file_bytes, file.size());
  std::vector<uint8_t> last(std::min<uint64_t>(Trailer::kBytes, file_bytes));
  SPK_TRY(file.read_exact(file_bytes - last.size(), last));
  return decode_trailer(last, file_bytes);
}

class Gatherer {
 public:
  Gatherer(const Directory& dir, const std::vector<DirectoryEntry>& entries, IndexCheck& index)
      : dir_(dir), index_(index) {
    for (const DirectoryEntry& entry : entries) {
      if (shard_number(entry.name)) shards_.push_back(entry.name);
    }
  }

  Result<PackFacts> run() {
    choose_plan();
    if (index_.head_ok()) from_index();
    // Footers tell what the index could not: most often nothing is left to ask.
    for (const std::string& name : shards_) {
      if (facts_.shard_count != 0 && facts_.has_schema && facts_.has_settings) break;
      const auto number = shard_number(name);
      const bool has_schema =
          *number == 0 || facts_.shard_count == 0 || *number + 1 == facts_.shard_count;
      if (has_schema || !facts_.has_settings) from_footer(name);
    }
    if (facts_.shard_count == 0) from_chunks();
    if (facts_.shard_count == 0) {
      return damaged("neither index, footers nor chunks tell what this pack is")
          .at_path(dir_.path());
    }
    return std::move(facts_);
  }

 private:
  void choose_plan() {
    std::vector<Vote> votes;
    if (index_.head_ok()) {
      const IndexHeader& header = index_.head().header;
      vote(votes, {header.plan_id_low, header.plan_id_high});
    }
    for (const std::string& name : shards_) {
      const auto trailer = read_trailer(dir_, name);
      if (trailer.ok()) vote(votes, {trailer->plan_id_low, trailer->plan_id_high});
    }
    if (votes.empty()) return;
    // The first of equals, so the index where it stands against one shard.
    const auto most = std::max_element(
        votes.begin(), votes.end(), [](const Vote& a, const Vote& b) { return a.count < b.count; });
    plan_id_ = most->plan_id;
    if (!index_.head_ok()) return;
    const IndexHeader& header = index_.head().header;
    const Hash128 plan_id{header.plan_id_low, header.plan_id_high};
    if (plan_id != *plan_id_) {
      index_.disown(str_cat("index is of plan ", plan_id.to_hex(), ", the shards are of plan ",
                            plan_id_->to_hex()));
    }
  }

  void from_index() {
    const IndexHeader& header = index_.head().header;
    facts_.identity = {*plan_id_, header.chunk_bytes_log2, header.blob_align_log2};
    facts_.shard_count = header.shard_count;
    facts_.schema_hash = {header.schema_hash_low, header.schema_hash_high};
    const auto fields = index_.section(PartKind::kFields);
    const auto classes = index_.section(PartKind::kClasses);
    if (fields && classes) take_schema(*fields, *classes);
    if (const auto settings = index_.section(PartKind::kSettings)) take_settings(*settings);
  }

  void from_footer(const std::string& name) {
    const auto file = File::open_read(dir_, name);
    if (!file.ok()) return;
    const auto size = file->size();
    if (!size.ok()) return;
    FooterCheck footer;
    std::vector<Damage> ignored;
    check_footer(*file, {*size, std::nullopt, kMaxFooterBytes}, ignored, footer);
    if (!footer.usable) return;
    const FooterHeader& header = footer.header();
    const Hash128 plan_id{header.plan_id_low, header.plan_id_high};
    if (plan_id_ && plan_id != *plan_id_) return;
    plan_id_ = plan_id;
    if (facts_.shard_count == 0) {
      facts_.identity = {plan_id, header.chunk_bytes_log2, header.blob_align_log2};
      facts_.shard_count = header.shard_count;
      facts_.schema_hash = {header.schema_hash_low, header.schema_hash_high};
    }
    const auto fields = footer.part(PartKind::kFields);
    const auto classes = footer.part(PartKind::kClasses);
    if (fields && classes) take_schema(*fields, *classes);
    if (const auto settings = footer.part(PartKind::kSettings)) take_settings(*settings);
  }

  // Every footer is gone: the chunks still know plan and chunk size. Their schema is lost.
  void from_chunks() {
    for (const std::string& name : shards_) {
      const auto file = File::open_read(dir_, name);
      uint8_t first[ChunkHeader::kBytes];
      if (!file.ok() || !file->read_exact(0, first).ok()) continue;
      const auto header = decode_chunk_header(first);
      if (!header.ok()) continue;
      facts_.identity = {{header->plan_id_low, header->plan_id_high},
                         header->chunk_bytes_log2,
                         header->blob_align_log2};
      facts_.shard_count = *shard_number(shards_.back()) + 1;
      return;
    }
  }

  void take_schema(ByteSpan fields, ByteSpan classes) {
    if (facts_.has_schema || schema_hash(fields, classes) != facts_.schema_hash) return;
    auto schema = decode_schema(fields, classes);
    if (!schema.ok()) return;
    facts_.schema = std::move(schema).value();
    facts_.fields.assign(fields.begin(), fields.end());
    facts_.classes.assign(classes.begin(), classes.end());
    facts_.has_schema = true;
  }
  void take_settings(ByteSpan settings) {
    if (facts_.has_settings || !decode_settings(settings).ok()) return;
    facts_.settings.assign(settings.begin(), settings.end());
    facts_.has_settings = true;
  }

  const Directory& dir_;
  IndexCheck& index_;
  std::vector<std::string> shards_;
  std::optional<Hash128> plan_id_;
  PackFacts facts_;
};

}  // namespace

std::optional<uint32_t> shard_number(std::string_view name) {
  constexpr std::string_view kPrefix = "shard-";
  constexpr std::string_view kSuffix = ".spks";
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const std::string_view digits = name.substr(
      kPrefix.size(), name.size() - std::min(name.size(), kPrefix.size() + kSuffix.size()));
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number >= kMaxShards ||
      shard_file_name(number) != name) {
    return std::nullopt;
  }
  return number;
}

Result<PackFacts> gather_facts(const Directory& dir, const std::vector<DirectoryEntry>& entries,
                               IndexCheck& index) {
  return Gatherer(dir, entries, index).run();
}

}  // namespace spk
