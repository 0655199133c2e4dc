// tar archives, alone or as the shards of a WebDataset; plain, or packed with gzip or zstd.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "sources/archive_groups.h"
#include "sources/container_set.h"
#include "sources/source_kind.h"
#include "sources/tar_reader.h"

namespace spk {

namespace {

constexpr size_t kMostLinks = size_t{1} << 20;  // hard links are held while an archive is listed
constexpr int kLongestChain = 8;

class TarSource : public Source {
 public:
  TarSource(std::unique_ptr<ContainerSet> files, uint64_t others, bool is_folder, ArchiveForm form,
            const char* kind)
      : files_(std::move(files)),
        others_(others),
        is_folder_(is_folder),
        form_(form),
        kind_(kind) {}

  bool lists_in_order() const override { return true; }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override {
    return files_->open_sample(entry);
  }

 private:
  struct Pending {
    ArchiveMember member;
    std::optional<std::string> link;  // a hard link, and to what
  };
  // Where a name's bytes are: in a file; or where the name that it is a link to has them.
  struct Target {
    Piece piece;
    std::optional<std::string> link;
  };
  using Targets = std::unordered_map<std::string, Target>;

  // An archive, or one within it.
  struct Level {
    ForwardReader* reader;
    uint64_t start = 0;  // in the file
    std::string folder;  // of its members' names, with a slash; empty: not within another
    bool is_inner() const { return !folder.empty(); }
  };
  Status list_archive(uint32_t file, bool salvage, ArchiveGroups* groups) const;
  Status list_level(uint32_t file, const Level& level, bool salvage, std::vector<Pending>* links,
                    ArchiveGroups* groups) const;
  Result<bool> is_archive(const TarMember& found, const Level& level) const;
  Status list_inner(uint32_t file, const TarMember& found, const Level& outer, bool salvage,
                    ArchiveGroups* groups) const;
  Result<Pending> look_at(uint32_t file, const TarMember& found, const Level& level,
                          ArchiveGroups* groups) const;
  Status resolve_links(uint32_t file, std::vector<Pending> links, ArchiveGroups* groups) const;
  Status find_targets(uint32_t file, Targets* targets) const;
  Result<std::string> read_content(uint32_t file, const Piece& piece) const;

  std::unique_ptr<ContainerSet> files_;
  uint64_t others_;
  bool is_folder_;
  ArchiveForm form_;
  const char* kind_;
};

constexpr std::string_view kTarSuffix = ".tar";

// A member of an archive as a file of its own. OUTER outlives it; nobody else reads it meanwhile.
class MemberReader : public ForwardReader {
 public:
  MemberReader(ForwardReader& outer, const TarMember& member)
      : ForwardReader(str_cat(outer.path(), ", member ", member.name), kHeaderWindowBytes),
        outer_(outer),
        start_(member.offset),
        bytes_(member.bytes) {}
  Result<uint64_t> end() const override {
    if (!outer_ended_) return bytes_;
    SPK_ASSIGN(const uint64_t end, outer_.end());
    return end - std::min(end, start_);
  }

 protected:
  Result<uint64_t> fetch(uint64_t offset, MutableByteSpan into) override {
    const uint64_t wanted = std::min<uint64_t>(into.size(), bytes_ - std::min(bytes_, offset));
    if (wanted == 0) return uint64_t{0};
    SPK_ASSIGN(const ByteSpan got, outer_.at(start_ + offset, wanted));
    outer_ended_ = outer_ended_ || got.size() < wanted;
    std::copy(got.begin(), got.end(), into.begin());
    return uint64_t{got.size()};
  }

