#include "pipeline/pack_files.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "container/layout_record.h"
#include "container/pack.h"
#include "container/repair.h"
#include "io/atomic_file.h"
#include "io/file.h"
#include "io/filesystem.h"
#include "pipeline/sha256.h"
#include "ui/version.h"

namespace spk {

namespace {

Result<bool> is_pack_directory(const Directory& dir) { return dir.exists(kManifestName); }

// Not what is in them, which is for verify; but a pack that lacks a shard is not complete.
Status check_shards_are_there(const Pack& pack) {
  constexpr std::string_view kHelp =
      "`stripepack verify` lists what is damaged, `stripepack repair` mends it; --force makes the "
      "pack anew";
  for (size_t i = 0; i < pack.shards().size(); ++i) {
    const std::string name = shard_file_name(static_cast<uint32_t>(i));
    auto file = File::open_read(pack.directory(), name);
    if (!file.ok()) return std::move(file).status().with_hint(kHelp);
    SPK_ASSIGN(const uint64_t bytes, file->size());
    if (bytes == pack.shards()[i].file_bytes) continue;
    return damaged(str_cat("shard has ", bytes, " bytes, expected ", pack.shards()[i].file_bytes))
        .at_path(pack.directory().path_of(name))
        .with_hint(kHelp);
  }
  return {};
}

std::string settings_difference(const Settings& before, const Settings& now) {
  std::string text;
  const auto find = [](const Settings& settings, const std::string& key) -> const std::string* {
    for (const auto& [name, value] : settings) {
      if (name == key) return &value;
    }
    return nullptr;
  };
  for (const auto& [key, value] : now) {
    const std::string* old = find(before, key);
    if (old != nullptr && *old == value) continue;
    if (!text.empty()) text += "; ";
    text += str_cat(key, ": ", old == nullptr ? "unset" : escape_bytes(*old), " before, ",
                    escape_bytes(value), " now");
  }
  return text;
}

Status write_layout(const Directory& dir, const StripeOutcome& stripes, const SealSummary& sealed) {
  LayoutRecord record;
  record.chunk_bytes = uint64_t{1} << sealed.header.chunk_bytes_log2;
  LayoutMap map;
  if (stripes.looked) {
    SPK_ASSIGN(const std::shared_ptr<Pack> pack, Pack::open(dir.path()));
    SPK_ASSIGN(map, look_at_layout(*pack));
  } else {
    map.file_system = detect_filesystem(dir.fd()).name;
  }
  map.made = utc_now();
  map.asked = stripes.asked;
  map.refused = stripes.refused;
  record.maps.push_back(std::move(map));
  return write_layout_record(dir, record);
}

Status write_run(const Directory& dir, const PackOptions& options,
                 const std::string& command_line) {
  JsonWriter json(2);
  json.begin_object();
  json.member("program", str_cat("stripepack ", program_version()));
  json.member("finished", utc_now());
  json.member_bytes("host", host_name());
  json.member_bytes("user", user_name());
  json.member_bytes("command", command_line);
  json.member_bytes("source", options.source);
  json.member("jobs", options.jobs);
  json.key("request").begin_object();
  for (const auto& [name, value] : options.request) json.member_bytes(name, value);
  json.end_object();
  json.end_object();
  return write_file_atomically(dir, kRunName, as_bytes(json.text() + "\n"));
}

}  // namespace

Result<OutputKind> classify_output(const Directory& parent, const std::string& name) {
  auto opened = Directory::open(parent.path_of(name));
  SPK_ASSIGN(const EntryInfo info, parent.stat(name));
  if (info.type == EntryType::kSymlink && !opened.ok()) return OutputKind::kForeign;
  if (!opened.ok()) {
    if (opened.status().code() == Code::kNotThisFormat) return OutputKind::kForeign;
    return std::move(opened).status();
  }
  SPK_ASSIGN(const bool pack, is_pack_directory(*opened));
  if (pack) return OutputKind::kPack;
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, opened->list());
  if (entries.empty()) {
    // What a link leads to cannot be replaced by a rename.
    return info.type == EntryType::kSymlink ? OutputKind::kForeign : OutputKind::kEmptyDirectory;
  }
  for (const DirectoryEntry& entry : entries) {
    if (entry.type != EntryType::kDirectory) return OutputKind::kForeign;
    SPK_ASSIGN(const Directory inner, Directory::open_at(*opened, entry.name));
    SPK_ASSIGN(const bool split, is_pack_directory(inner));
    if (!split) return OutputKind::kForeign;
  }
  return OutputKind::kPack;
}

