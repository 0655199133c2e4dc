// to_text and to_json of pipeline/dry_run.h.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "pipeline/dry_run.h"

namespace spk {

namespace {

constexpr size_t kClassesShown = 10;

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string duration_text(double seconds) {
  if (seconds < 60) return format_fixed(seconds, seconds < 10 ? 1 : 0) + " s";
  if (seconds < 3600) return format_fixed(seconds / 60, 1) + " min";
  if (seconds < 48 * 3600) return format_fixed(seconds / 3600, 1) + " h";
  return format_fixed(seconds / 86400, 1) + " days";
}

std::string rate_text(const ReadRate& rate) {
  if (rate.samples == 0) return "not measured";
  return str_cat(format_fixed(rate.samples_per_second(), 0), " samples/s, ",
                 format_fixed(rate.bytes_per_second() / 1e6, 1), " MB/s");
}

std::string optional_size(const std::optional<uint64_t>& bytes) {
  return bytes ? format_size(*bytes) : "unknown";
}

void add_split_text(const DryRunReport::Split& split, std::string* out) {
  const PlanInfo& info = split.info;
  const PackEstimate& estimate = split.estimate;
  if (!info.split.empty()) *out += str_cat("split ", escape_bytes(info.split), "\n");
  *out +=
      str_cat("  samples   ", format_count(info.sample_count), " (", format_size(info.total_bytes),
              ", largest ", format_size(info.max_sample_bytes), ")\n");
  if (split.made_anew) {
    *out += str_cat("  made anew about ", format_size(estimate.payload_bytes),
                    " of pictures; that and all that follows from it is an estimate\n");
  }
  if (info.listed_rejects != 0) {
    *out += str_cat("  rejected  ", format_count(info.listed_rejects), " by the listing alone\n");
  }
  *out += str_cat("  shards    ", info.geometry.shard_count, " of about ",
                  format_size(estimate.pack_bytes / info.geometry.shard_count), ", chunks of ",
                  format_size(info.geometry.chunk_bytes), "\n");
  *out += str_cat("  padding   ", format_size(estimate.padding_bytes), " (",
                  format_fixed(percent(estimate.padding_bytes, estimate.pack_bytes), 2),
                  " %), tables ", format_size(estimate.table_bytes), ", index and footers ",
                  format_size(estimate.index_bytes), "\n");
  *out += str_cat("  files     ", estimate.files, "\n");
  *out += str_cat("  stripes   ", escape_bytes(split.stripes_asked), "\n");
  for (const std::string& reason : split.stripes_reasons) {
    *out += str_cat("    ", escape_bytes(reason), "\n");
  }
  if (info.class_counts.empty()) return;
  const auto [least, most] =
      std::minmax_element(info.class_counts.begin(), info.class_counts.end());
  *out += str_cat("  classes   ", format_count(info.classes.size()), " with ", format_count(*least),
                  " to ", count_of(*most, "sample"), "\n");
  for (size_t i = 0; i < info.classes.size() && i < kClassesShown; ++i) {
    *out += str_cat("    ", i, "  ", escape_bytes(info.classes[i]), "  ",
                    format_count(info.class_counts[i]), "\n");
  }
  if (info.classes.size() > kClassesShown) *out += "    ... (all with --json)\n";
}

void add_rate(JsonWriter& json, const char* name, const ReadRate& rate) {
  json.key(name).begin_object();
  json.member("samples", rate.samples).member("bytes", rate.bytes).member("seconds", rate.seconds);
  json.end_object();
}

void add_optional(JsonWriter& json, const char* name, const std::optional<uint64_t>& value) {
  json.key(name);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

void add_split_json(JsonWriter& json, const DryRunReport::Split& split) {
  const PlanInfo& info = split.info;
  json.begin_object();
  json.member_bytes("split", info.split);
  json.member("samples", info.sample_count).member("rejects", info.listed_rejects);
  json.member("bytes", info.total_bytes).member("max_sample_bytes", info.max_sample_bytes);
  json.member("shards", info.geometry.shard_count).member("chunk_bytes", info.geometry.chunk_bytes);
  json.member("chunks", split.estimate.chunk_count);
  json.member("made_anew", split.made_anew);
  json.member("payload_bytes", split.estimate.payload_bytes);
  json.member("padding_bytes", split.estimate.padding_bytes);
  json.member("table_bytes", split.estimate.table_bytes);
  json.member("index_bytes", split.estimate.index_bytes);
  json.member("pack_bytes", split.estimate.pack_bytes).member("files", split.estimate.files);
  json.member_bytes("stripes_asked", split.stripes_asked);
  json.key("stripes_reasons").begin_array();
  for (const std::string& reason : split.stripes_reasons) json.bytes(reason);
  json.end_array();
  json.key("settings").begin_object();
  for (const auto& [name, value] : info.settings) json.member_bytes(name, value);
  json.end_object();
  json.key("classes").begin_array();
  for (size_t i = 0; i < info.class_counts.size(); ++i) {
    json.begin_object().member_bytes("name", info.classes[i]);
    json.member("samples", info.class_counts[i]).end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::string to_text(const DryRunReport& report) {
  std::string out = str_cat("source: ", report.listing.source_kind);
  if (!report.listing.form.empty()) out += str_cat(" (", report.listing.form, ")");
  out += "\n";
  for (const DryRunReport::Split& split : report.splits) add_split_text(split, &out);
  for (const auto& [reason, count] : report.listing.ignored) {
    out += str_cat("left out: ", format_count(count), " ", reason, "\n");
  }
  for (const auto& [kind, warning] : report.listing.warnings.kinds()) {
    out += str_cat("warning: ", kind, ": ", format_count(warning.count));
    if (!warning.examples.empty()) out += str_cat(", such as ", warning.examples.front());
    out += "\n";
  }
  out += str_cat("needed: ", format_size(report.pack_bytes), " in ", count_of(report.files, "file"),
                 ", and ", format_size(report.work_bytes), " while packing\n");
  if (report.spool_bytes != 0) {
    out += str_cat("unpacked first: ", format_size(report.spool_bytes),
                   " of the source, beside the pack until it is done\n");
  }
  out += str_cat("free: ", optional_size(report.free_bytes), " at ",
                 escape_bytes(report.output_folder),
                 "; quota left: ", optional_size(report.quota.bytes),
                 report.fits ? "" : " -- NOT ENOUGH", "\n");
  out += str_cat("reading at random: ", rate_text(report.scattered), "\n");
  out += str_cat("reading in sequence: ", rate_text(report.sequential), "\n");
  if (report.read_seconds) {
    out += str_cat("time to read all: about ", duration_text(*report.read_seconds), " with ",
                   count_of(report.readers, "reader"),
                   "; whether the samples came from memory or from the disks is unknown, and "
                   "writing is not in it\n");
  }
  out += "nothing was written\n";
  return out;
}

std::string to_json(const DryRunReport& report) {
  JsonWriter json;
  json.begin_object().member("type", "dry_run").member("v", 1);
  json.member_bytes("source_kind", report.listing.source_kind);
  json.member_bytes("source_form", report.listing.form);
  json.key("splits").begin_array();
  for (const DryRunReport::Split& split : report.splits) add_split_json(json, split);
  json.end_array();
  json.key("ignored").begin_object();
  for (const auto& [reason, count] : report.listing.ignored) json.member(reason, count);
  json.end_object();
  json.key("warnings").begin_array();
  for (const auto& [kind, warning] : report.listing.warnings.kinds()) {
    json.begin_object().member_bytes("kind", kind).member("count", warning.count);
    json.key("examples").begin_array();
    for (const std::string& example : warning.examples) json.value(example);  // escaped already
    json.end_array().end_object();
  }
  json.end_array();
  json.member("pack_bytes", report.pack_bytes).member("files", report.files);
  json.member("work_bytes", report.work_bytes).member("spool_bytes", report.spool_bytes);
  json.member_bytes("output_folder", report.output_folder);
  add_optional(json, "free_bytes", report.free_bytes);
  add_optional(json, "free_files", report.free_files);
  add_optional(json, "quota_left_bytes", report.quota.bytes);
  add_optional(json, "quota_left_files", report.quota.files);
  json.member("fits", report.fits);
  json.member("readers", uint32_t{report.readers});
  add_rate(json, "read_at_random", report.scattered);
  add_rate(json, "read_in_sequence", report.sequential);
  json.key("read_seconds");
  if (report.read_seconds) {
    json.value(*report.read_seconds);
  } else {
    json.null();
  }
  json.member("cache_state", "unknown").end_object();
  return json.text();
}

}  // namespace spk
