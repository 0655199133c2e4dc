// Taking members in, and finding out what they are together.
#include "sources/archive_groups.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/varint.h"
#include "sources/archive_stored.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr uint64_t kMostLabelBytes = 4096;
constexpr uint64_t kMostJsonBytes = uint64_t{1} << 20;
constexpr uint64_t kMostNameBytes = 4096;
constexpr size_t kMostFields = 256;
constexpr size_t kMostMembers = 1024;  // of a group, that are held; more are no sample's
constexpr std::string_view kJsonPrefix = "json.";

// "dir/0001.seg.png" as key "dir/0001", field "seg.png". False where there is no field.
bool split_name(std::string_view name, std::string_view* key, std::string_view* field) {
  const size_t base = name.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = name.find('.', base);
  if (dot == name.npos || dot + 1 == name.size()) return false;
  *key = name.substr(0, dot);
  *field = name.substr(dot + 1);
  return true;
}

std::string_view without_dot_slashes(std::string_view name) {
  while (name.starts_with("./")) {
    name.remove_prefix(2);
    while (name.starts_with('/')) name.remove_prefix(1);
  }
  return name == "." ? std::string_view() : name;
}

bool is_compound(std::string_view field) { return field.find('.') != field.npos; }

}  // namespace

ArchiveGroups::ArchiveGroups(const PackOptions& options, const char* kind, ArchiveForm form,
                             std::vector<std::string> paths, ShardSplits splits,
                             const std::string& spill)
    : options_(options),
      form_(form),
      paths_(std::move(paths)),
      splits_(std::move(splits)),
      // The planner has half of the memory, of which it leaves an eighth of all to the source.
      members_(spill, options.memory_bytes / 16),
      samples_(spill, options.memory_bytes / 16),
      labels_(options.labels) {
  listing_.source_kind = kind;
  listing_.ordered = true;
}

Result<std::unique_ptr<ArchiveGroups>> ArchiveGroups::create(const PackOptions& options,
                                                             const char* kind, ArchiveForm form,
                                                             std::vector<std::string> paths,
                                                             ShardSplits splits,
                                                             const std::string& spill) {
  std::unique_ptr<ArchiveGroups> groups(
      new ArchiveGroups(options, kind, form, std::move(paths), std::move(splits), spill));
  SPK_ASSIGN(groups->features_, SourceFeatures::parse(options.features));
  const std::string_view key = groups->features_.source_of("key");
  if (!key.empty() && !key.starts_with(kJsonPrefix)) {
    return invalid_argument("--features: the key of an archive's sample is its name, or json.NAME")
        .at_path(escape_bytes(options.source));
  }
  for (const SourceFeature& one : groups->features_.all()) {
    if (!one.from.starts_with(kJsonPrefix)) continue;
    if (one.field == "image") {
      return invalid_argument("--features: a picture does not come from JSON");
    }
    groups->json_paths_.push_back(one.from.substr(kJsonPrefix.size()));
  }
  groups->json_types_.resize(groups->json_paths_.size());
  if (options.salvage) groups->listing_.decisions.emplace_back("salvage", "yes");
  if (!groups->features_.empty()) {
    groups->listing_.decisions.emplace_back("features", options.features);
    if (form == ArchiveForm::kTold) groups->form_ = ArchiveForm::kWebDataset;
  }
  return groups;
}

std::string_view ArchiveGroups::label_source() const {
  if (options_.labels == LabelMode::kNone) return {};
  const std::string_view named = features_.source_of("label");
  return named.empty() ? std::string_view("cls") : named;
}

// "05.cls" of "22.05.cls" is one, too: a key may have been meant to have a dot.
bool ArchiveGroups::is_label_field(std::string_view field) const {
  return field == "cls" || field.ends_with(".cls") || field == label_source();
}

uint64_t ArchiveGroups::wanted_bytes(std::string_view name) const {
  std::string_view key, field;
  if (!split_name(name, &key, &field)) return 0;
  const std::string lower = to_lower(field);
  if (is_label_field(lower)) return kMostLabelBytes;
  return !json_paths_.empty() && lower == "json" ? kMostJsonBytes : 0;
}

bool ArchiveGroups::is_hidden(std::string_view name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    begin = end + 1;
    if (part == "__MACOSX") {
      ignore("__MACOSX");
      return true;
    }
    if (!part.starts_with('.') || part == "." || part == "..") continue;
    ignore("hidden");
    return true;
  }
  return false;
}