bool is_or_lies_in(std::string folder, const struct stat& top) {
  for (int depth = 0; depth < 4096; ++depth) {
    struct stat here = {};
    if (stat(folder.c_str(), &here) != 0) return false;
    if (here.st_dev == top.st_dev && here.st_ino == top.st_ino) return true;
    folder += "/..";
    struct stat above = {};
    if (stat(folder.c_str(), &above) != 0) return false;
    if (above.st_dev == here.st_dev && above.st_ino == here.st_ino) return false;  // the root
  }
  return false;
}

namespace {

// PATH is one of the sources.
Status refuse_output_in(const std::string& path, const PackOptions& options,
                        const OutputPlace& place) {
  struct stat source = {};
  if (stat(path.c_str(), &source) != 0 || !S_ISDIR(source.st_mode)) return {};
  for (const std::string& name : {place.name, place.partial_name()}) {
    struct stat used = {};
    if (stat(str_cat(place.parent, "/", name).c_str(), &used) != 0) continue;
    if (used.st_dev != source.st_dev || used.st_ino != source.st_ino) continue;
    return invalid_argument("SRC is what OUT, or OUT.partial, would be written into")
        .at_path(options.output)
        .with_hint("choose an OUT outside of SRC");
  }
  if (!is_or_lies_in(place.parent, source)) return {};
  return invalid_argument("OUT lies inside SRC, which is never written into")
      .at_path(options.output)
      .with_hint("choose an OUT outside of SRC");
}

}  // namespace

Status refuse_output_in_source(const PackOptions& options, const OutputPlace& place) {
  SPK_TRY(refuse_output_in(options.source, options, place));
  for (const std::string& path : options.more_sources) {
    SPK_TRY(refuse_output_in(path, options, place));
  }
  return {};
}

Status describe_published_difference(const std::string& output,
                                     const std::vector<SplitOutcome>& splits,
                                     std::string* difference, uint64_t* rejects) {
  const auto add = [&](const std::string& split, const std::string& text) {
    if (!difference->empty()) *difference += "; ";
    if (!split.empty()) *difference += str_cat("split ", split, ": ");
    *difference += text;
  };
  for (const SplitOutcome& split : splits) {
    auto pack = Pack::open(split.split.empty() ? output : str_cat(output, "/", split.split));
    if (!pack.ok()) {
      const Code code = pack.status().code();
      if (code != Code::kNotThisFormat && code != Code::kNotFound) return std::move(pack).status();
      if (split.split.empty()) {
        add("", "splits of a pack each before, one pack now");
      } else {
        add(split.split, "not there before");
      }
      continue;
    }
    *rejects += (*pack)->index().header.reject_count;
    if ((*pack)->identity().plan_id == split.plan.plan_id) {
      SPK_TRY(check_shards_are_there(**pack));
      uint64_t dropped = 0;
      SPK_TRY(each_reject((*pack)->directory(), (*pack)->shards(), [&](const RejectRow& row) {
        dropped += row.reason.starts_with(kDroppedByRepair) ? 1 : 0;
        return Status();
      }));
      if (dropped != 0) {
        add(split.split, str_cat(count_of(dropped, "sample was", "samples were"),
                                 " damaged, and dropped by `stripepack repair`"));
      }
      continue;
    }
    std::string text = settings_difference((*pack)->settings(), split.plan.settings);
    const uint64_t before = (*pack)->sample_count() + (*pack)->index().header.reject_count;
    if (before != split.plan.sample_count) {
      if (!text.empty()) text += "; ";
      text += str_cat(count_of(before, "sample"), " before, ", split.plan.sample_count, " now");
    }
    if (text.empty()) text = "names, sizes or labels in the source changed";
    add(split.split, text);
  }
  return {};
}

Status write_sha256_sums(const Directory& dir, uint32_t shard_count) {
  std::vector<std::string> names = {std::string(kIndexName), std::string(kManifestName),
                                    std::string(kRejectsName)};
  for (uint32_t shard = 0; shard < shard_count; ++shard) names.push_back(shard_file_name(shard));
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) {
    SPK_ASSIGN(const std::string digest, sha256_of_file(dir, name));
    text += str_cat(digest, "  ", name, "\n");
  }
  return write_file_atomically(dir, kSha256Name, as_bytes(text));
}

Status write_companion_files(const Directory& dir, const PackOptions& options,
                             const std::string& command_line, const StripeOutcome& stripes,
                             const SealSummary& sealed) {
  SPK_TRY(write_layout(dir, stripes, sealed));
  SPK_TRY(write_run(dir, options, command_line));
  if (options.sha256) SPK_TRY(write_sha256_sums(dir, sealed.header.shard_count));
  return {};
}

std::string most_frequent(const std::map<std::string, uint64_t>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : str_cat(most->second, " x '", most->first, "'");
}

}  // namespace spk