 private:
  ForwardReader& outer_;
  const uint64_t start_;
  const uint64_t bytes_;
  bool outer_ended_ = false;
};

std::string_view plain_name(std::string_view name) {
  return name.starts_with("./") ? name.substr(2) : name;
}

Result<TarSource::Pending> TarSource::look_at(uint32_t file, const TarMember& found,
                                              const Level& level, ArchiveGroups* groups) const {
  Pending pending;
  ArchiveMember& member = pending.member;
  member.name = level.folder + std::string(level.is_inner() ? plain_name(found.name) : found.name);
  member.archive = file;
  member.mtime_ns = files_->entry_mtime_ns(file);
  member.piece = Piece::of_file(file, level.start + found.offset, found.bytes);
  using Kind = TarMember::Kind;
  switch (found.kind) {
    case Kind::kFile: {
      if (found.bytes == 0 || found.bytes > groups->wanted_bytes(found.name)) break;
      SPK_ASSIGN(const ByteSpan content, level.reader->at(found.offset, found.bytes));
      member.content = as_text(content);
      break;
    }
    case Kind::kFolder: member.is_folder = true; break;
    case Kind::kHardLink:
      if (level.is_inner()) {
        member.reject = "a hard link in an archive that lies in another";
        break;
      }
      pending.link = plain_name(found.link);
      member.place = groups->take_place();
      break;
    case Kind::kSymlink: member.reject = "a symbolic link"; break;
    case Kind::kOther: member.reject = "not a regular file"; break;
  }
  return pending;
}

// One archive a class, all in one: so ILSVRC2012_img_train.tar comes.
Result<bool> TarSource::is_archive(const TarMember& found, const Level& level) const {
  if (level.is_inner() || form_ == ArchiveForm::kWebDataset ||
      found.kind != TarMember::Kind::kFile || !found.name.ends_with(kTarSuffix)) {
    return false;
  }
  SPK_ASSIGN(const ByteSpan head, level.reader->at(found.offset, 2 * TarReader::kBlockBytes));
  return TarReader::is_tar(head);
}

// Its members as though they lay in a folder of its name.
Status TarSource::list_inner(uint32_t file, const TarMember& found, const Level& outer,
                             bool salvage, ArchiveGroups* groups) const {
  std::string_view name = plain_name(found.name);
  name.remove_suffix(kTarSuffix.size());
  MemberReader reader(*outer.reader, found);
  const Level level{&reader, outer.start + found.offset, std::string(name) + "/"};
  ArchiveMember folder;
  folder.name = level.folder;
  folder.is_folder = true;
  folder.archive = file;
  SPK_TRY(groups->add(std::move(folder)));
  return list_level(file, level, salvage, nullptr, groups);
}

Status TarSource::list_level(uint32_t file, const Level& level, bool salvage,
                             std::vector<Pending>* links, ArchiveGroups* groups) const {
  TarReader tar(level.reader);
  std::optional<Pending> pending;  // only the next header tells whether a member is whole
  const auto flush = [&]() -> Status {
    if (!pending) return {};
    Pending one = std::move(*pending);
    pending.reset();
    if (!one.link) return groups->add(std::move(one.member));
    if (links->size() == kMostLinks) {
      return unsupported(str_cat("more than ", format_count(kMostLinks), " hard links"))
          .at_path(escape_bytes(files_->path(file)))
          .with_hint("make the archive with --hard-dereference");
    }
    links->push_back(std::move(one));
    return {};
  };
  for (;;) {
    TarMember found;
    const Result<bool> more = tar.next(&found);
    if (!more.ok()) {
      const Code code = more.status().code();
      if (!salvage || (code != Code::kDamaged && code != Code::kUnsupported)) return more.status();
      groups->warnings().add("an archive is not whole; what is, was taken",
                             more.status().to_string());
      if (tar.last_is_cut()) pending.reset();
      break;
    }
    SPK_TRY(flush());
    if (!*more) break;
    SPK_ASSIGN(const bool is_inner, is_archive(found, level));
    if (is_inner) {
      SPK_TRY(list_inner(file, found, level, salvage, groups));
    } else {
      SPK_ASSIGN(pending, look_at(file, found, level, groups));
    }
  }
  return flush();
}

Status TarSource::list_archive(uint32_t file, bool salvage, ArchiveGroups* groups) const {
  SPK_ASSIGN(const auto reader, files_->read(file, kHeaderWindowBytes, salvage));
  std::vector<Pending> links;
  SPK_TRY(list_level(file, {reader.get(), 0, ""}, salvage, &links, groups));
  SPK_TRY(reader->finish());
  return links.empty() ? Status() : resolve_links(file, std::move(links), groups);
}

// A hard link leads to a name that comes before it, whose place nobody kept: the headers are read
// once more.
Status TarSource::find_targets(uint32_t file, Targets* targets) const {
  SPK_ASSIGN(const auto reader, files_->read(file, kHeaderWindowBytes, true));
  TarReader tar(reader.get());
  for (;;) {
    TarMember found;
    const Result<bool> more = tar.next(&found);
    if (!more.ok() || !*more) break;  // told by the first reading
    const auto target = targets->find(std::string(plain_name(found.name)));
    if (target == targets->end()) continue;
    if (found.kind == TarMember::Kind::kHardLink) {
      target->second.link = plain_name(found.link);
    } else if (found.kind == TarMember::Kind::kFile) {
      target->second = {Piece::of_file(file, found.offset, found.bytes), std::nullopt};
    }
  }
  return reader->finish();
}

Status TarSource::resolve_links(uint32_t file, std::vector<Pending> links,
                                ArchiveGroups* groups) const {
  Targets targets;
  for (const Pending& link : links) {
    targets[std::string(plain_name(link.member.name))].link = *link.link;
    targets[*link.link];
  }
  SPK_TRY(find_targets(file, &targets));
  for (Pending& link : links) {
    const Target* target = &targets[*link.link];
    for (int hop = 0; hop < kLongestChain && target->link; ++hop) {
      const auto next = targets.find(*target->link);
      if (next == targets.end()) break;
      target = &next->second;
    }
    if (target->link || target->piece.offset == 0) {
      link.member.reject =
          str_cat("a hard link to '", escape_bytes(*link.link), "', which the archive has not");
    } else {
      link.member.piece = target->piece;
      if (target->piece.bytes <= groups->wanted_bytes(link.member.name)) {
        SPK_ASSIGN(link.member.content, read_content(file, target->piece));
      }
    }
    SPK_TRY(groups->add(std::move(link.member)));
  }
  return {};
}

Result<std::string> TarSource::read_content(uint32_t file, const Piece& piece) const {
  SPK_ASSIGN(const auto reader, files_->read(file, kHeaderWindowBytes, true));
  SPK_ASSIGN(const ByteSpan content, reader->at(piece.offset, piece.bytes));
  std::string text(as_text(content));
  SPK_TRY(reader->finish());
  return text;
}

Result<Listing> TarSource::list(const PackOptions& options, const Sink& sink) {
  std::vector<std::string> paths;
  for (uint32_t file = 0; file < files_->count(); ++file) paths.push_back(files_->path(file));
  if (is_folder_) SPK_TRY(check_no_shard_is_missing(paths));
  ShardSplits splits = splits_of_files(paths, options.splits);
  SPK_ASSIGN(const std::string spill, files_->sorting_place());
  SPK_ASSIGN(const auto groups, ArchiveGroups::create(options, kind_, form_, std::move(paths),
                                                      std::move(splits), spill));
  for (uint32_t file = 0; file < files_->count(); ++file) {
    SPK_TRY(list_archive(file, options.salvage, groups.get()));
  }
  if (others_ != 0) groups->ignore("not a tar archive", others_);
  return groups->finish(sink);
}

Result<bool> recognises_tar(const SourceLook& look) {
  return holds_container(look, false, TarReader::is_tar);
}

Result<std::unique_ptr<Source>> open_tar(const SourceLook& look, std::shared_ptr<Spool> spool,
                                         ArchiveForm form, const char* kind) {
  SPK_ASSIGN(FoundContainers found, find_containers(look.files, look.is_folder, false, false,
                                                    TarReader::is_tar, "a tar archive"));
  if (found.paths.empty()) {
    return Status(Code::kNotThisFormat, "a folder without tar archives")
        .at_path(escape_bytes(look.path));
  }
  SPK_ASSIGN(auto files, ContainerSet::open(std::move(found.paths), std::move(spool), false,
                                            TarReader::is_tar));
  return std::unique_ptr<Source>(
      std::make_unique<TarSource>(std::move(files), found.others, look.is_folder, form, kind));
}

}  // namespace

SourceKind tar_kind() {
  const auto open = [](const PackOptions&, const SourceLook& look, std::shared_ptr<Spool> spool) {
    return open_tar(look, std::move(spool), ArchiveForm::kTold, "tar");
  };
  return {"tar", "a tar archive", recognises_tar, open};
}

// The same archives, where the form is to be this one whatever the members look like.
SourceKind webdataset_kind() {
  const auto recognises = [](const SourceLook&) -> Result<bool> { return false; };
  const auto open = [](const PackOptions&, const SourceLook& look, std::shared_ptr<Spool> spool) {
    return open_tar(look, std::move(spool), ArchiveForm::kWebDataset, "webdataset");
  };
  return {"webdataset", "a WebDataset", recognises, open};
}

}  // namespace spk