void ArchiveGroups::note_folders(std::string_view name, bool is_folder, bool is_picture) {
  constexpr int kLevels = 3;  // a folder of everything, a split, a class
  while (name.starts_with('/')) name.remove_prefix(1);
  while (name.ends_with('/')) name.remove_suffix(1);
  std::string_view direct;
  size_t begin = 0;
  for (int level = 0; level < kLevels; ++level) {
    const size_t slash = name.find('/', begin);
    if (slash == name.npos && !is_folder) break;
    const std::string_view folder = name.substr(0, std::min(slash, name.size()));
    if (folder.empty()) break;
    if (!folders_.contains(folder)) {
      if (folders_.size() >= kMostClasses) {
        too_many_folders_ = true;
        return;
      }
      folders_.emplace(folder);
    }
    if (slash == name.npos) break;
    begin = slash + 1;
  }
  const size_t last = name.rfind('/');
  direct = last == name.npos ? std::string_view() : name.substr(0, last);
  const bool shallow = std::count(direct.begin(), direct.end(), '/') < kLevels;
  if (is_picture && shallow && !too_many_folders_ && !folders_with_pictures_.contains(direct)) {
    folders_with_pictures_.emplace(direct);
  }
}

// What the features want of the document; each pick as a byte that tells what it is, and its text.
std::string ArchiveGroups::json_picks(std::string_view content) const {
  std::string picks;
  const auto document = JsonValue::parse(content);
  if (!document.ok()) return "!";
  for (const std::string& path : json_paths_) {
    const std::optional<JsonPick> pick = pick_json(*document, path);
    append_string(picks, !pick ? std::string()
                               : str_cat(pick->is_text   ? 't'
                                         : pick->is_list ? 'l'
                                                         : 'n',
                                         pick->text));
  }
  return picks;
}

Status ArchiveGroups::add(ArchiveMember member) {
  const std::string_view name = without_dot_slashes(member.name);
  const auto refuse = [&](const char* why) {
    return damaged(str_cat("the member '", escape_bytes(name.substr(0, 200)), "' ", why))
        .at_path(escape_bytes(paths_[member.archive]))
        .at_offset(member.piece.offset);
  };
  if (name.empty()) return {};
  if (name.find('\0') != name.npos) return refuse("has a NUL in its name");
  if (name.size() > kMostNameBytes) {
    return refuse("has a name longer than 4096 bytes");
  }
  if (is_hidden(name)) return {};
  const bool is_picture = !member.is_folder && is_picture_name(name);
  note_folders(name, member.is_folder, is_picture);
  if (member.is_folder) return {};
  std::string_view key, field;
  if (!split_name(name, &key, &field)) {
    ignore("without a suffix");
    return {};
  }
  const std::string lower = to_lower(field);
  if (!member.reject.empty() && !is_picture && !is_label_field(lower)) {
    ignore("not a regular file");
    return {};
  }
  Stored stored;
  stored.place = member.place ? *member.place : next_place_++;
  stored.mtime_ns = member.mtime_ns;
  stored.piece = std::move(member.piece);
  stored.reject = std::move(member.reject);
  if (const uint64_t wanted = wanted_bytes(name); wanted != 0 && stored.reject.empty()) {
    if (stored.piece.bytes > wanted) {
      stored.reject = str_cat("field ", escape_bytes(lower), " has ", stored.piece.bytes,
                              " bytes; ", wanted, " are the most");
    } else {
      stored.text = is_label_field(lower) ? std::move(member.content) : json_picks(member.content);
    }
  }
  std::string sort_key, payload;
  append_be32(sort_key, member.archive);
  sort_key += key;
  sort_key += '\0';
  sort_key += field;
  stored.encode(&payload);
  return members_.add(as_bytes(sort_key), as_bytes(payload));
}

Status ArchiveGroups::decode(ByteSpan key, ByteSpan payload, Stored* member,
                             std::string* group_key) {
  const std::string_view text = as_text(key.subspan(4));
  const size_t middle = text.find('\0');
  member->field = to_lower(text.substr(middle + 1));
  member->name = str_cat(text.substr(0, middle), ".", text.substr(middle + 1));
  group_key->assign(as_text(key.first(4 + middle)));
  return member->decode(payload);
}

Status ArchiveGroups::refuse_repeat(const Stored& member) const {
  return damaged(str_cat("the member '", escape_bytes(member.name), "' is there twice"))
      .at_path(escape_bytes(paths_[member.archive]))
      .at_offset(member.piece.offset)
      .with_hint("one of them was appended later, perhaps; pack the archive anew with only one");
}

