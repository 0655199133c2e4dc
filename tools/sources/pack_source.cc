// Packs as a source: one, or several that become one. Payloads are copied as they are; each is
// compared with its checksum on the way, so that damage is never packed anew.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "commands/pack_set.h"
#include "sources/pack_select.h"
#include "sources/pieces.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr size_t kChecksumBytes = 8;
constexpr char kDamagedHint[] =
    "`stripepack verify` lists all damage; `repair` mends what can be, or leaves it out";

struct InputPack {
  std::string split;
  std::shared_ptr<Pack> pack;
  uint32_t first_file = 0;  // of its shards, in the list of all
  std::vector<int64_t> shard_mtimes_ns;
  std::vector<int64_t> new_labels;  // by label, where class lists differ; empty: as they are
};

// "image:picture,mask:any,box:float64[4]" as the plan record has it: what the fields of bytes hold.
std::map<std::string, BlobContent> contents_of(const Pack& pack) {
  std::map<std::string, BlobContent> contents;
  for (const auto& [name, value] : pack.settings()) {
    if (name != "fields") continue;
    for (size_t begin = 0; begin < value.size();) {
      const size_t end = std::min(value.find(',', begin), value.size());
      const std::string word = value.substr(begin, end - begin);
      const size_t colon = word.rfind(':');
      begin = end + 1;
      if (colon == word.npos) continue;
      const std::string what = word.substr(colon + 1);
      if (what == "picture") contents[word.substr(0, colon)] = BlobContent::kPicture;
      if (what == "pixels") contents[word.substr(0, colon)] = BlobContent::kPixels;
    }
    return contents;
  }
  contents["image"] = BlobContent::kPicture;  // the usual one
  return contents;
}

// Compares what it reads, from front to back, with the checksums of the blobs.
class CheckedHandle : public SampleHandle {
 public:
  struct Blob {
    uint64_t bytes;
    uint64_t checksum;
  };
  CheckedHandle(std::unique_ptr<SampleHandle> inner, std::vector<Blob> blobs, std::string place)
      : inner_(std::move(inner)), blobs_(std::move(blobs)), place_(std::move(place)) {}
  uint64_t size_bytes() const override { return inner_->size_bytes(); }

  Status read_at(uint64_t offset, MutableByteSpan into) override {
    SPK_TRY(inner_->read_at(offset, into));
    if (offset == 0) restart();
    if (offset != position_) return {};  // a second look at what was compared before
    ByteSpan rest = into;
    while (!rest.empty() || at_end_of_blob()) {
      if (blob_ == blobs_.size()) break;
      const ByteSpan now = rest.first(std::min<uint64_t>(rest.size(), blobs_[blob_].bytes - done_));
      hash_.update(now);
      done_ += now.size();
      position_ += now.size();
      rest = rest.subspan(now.size());
      if (at_end_of_blob()) SPK_TRY(compare());
    }
    return {};
  }

 private:
  bool at_end_of_blob() const { return blob_ < blobs_.size() && done_ == blobs_[blob_].bytes; }
  void restart() {
    position_ = done_ = 0;
    blob_ = 0;
    hash_ = Xxh3Stream();
  }
  Status compare() {
    const bool same = hash_.digest_64() == blobs_[blob_].checksum;
    ++blob_;
    done_ = 0;
    hash_ = Xxh3Stream();
    if (same) return {};
    return damaged("a payload contradicts its checksum").at_path(place_).with_hint(kDamagedHint);
  }

  std::unique_ptr<SampleHandle> inner_;
  std::vector<Blob> blobs_;
  std::string place_;
  uint64_t position_ = 0;
  size_t blob_ = 0;
  uint64_t done_ = 0;
  Xxh3Stream hash_;
};

class PackSource : public Source {
 public:
  PackSource(std::vector<InputPack> inputs, std::vector<std::string> files, PackSelect select)
      : inputs_(std::move(inputs)), files_(std::move(files)), select_(std::move(select)) {}

  bool lists_in_order() const override { return true; }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;
  // That the packs fit together; sets the listing's fields and classes.
  Status combine();

 private:
  Status combine_classes();
  Result<bool> make_entry(const InputPack& input, uint64_t sample, SampleEntry* entry) const;
  void set_labels(const InputPack& input, const StoredSample& stored, SampleEntry* entry) const;
  void set_numbers(const StoredSample& stored, SampleEntry* entry) const;

  std::vector<InputPack> inputs_;
  ContainerFiles files_;
  PackSelect select_;
  Listing listing_;
  std::vector<uint16_t> blobs_;  // fields of all packs
  std::vector<uint16_t> numbers_;
  uint16_t label_ = kNoField, height_ = kNoField, width_ = kNoField, channels_ = kNoField;
};

