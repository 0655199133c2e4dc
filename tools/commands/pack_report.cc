#include "commands/pack_report.h"

#include <sys/stat.h>

#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "pipeline/claim.h"
#include "pipeline/pack_files.h"
#include "sources/names.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

const char* end_name(PackEnd end) {
  switch (end) {
    case PackEnd::kPublished: return "published";
    case PackEnd::kComplete: return "complete";
    case PackEnd::kNotPublished: return "not_published";
    case PackEnd::kPartBuilt: return "part_built";
    case PackEnd::kPartPublished: return "part_published";
  }
  return "unknown";
}

void write_outcome(JsonWriter& json, const PackOptions& options, const PackOutcome& outcome) {
  json.member("result", end_name(outcome.end));
  json.member_bytes("out", options.output);
  json.member("seconds", outcome.seconds);
  json.member("rejects", outcome.rejects);
  if (outcome.wrote_sha256) json.member("wrote_sha256", true);
  json.member("max_rejects", options.max_rejects);
  if (options.part) json.member("part", to_text(*options.part));
  if (outcome.end == PackEnd::kPartBuilt) json.member("shards_missing", outcome.shards_missing);
  json.key("packs").begin_array();
  for (const SplitOutcome& split : outcome.splits) {
    json.begin_object();
    json.member_bytes("split", split.split);
    json.member("plan_id", split.plan.plan_id.to_hex());
    if (outcome.end == PackEnd::kPublished) {
      json.member("content_id", split.content_id.to_hex());
      json.member("total_bytes", split.size.total_bytes);
    }
    json.member("listed", split.plan.sample_count);
    json.member("chunk_bytes", split.plan.geometry.chunk_bytes);
    json.member("shards", split.plan.geometry.shard_count);
    if (outcome.end != PackEnd::kComplete) {
      json.member("samples", split.build.samples).member("rejects", split.build.rejects);
      json.member("payload_bytes", split.build.payload_bytes);
      json.member("shard_bytes", split.build.shard_bytes);
      json.member("shards_found_complete", split.build.shards_found_complete);
      json.member("samples_kept", split.build.kept_samples);
    }
    json.end_object();
  }
  json.end_array();
  json.member("classes", static_cast<uint64_t>(outcome.listing.classes.size()));
  json.key("ignored").begin_object();
  for (const auto& [why, count] : outcome.listing.ignored) json.member(why, count);
  json.end_object();
  json.key("reject_reasons").begin_object();
  for (const auto& [reason, count] : outcome.reject_reasons) {
    json.member(escape_bytes(reason), count);
  }
  json.end_object();
  json.key("warnings").begin_object();
  for (const auto& [kind, found] : outcome.warnings.kinds()) {
    json.key(escape_bytes(kind)).begin_object().member("count", found.count);
    json.key("examples").begin_array();
    for (const std::string& example : found.examples) json.value(example);
    json.end_array().end_object();
  }
  json.end_object();
  if (!outcome.old_pack.empty()) json.member_bytes("old_pack", outcome.old_pack);
}

std::string rejects_path(const PackOptions& options, const SplitOutcome& split) {
  return str_cat(options.output, ".partial/", split.split, split.split.empty() ? "" : "/",
                 "rejects.tsv");
}

void show_split(Ui& ui, const PackOutcome& outcome, const SplitOutcome& split) {
  const BuildResult& build = split.build;
  std::string line = split.split.empty() ? "packed " : str_cat(split.split, ": packed ");
  line += str_cat(count_of(build.samples, "sample"), ", ", format_size(build.payload_bytes),
                  ", into ", count_of(split.plan.geometry.shard_count, "shard"), " of ",
                  format_size(split.plan.geometry.chunk_bytes), " chunks");
  // The index counts as well, and is there only now.
  if (outcome.end == PackEnd::kPublished) line += "; " + split.size.overhead_text();
  (void)ui.out(line);
  if (build.shards_found_complete != 0 || build.kept_samples != 0) {
    (void)ui.out(str_cat("  continued: ", count_of(build.shards_found_complete, "shard"), " and ",
                         count_of(build.kept_samples, "sample"),
                         " were there from an earlier run"));
  }
  if (outcome.end == PackEnd::kPublished) {
    (void)ui.out(str_cat("  content id ", split.content_id.to_hex()));
  }
}

void show_counts(Ui& ui, const PackOutcome& outcome) {
  for (const auto& [why, count] : outcome.listing.ignored) {
    (void)ui.out(str_cat("  ignored: ", format_count(count), " x ", escape_bytes(why)));
  }
  for (const auto& [reason, count] : outcome.reject_reasons) {
    (void)ui.out(str_cat("  rejected: ", format_count(count), " x ", escape_bytes(reason)));
  }
  for (const auto& [kind, found] : outcome.warnings.kinds()) {
    std::string line = str_cat("  warning: ", format_count(found.count), " x ", escape_bytes(kind));
    if (!found.examples.empty()) line += str_cat(" (", found.examples.front(), ")");
    (void)ui.out(line);
  }
}