// Each group once, with its members in the order of the archive. Of groups with very many members
// the first are given, and `more` is set.
Status ArchiveGroups::for_groups(const GroupSink& use) {
  SPK_ASSIGN(const auto stream, members_.read());
  Group group;
  std::string group_key, current, last_key;
  const auto flush = [&]() -> Status {
    if (group.members.empty()) return {};
    std::sort(group.members.begin(), group.members.end(),
              [](const Stored& a, const Stored& b) { return a.place < b.place; });
    SPK_TRY(use(group));
    group = Group();
    return {};
  };
  for (;;) {
    ByteSpan key, payload;
    SPK_ASSIGN(const bool more, stream->next(&key, &payload));
    if (!more) return flush();
    Stored member;
    SPK_TRY(decode(key, payload, &member, &group_key));
    member.archive = load_be<uint32_t>(key.data());
    if (as_text(key) == last_key) return refuse_repeat(member);
    last_key.assign(as_text(key));
    const bool is_full = form_ == ArchiveForm::kFolders && group.members.size() >= kMostMembers;
    if (group_key != current || is_full) {
      SPK_TRY(flush());
      current = group_key;
      group.archive = member.archive;
      group.key = group_key.substr(4);
    }
    if (group.members.size() < kMostMembers) {
      group.members.push_back(std::move(member));
    } else {
      ++group.more;
    }
  }
}

Status ArchiveGroups::learn(Group& group) {
  size_t pictures = 0, compound = 0;
  for (const Stored& member : group.members) {
    if (is_label_field(member.field)) {
      any_label_ = true;
    } else if (is_picture_name("." + member.field)) {
      ++(is_compound(member.field) ? compound : pictures);
    }
    if (member.field == "json" && !json_paths_.empty()) {
      for (size_t i = 0; i < json_paths_.size(); ++i) {
        if (const auto pick = member.pick(i)) json_types_[i].saw(*pick);
      }
    }
  }
  if (pictures + compound != 0) {
    ++groups_;
    const bool only_pictures = pictures + compound == group.members.size();
    if (!only_pictures || (pictures != 0 && compound != 0)) ++shared_groups_;
  }
  if (options_.labels == LabelMode::kWords) SPK_TRY(learn_word(group));
  const Stored* image = nullptr;
  std::string reject;
  SPK_ASSIGN(const bool has_image, pick_image(group, &image, &reject));
  if (!has_image || !reject.empty()) return {};
  for (const Stored& member : group.members) {
    if (&member == image || is_label_field(member.field)) continue;
    if (fields_.size() >= kMostFields) {
      too_many_fields_ = true;
      break;
    }
    fields_.insert(member.field);
  }
  return {};
}

Result<Listing> ArchiveGroups::finish(const Source::Sink& sink) {
  SPK_TRY(members_.finish());
  SPK_TRY(for_groups([this](Group& group) { return learn(group); }));
  if (form_ == ArchiveForm::kTold) {
    const bool most_share = shared_groups_ > groups_ / 2;
    form_ = any_label_ || most_share ? ArchiveForm::kWebDataset : ArchiveForm::kFolders;
  }
  if (form_ == ArchiveForm::kWebDataset) {
    listing_.form = "webdataset";
    listing_.splits = splits_.names;
    SPK_TRY(choose_fields());
    if (options_.labels == LabelMode::kWords) name_classes();
    SPK_TRY(for_groups([this](Group& group) { return emit_sample(group); }));
    labels_.finish(&listing_);
    if (listing_.label_kind == LabelKind::kNone && options_.labels != LabelMode::kNone) {
      listing_.warnings.add("no labels",
                            "no member is one (.cls); --features label=... names another");
    }
  } else {
    listing_.form = "folders";
    SPK_TRY(choose_classes());
    SPK_TRY(for_groups([this](Group& group) { return emit_pictures(group); }));
    warn_of_numeric_classes(&listing_);
    warn_of_empty_classes(class_counts_, &listing_);
  }
  SPK_TRY(hand_out(sink));
  return std::move(listing_);
}

Status ArchiveGroups::store(uint64_t place, const SampleEntry& entry) {
  std::string key, payload;
  append_be64(key, place);
  encode_sample(entry, &payload);
  return samples_.add(as_bytes(key), as_bytes(payload));
}

Status ArchiveGroups::hand_out(const Source::Sink& sink) {
  SPK_TRY(samples_.finish());
  SPK_ASSIGN(const auto stream, samples_.read());
  for (uint64_t ordinal = 0;; ++ordinal) {
    ByteSpan key, payload;
    SPK_ASSIGN(const bool more, stream->next(&key, &payload));
    if (!more) return {};
    SampleEntry entry;
    SPK_TRY(decode_sample(payload, &entry));
    entry.ordinal = ordinal;
    SPK_TRY(sink(std::move(entry)));
  }
}

}  // namespace spk