Status PackSource::combine() {
  const Pack& first = *inputs_.front().pack;
  const Schema& schema = first.schema();
  const auto contents = contents_of(first);
  for (const InputPack& input : inputs_) {
    if (input.pack->schema().fields == schema.fields && contents_of(*input.pack) == contents) {
      continue;
    }
    return Status(Code::kMismatch, str_cat("has other fields than ", first.path()))
        .at_path(input.pack->path())
        .with_hint("only packs with the same fields become one; `stripepack info` shows them");
  }
  listing_.source_kind = "pack";
  listing_.ordered = true;
  listing_.blobs.clear();
  label_ = schema.find("label");
  height_ = schema.find("height");
  width_ = schema.find("width");
  channels_ = schema.find("channels");
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const auto field = static_cast<uint16_t>(i);
    const Field& one = schema.fields[i];
    if (one.kind == FieldKind::kBlob) {
      const auto content = contents.find(one.name);
      listing_.blobs.push_back(
          {one.name, content == contents.end() ? BlobContent::kAny : content->second});
      blobs_.push_back(field);
    } else if (field == label_) {
      listing_.label_kind = one.kind == FieldKind::kInt64 ? LabelKind::kInt : LabelKind::kFloat;
      listing_.label_count = one.length;
    } else if (field != height_ && field != width_ && field != channels_) {
      listing_.numbers.push_back(one);
      numbers_.push_back(field);
    }
  }
  if (blobs_.empty()) return unsupported("the pack has no field of bytes").at_path(first.path());
  return combine_classes();
}

// Packs with other class lists: all names, in byte order; labels follow their names.
Status PackSource::combine_classes() {
  listing_.classes = inputs_.front().pack->schema().classes;
  bool same = true;
  bool any_without = false;
  for (const InputPack& input : inputs_) {
    same = same && input.pack->schema().classes == listing_.classes;
    any_without = any_without || input.pack->schema().classes.empty();
  }
  if (!same) {
    if (any_without) {
      return Status(Code::kMismatch, "one of the packs has class names, another has none")
          .with_hint("labels without names cannot be told from another pack's");
    }
    std::set<std::string> names;
    for (const InputPack& input : inputs_) {
      names.insert(input.pack->schema().classes.begin(), input.pack->schema().classes.end());
    }
    listing_.classes.assign(names.begin(), names.end());
    for (InputPack& input : inputs_) {
      for (const std::string& name : input.pack->schema().classes) {
        input.new_labels.push_back(
            std::lower_bound(listing_.classes.begin(), listing_.classes.end(), name) -
            listing_.classes.begin());
      }
    }
    listing_.decisions.emplace_back("classes", "merged by name");
    listing_.warnings.add("class lists differ",
                          "labels were numbered anew, by the byte order of all names");
  }
  if (listing_.classes.size() > kMostClasses) {
    return unsupported(str_cat("together the packs have more than ", kMostClasses, " classes"));
  }
  return select_.check_classes(listing_.classes);
}

void PackSource::set_labels(const InputPack& input, const StoredSample& stored,
                            SampleEntry* entry) const {
  if (label_ == kNoField) return;
  const auto values = stored.values(label_);
  if (!values) return;
  for (const uint64_t bits : *values) {
    if (listing_.label_kind == LabelKind::kFloat) {
      entry->float_labels.push_back(input.pack->schema().fields[label_].kind == FieldKind::kFloat32
                                        ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                        : std::bit_cast<double>(bits));
      continue;
    }
    const auto label = static_cast<int64_t>(bits);
    const bool renamed = label >= 0 && static_cast<uint64_t>(label) < input.new_labels.size();
    entry->int_labels.push_back(renamed ? input.new_labels[static_cast<size_t>(label)] : label);
  }
}

void PackSource::set_numbers(const StoredSample& stored, SampleEntry* entry) const {
  for (const uint16_t field : numbers_) entry->numbers.push_back(stored.values(field));
  const auto dimension = [&](uint16_t field) -> uint32_t {
    if (field == kNoField) return 0;
    const auto values = stored.values(field);
    return values && values->size() == 1 ? static_cast<uint32_t>(values->front()) : 0;
  };
  if (listing_.blobs.front().content == BlobContent::kPixels) {
    entry->pixels = {dimension(height_), dimension(width_), dimension(channels_)};
  }
}

