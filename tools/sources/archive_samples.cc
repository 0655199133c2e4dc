// Groups of members as samples: the WebDataset form.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/varint.h"
#include "pipeline/entry_codec.h"
#include "sources/archive_groups.h"
#include "sources/archive_stored.h"
#include "sources/names.h"

namespace spk {

namespace {

constexpr std::string_view kJsonPrefix = "json.";

Status bad_record() { return damaged("a sorted member of an archive is not whole"); }

// A name is often written with a newline behind it.
std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

bool is_compound(std::string_view field) { return field.find('.') != field.npos; }

}  // namespace

void ArchiveGroups::Stored::encode(std::string* payload) const {
  append_be64(*payload, place);
  append_be64(*payload, static_cast<uint64_t>(mtime_ns));
  append_string(*payload, encode_pieces({piece}));
  append_string(*payload, reject);
  append_string(*payload, text);
}

Status ArchiveGroups::Stored::decode(ByteSpan payload) {
  if (payload.size() < 16) return bad_record();
  place = load_be<uint64_t>(payload.data());
  mtime_ns = static_cast<int64_t>(load_be<uint64_t>(payload.data() + 8));
  payload = payload.subspan(16);
  std::string_view pieces_text, reject_text, own_text;
  if (!take_string(&payload, &pieces_text) || !take_string(&payload, &reject_text) ||
      !take_string(&payload, &own_text)) {
    return bad_record();
  }
  SPK_ASSIGN(std::vector<Piece> pieces, decode_pieces(pieces_text));
  if (pieces.size() != 1) return bad_record();
  piece = std::move(pieces[0]);
  reject = reject_text;
  text = own_text;
  return {};
}

std::optional<JsonPick> ArchiveGroups::Stored::pick(size_t index) const {
  if (text.empty() || is_json_bad()) return std::nullopt;
  ByteSpan bytes = as_bytes(text);
  std::string_view found;
  for (size_t i = 0; i <= index; ++i) {
    if (!take_string(&bytes, &found)) return std::nullopt;
  }
  if (found.empty()) return std::nullopt;
  JsonPick pick;
  pick.is_text = found.front() == 't';
  pick.is_list = found.front() == 'l';
  pick.text = found.substr(1);
  return pick;
}

void encode_sample(const SampleEntry& entry, std::string* payload) {
  append_varint(*payload, entry.split);
  append_entry(*payload, entry);
}

Status decode_sample(ByteSpan payload, SampleEntry* entry) {
  uint64_t split = 0;
  if (!take_varint(&payload, &split)) return bad_record();
  entry->split = static_cast<uint32_t>(split);
  return take_entry(&payload, entry);
}

Status ArchiveGroups::learn_word(const Group& group) {
  std::string reject;
  const std::optional<std::string> text = find_label(group, &reject);
  const std::string_view word = text ? without_blanks(*text) : std::string_view();
  return word.empty() ? Status() : words_.add(word);
}

void ArchiveGroups::name_classes() {
  words_.finish();
  if (words_.sorted().empty()) return;
  listing_.label_kind = LabelKind::kInt;
  listing_.classes = words_.sorted();
  listing_.decisions.emplace_back("label_from", "words");
  warn_of_numeric_classes(&listing_);
}

Status ArchiveGroups::choose_fields() {
  const auto add_blob = [this](const std::string& field, const std::string& from) {
    blob_of_[from] = listing_.blobs.size();
    listing_.blobs.push_back({field, BlobContent::kAny});
  };
  if (features_.empty()) {
    if (too_many_fields_) {
      return unsupported("more than 256 different names of fields")
          .at_path(escape_bytes(options_.source))
          .with_hint("--features FIELD=NAME,... names those that are wanted");
    }
    for (const std::string& from : fields_) {
      if (!is_valid_utf8(from)) {
        return unsupported(str_cat("the name of the field '", escape_bytes(from), "' is not UTF-8"))
            .at_path(escape_bytes(options_.source))
            .with_hint("--features FIELD=NAME,... gives it another");
      }
      add_blob(is_reserved_field(from) ? from + "_" : from, from);
    }
    return {};
  }
  for (const SourceFeature& one : features_.others()) {
    if (!one.from.starts_with(kJsonPrefix)) {
      add_blob(one.field, one.from);
      continue;
    }
    const std::string path = one.from.substr(kJsonPrefix.size());
    const auto at = std::find(json_paths_.begin(), json_paths_.end(), path);
    const JsonPickType& type = json_types_[static_cast<size_t>(at - json_paths_.begin())];
    if (!type.seen()) {
      return invalid_argument(
                 str_cat("--features: no sample's json has '", escape_bytes(path), "'"))
          .at_path(escape_bytes(options_.source));
    }
    if (type.is_text()) {
      add_blob(one.field, one.from);
    } else {
      listing_.numbers.push_back(type.field(one.field));
    }
  }
  return {};
}

// The one picture that stands for the sample: named by --features; else the one whose field is a
// picture's suffix alone; else the one whose field ends in such.
Result<bool> ArchiveGroups::pick_image(const Group& group, const Stored** image,
                                       std::string* reject) const {
  *image = nullptr;
  const std::string_view named = features_.source_of("image");
  size_t found = 0, compound = 0;
  const Stored* other = nullptr;
  for (const Stored& member : group.members) {
    const bool is_it = named.empty()
                           ? is_picture_name("." + member.field) && !is_compound(member.field)
                           : member.field == named;
    if (is_it) {
      if (found++ == 0) *image = &member;
    } else if (named.empty() && is_picture_name("." + member.field)) {
      if (compound++ == 0) other = &member;
    }
  }
  if (found == 0) {
    *image = other;
    found = compound;
  }
  if (found > 1) *reject = "two pictures under one key; --features image=FIELD tells which it is";
  return found != 0;
}

std::optional<std::string> ArchiveGroups::find_label(const Group& group,
                                                     std::string* reject) const {
  const std::string_view from = label_source();
  const auto none = [reject](std::string why) {
    *reject = std::move(why);
    return std::nullopt;
  };
  if (from.empty()) return std::nullopt;
  if (from.starts_with(kJsonPrefix)) {
    const std::string_view path = from.substr(kJsonPrefix.size());
    const auto at = std::find(json_paths_.begin(), json_paths_.end(), path);
    const auto index = static_cast<size_t>(at - json_paths_.begin());
    for (const Stored& member : group.members) {
      if (member.field != "json") continue;
      if (!member.reject.empty()) return none(member.reject);
      auto pick = member.pick(index);
      if (!pick) return none(str_cat("no label: json has no '", escape_bytes(path), "'"));
      return std::move(pick->text);
    }
    return none("no label: there is no json");
  }
  const Stored* label = nullptr;
  for (const Stored& member : group.members) {
    const bool exact = member.field == from;
    const bool close = from == "cls" && member.field.ends_with(".cls");
    if (!exact && !close) continue;
    if (label != nullptr) return none("two labels under one key");
    label = &member;
  }
  if (label == nullptr) return none(any_label_ ? "no label" : "");
  if (!label->reject.empty()) return none(label->reject);
  return label->text;
}

std::string ArchiveGroups::set_label(const Group& group, SampleEntry* entry) {
  std::string reject;
  const std::optional<std::string> text = find_label(group, &reject);
  if (!text) return reject;
  if (options_.labels != LabelMode::kWords) {
    reject = labels_.set_text(*text, entry);
    if (reject.ends_with("is no number")) reject += "; --labels words takes names";
    return reject;
  }
  const int64_t label = words_.index(without_blanks(*text));
  if (label < 0) return "the label is empty";
  entry->int_labels = {label};
  return {};
}

// Where --features names a text of the json that samples have; those without keep their names.
void ArchiveGroups::set_key(const Group& group, SampleEntry* entry) const {
  const std::string_view from = features_.source_of("key");
  if (from.empty()) return;
  const std::string_view path = from.substr(kJsonPrefix.size());
  const auto at = std::find(json_paths_.begin(), json_paths_.end(), path);
  for (const Stored& member : group.members) {
    if (member.field != "json") continue;
    const auto pick = member.pick(static_cast<size_t>(at - json_paths_.begin()));
    if (pick && pick->is_text && !pick->text.empty()) entry->key = pick->text;
  }
}

void ArchiveGroups::set_fields(const Group& group, const Stored* image, SampleEntry* entry) const {
  std::vector<std::optional<Piece>> pieces(listing_.blobs.size());
  pieces[0] = image->piece;
  entry->numbers.resize(listing_.numbers.size());
  entry->mtime_ns = image->mtime_ns;
  for (const Stored& member : group.members) {
    if (const auto blob = blob_of_.find(member.field);
        blob != blob_of_.end() && &member != image && !pieces[blob->second]) {
      pieces[blob->second] = member.piece;
    }
    if (member.field != "json") continue;
    for (size_t i = 0; i < json_paths_.size(); ++i) {
      const std::optional<JsonPick> pick = member.pick(i);
      if (!pick) continue;
      if (const auto blob = blob_of_.find(str_cat(kJsonPrefix, json_paths_[i]));
          blob != blob_of_.end()) {
        pieces[blob->second] = Piece::of_bytes(pick->text);
        continue;
      }
      size_t number = 0;
      for (const SourceFeature& one : features_.others()) {
        if (number == listing_.numbers.size()) break;
        if (listing_.numbers[number].name != one.field) continue;
        if (one.from.substr(kJsonPrefix.size()) == json_paths_[i]) {
          entry->numbers[number] = json_types_[i].values(*pick);
        }
        ++number;
      }
    }
  }
  std::vector<Piece> present;
  entry->size_bytes = 0;
  for (const std::optional<Piece>& piece : pieces) {
    if (listing_.blobs.size() > 1) entry->blob_bytes.push_back(piece ? piece->bytes : kAbsentBlob);
    if (!piece) continue;
    entry->size_bytes += piece->bytes;
    present.push_back(*piece);
  }
  if (listing_.numbers.empty()) entry->numbers.clear();
  entry->path = encode_pieces(present);
}

Status ArchiveGroups::emit_sample(Group& group) {
  SampleEntry entry;
  entry.key = group.key;
  entry.split = splits_.of_file[group.archive];
  const uint64_t first = group.members.front().place;
  const uint64_t span = group.members.back().place - first + 1;
  if (group.more != 0) {
    return unsupported(str_cat("the key '", escape_bytes(group.key), "' has more than ",
                               group.members.size(), " members"))
        .at_path(escape_bytes(paths_[group.archive]))
        .with_hint("is it a WebDataset? a sample's name ends at the first dot");
  }
  const bool has_label =
      std::any_of(group.members.begin(), group.members.end(),
                  [this](const Stored& one) { return is_label_field(one.field); });
  const Stored* image = nullptr;
  SPK_ASSIGN(const bool has_image, pick_image(group, &image, &entry.reject));
  if (!has_image) {
    if (group.members.size() == 1 && !has_label) {
      ignore("not a picture name");
      return {};
    }
    entry.reject = "no picture";
  } else if (entry.reject.empty()) {
    entry.reject = image->reject;
  }
  if (span != group.members.size()) {
    listing_.warnings.add("members of a sample are not adjacent", escape_bytes(group.key));
  }
  if (entry.reject.empty()) entry.reject = set_label(group, &entry);
  if (entry.reject.empty()) set_fields(group, image, &entry);
  if (entry.reject.empty()) set_key(group, &entry);
  return store(first, entry);
}

}  // namespace spk