// What one of the parts of a job built, where another one publishes or has published.
void show_part(Ui& ui, const PackOptions& options, const PackOutcome& outcome) {
  uint64_t shards = 0, samples = 0, bytes = 0;
  for (const SplitOutcome& split : outcome.splits) {
    shards += split.build.shards_built;
    samples += split.build.samples;
    bytes += split.build.payload_bytes;
  }
  show_counts(ui, outcome);
  (void)ui.out(str_cat("part ", options.part ? to_text(*options.part) : "", ": ",
                       count_of(shards, "shard"), " with ", count_of(samples, "sample"), ", ",
                       format_size(bytes), ", in ", format_fixed(outcome.seconds, 1), " s"));
  if (outcome.end == PackEnd::kPartPublished) {
    (void)ui.out(str_cat("  another part has published ", escape_bytes(options.output)));
    return;
  }
  (void)ui.out(str_cat("  ", count_of(outcome.shards_missing, "shard"), " of other parts ",
                       outcome.shards_missing == 1 ? "is" : "are",
                       " not finished yet; the last part to end publishes ",
                       escape_bytes(options.output)));
}

}  // namespace

void show_outcome(Ui& ui, const PackOptions& options, const PackOutcome& outcome) {
  if (ui.json_mode()) {
    JsonWriter json = json_line("pack");
    write_outcome(json, options, outcome);
    (void)ui.json(json.end_object());
    return;
  }
  if (outcome.end == PackEnd::kComplete) {
    (void)ui.out(str_cat("complete: ", escape_bytes(options.output),
                         " is what this command line makes; ",
                         outcome.wrote_sha256 ? "SHA256SUMS was missing and is written, of the "
                                                "files as they are (`stripepack verify` proves "
                                                "them)"
                                              : "nothing to do"));
    if (outcome.rejects != 0) {
      (void)ui.out(str_cat("  it was published without ",
                           count_of(outcome.rejects, "sample that was", "samples that were"),
                           " rejected; its rejects.tsv tells which"));
    }
    return;
  }
  if (outcome.end == PackEnd::kPartBuilt || outcome.end == PackEnd::kPartPublished) {
    show_part(ui, options, outcome);
    return;
  }
  uint64_t bytes = 0;
  for (const SplitOutcome& split : outcome.splits) {
    show_split(ui, outcome, split);
    bytes += split.build.payload_bytes;
  }
  show_counts(ui, outcome);
  const double mib_per_s =
      outcome.seconds > 0 ? static_cast<double>(bytes) / 1048576 / outcome.seconds : 0;
  if (outcome.end == PackEnd::kNotPublished) {
    (void)ui.out(str_cat("not published: ", count_of(outcome.rejects, "sample was", "samples were"),
                         " rejected, --max-rejects allows ", format_count(options.max_rejects)));
    for (const SplitOutcome& split : outcome.splits) {
      if (split.build.rejects == 0) continue;
      (void)ui.out(
          str_cat("  each by name and reason: ", escape_bytes(rejects_path(options, split))));
    }
    (void)ui.out(str_cat("  to publish without them, ",
                         options.part
                             ? str_cat("`stripepack seal ", escape_bytes(options.output),
                                       " --max-rejects ", outcome.rejects, "`")
                             : str_cat("repeat the command with --max-rejects ", outcome.rejects)));
    return;
  }
  if (!outcome.old_pack.empty()) {
    (void)ui.out(str_cat("  the pack that was there is now ", escape_bytes(outcome.old_pack),
                         "; remove it when nobody reads it any more"));
  }
  (void)ui.out(str_cat("published ", escape_bytes(options.output), " in ",
                       format_fixed(outcome.seconds, 1), " s (", format_fixed(mib_per_s, 0),
                       " MiB/s)"));
}

Status refuse_report_place(const PackOptions& options, const NamedFile& file) {
  if (!file.replaces()) return {};
  const auto refuse = [&](const char* what) {
    return invalid_argument(str_cat("--report: ", what))
        .at_path(options.report)
        .with_hint("choose another place for the report");
  };
  const std::string folder = file.folder().path();
  struct stat there = {};
  const bool exists = stat(file.folder().path_of(file.name()).c_str(), &there) == 0;
  const auto same = [](const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  };
  // A list names pictures that may be anywhere.
  if (exists && is_picture_name(file.name())) {
    return refuse("this is a picture, which the report would replace");
  }
  std::vector<std::string> sources = options.more_sources;
  sources.push_back(options.source);
  if (!options.join.empty()) sources.push_back(options.join);
  for (const std::string& source : sources) {
    struct stat info = {};
    if (stat(source.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      if (is_or_lies_in(folder, info)) {
        return refuse("this lies inside SRC, which is never written into");
      }
      continue;
    }
    // What is wrong with a source is for opening it to tell.
    const Result<SourceLook> look = look_at_source(source);
    for (size_t i = 0; exists && look.ok() && i < look->files.size(); ++i) {
      if (stat(look->files[i].c_str(), &info) == 0 && same(info, there)) {
        return refuse("this is a file of the source, which is never changed");
      }
    }
  }
  SPK_ASSIGN(const OutputPlace place, split_output(options.output));
  struct stat parent = {}, here = {};
  const bool beside = stat(place.parent.c_str(), &parent) == 0 &&
                      stat(folder.c_str(), &here) == 0 && same(parent, here);
  for (const std::string& name : {place.name, place.partial_name()}) {
    struct stat made = {};
    const std::string path = str_cat(place.parent, "/", name);
    const bool inside =
        stat(path.c_str(), &made) == 0 && S_ISDIR(made.st_mode) && is_or_lies_in(folder, made);
    if (inside || (beside && file.name() == name)) {
      return refuse("this is OUT or OUT.partial, or inside, where only the pack goes");
    }
  }
  return {};
}

std::string report_text(const PackOptions& options, const PackOutcome& outcome) {
  JsonWriter json(2);
  json.begin_object();
  json.member("type", "pack").member("v", 1);
  write_outcome(json, options, outcome);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace spk