// False where it is not wanted.
Result<bool> PackSource::make_entry(const InputPack& input, uint64_t sample,
                                    SampleEntry* entry) const {
  SPK_ASSIGN(const StoredSample stored, input.pack->sample(sample));
  entry->key = stored.key;
  set_labels(input, stored, entry);
  if (!select_.takes(input.split, entry->key, entry->int_labels, listing_.classes)) return false;
  set_numbers(stored, entry);
  std::vector<Piece> pieces;
  std::string checksums;
  entry->size_bytes = 0;
  for (const uint16_t field : blobs_) {
    SPK_ASSIGN(const SampleLocation at, input.pack->locate(sample, field));
    entry->blob_bytes.push_back(at.present ? at.bytes : kAbsentBlob);
    if (!at.present) continue;
    entry->size_bytes += at.bytes;
    pieces.push_back(Piece::of_file(input.first_file + at.shard, at.offset, at.bytes));
    entry->mtime_ns = input.shard_mtimes_ns[at.shard];
    uint8_t bytes[kChecksumBytes];
    store_le(bytes, at.checksum);
    checksums.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  // A single blob that is there is the usual sample, as of a folder.
  if (blobs_.size() == 1 && entry->blob_bytes[0] != kAbsentBlob) entry->blob_bytes.clear();
  entry->path = checksums + encode_pieces(pieces);
  return true;
}

Result<Listing> PackSource::list(const PackOptions& options, const Sink& sink) {
  Listing listing = listing_;
  uint64_t left_out = 0;
  std::map<std::string, uint64_t> next_ordinal;  // of each split: packs follow one another
  for (const InputPack& input : inputs_) {
    auto split = std::find(listing.splits.begin(), listing.splits.end(), input.split);
    if (split == listing.splits.end()) {
      listing.splits.push_back(input.split);
      split = std::prev(listing.splits.end());
    }
    const auto split_number = static_cast<uint32_t>(split - listing.splits.begin());
    const uint64_t first_ordinal = next_ordinal[input.split];
    for (uint64_t sample = 0; sample < input.pack->sample_count(); ++sample) {
      SampleEntry entry;
      SPK_ASSIGN(const bool wanted, make_entry(input, sample, &entry));
      SPK_ASSIGN(const uint64_t ordinal, input.pack->ordinal(sample));
      uint64_t& next = next_ordinal[input.split];
      next = std::max(next, first_ordinal + ordinal + 1);
      if (!wanted) {
        ++left_out;
        continue;
      }
      entry.ordinal = first_ordinal + ordinal;
      entry.split = split_number;
      if (options.labels == LabelMode::kNone) {
        entry.int_labels.clear();
        entry.float_labels.clear();
      }
      SPK_TRY(sink(std::move(entry)));
    }
  }
  if (left_out != 0) listing.ignored["not selected"] += left_out;
  return listing;
}

Result<std::unique_ptr<SampleHandle>> PackSource::open(const SampleEntry& entry) const {
  std::vector<CheckedHandle::Blob> blobs;
  for (size_t i = 0; i < blobs_.size(); ++i) {
    const uint64_t bytes = entry.bytes_of_blob(i);
    if (bytes != kAbsentBlob) blobs.push_back({bytes, 0});
  }
  if (entry.path.size() < blobs.size() * kChecksumBytes) {
    return damaged("the place of a sample in its pack is not whole");
  }
  const ByteSpan place = as_bytes(entry.path);
  for (size_t i = 0; i < blobs.size(); ++i) {
    blobs[i].checksum = load_le<uint64_t>(place.data() + i * kChecksumBytes);
  }
  SampleEntry pieces = entry;
  pieces.path.erase(0, blobs.size() * kChecksumBytes);
  SPK_ASSIGN(std::unique_ptr<SampleHandle> inner, open_pieces(files_, pieces));
  return std::unique_ptr<SampleHandle>(std::make_unique<CheckedHandle>(
      std::move(inner), std::move(blobs), str_cat("sample '", escape_bytes(entry.key), "'")));
}

Result<bool> is_pack_or_splits(const SourceLook& look) {
  if (!look.is_folder) return false;
  if (look.has_file(kManifestName) && look.has_file(kIndexName)) return true;
  SPK_ASSIGN(const Directory folder, Directory::open(look.path));
  SPK_ASSIGN(const std::vector<std::string> splits, list_splits(folder));
  return !splits.empty();
}

Result<std::unique_ptr<Source>> open_pack_source(const PackOptions& options,
                                                 const SourceLook& look) {
  SPK_ASSIGN(PackSelect select, PackSelect::parse(options.select));
  std::vector<std::string> paths = {look.path};
  paths.insert(paths.end(), options.more_sources.begin(), options.more_sources.end());
  std::vector<InputPack> inputs;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    SPK_ASSIGN(std::vector<NamedPack> packs, open_packs(path));
    for (NamedPack& named : packs) {
      InputPack input;
      input.split = options.splits == SplitMode::kNone ? "" : named.split;
      input.first_file = static_cast<uint32_t>(files.size());
      for (uint32_t shard = 0; shard < named.pack->shards().size(); ++shard) {
        const std::string name = shard_file_name(shard);
        SPK_ASSIGN(const File file, File::open_read(named.pack->directory(), name));
        SPK_ASSIGN(const EntryInfo info, file.info());
        const uint64_t wanted_bytes = named.pack->shards()[shard].file_bytes;
        if (info.size_bytes != wanted_bytes) {
          return damaged(str_cat("the shard is damaged: it has ", info.size_bytes, " bytes, ",
                                 wanted_bytes, " expected"))
              .at_path(escape_bytes(file.path()))
              .with_hint(kDamagedHint);
        }
        input.shard_mtimes_ns.push_back(info.mtime_ns);
        files.push_back(named.pack->directory().path_of(name));
      }
      input.pack = std::move(named.pack);
      inputs.push_back(std::move(input));
    }
  }
  auto source =
      std::make_unique<PackSource>(std::move(inputs), std::move(files), std::move(select));
  SPK_TRY(source->combine());
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace

SourceKind pack_kind() {
  return {"pack", "a pack, or a folder of splits", is_pack_or_splits,
          [](const PackOptions& options, const SourceLook& look, std::shared_ptr<Spool>) {
            return open_pack_source(options, look);
          }};
}

}  // namespace spk
