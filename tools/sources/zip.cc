// zip archives, of the same two forms as tar archives. Members that are stored are read where they
// lie; deflated ones are unpacked into the spool.
#include <utility>

#include "base/text.h"
#include "io/file.h"
#include "sources/archive_groups.h"
#include "sources/container_source.h"
#include "sources/source_kind.h"
#include "sources/zip_reader.h"

namespace spk {

namespace {

class ZipSource : public ContainerSource {
 public:
  explicit ZipSource(FoundSet found) : ContainerSource(std::move(found.files), found.others) {}
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;

 private:
  // What is unpacked of one archive.
  struct Unpacked {
    std::optional<Spool::Writer> writer;  // none: there is no spool, or it has all of it already
    uint64_t bytes = 0;
    bool any = false;
  };
  Status list_archive(uint32_t file, bool salvage, ArchiveGroups* groups) const;
  Result<bool> has_deflated(const File& file) const;
  Status take(const ZipReader& zip, const ZipMember& found, uint32_t file, bool salvage,
              Unpacked* unpacked, ArchiveGroups* groups) const;
  Status take_deflated(const ZipReader& zip, const ZipMember& found, uint64_t wanted,
                       Unpacked* unpacked, ArchiveMember* member) const;
};

Status ZipSource::take_deflated(const ZipReader& zip, const ZipMember& found, uint64_t wanted,
                                Unpacked* unpacked, ArchiveMember* member) const {
  member->piece =
      Piece::of_file(files().spooled_number(member->archive), unpacked->bytes, found.bytes);
  unpacked->bytes += found.bytes;
  const bool keep = found.bytes <= wanted;
  if (!unpacked->writer && !keep) return {};
  return zip.unpack(found, [&](ByteSpan piece) -> Status {
    if (keep) member->content += as_text(piece);
    return unpacked->writer ? unpacked->writer->append(piece) : Status();
  });
}

Status ZipSource::take(const ZipReader& zip, const ZipMember& found, uint32_t file, bool salvage,
                       Unpacked* unpacked, ArchiveGroups* groups) const {
  ArchiveMember member;
  member.name = found.name;
  member.archive = file;
  member.is_folder = found.is_folder;
  // Pieces of one sample may lie in the archive and in the spool, whose times differ.
  member.mtime_ns = unpacked->any ? kUnknownMtime : files().entry_mtime_ns(file);
  const uint64_t wanted = groups->wanted_bytes(found.name);
  const bool is_read = found.method != ZipMember::Method::kOther && !found.is_folder &&
                       !found.is_symlink && !found.is_encrypted;
  Status status;
  Result<uint64_t> offset = 0;
  if (is_read) offset = zip.data_offset(found);
  if (found.is_folder) {
    // Has no data.
  } else if (found.is_symlink) {
    member.reject = "a symbolic link";
  } else if (found.is_encrypted) {
    member.reject = "encrypted";
  } else if (!is_read) {
    member.reject = str_cat("packed by method ", found.method_number, " of zip; 0 and 8 are read");
  } else if (offset.status().code() == Code::kMismatch) {
    member.reject = offset.status().message();
  } else if (!offset.ok()) {
    status = offset.status();
  } else if (found.method == ZipMember::Method::kDeflated) {
    status = take_deflated(zip, found, wanted, unpacked, &member);
    // What was written of it is skipped by those that follow.
    if (unpacked->writer) unpacked->bytes = unpacked->writer->bytes();
  } else if (found.packed_bytes != found.bytes) {
    status = damaged("a stored member has two sizes").at_offset(found.header_offset);
  } else {
    member.piece = Piece::of_file(file, *offset, found.bytes);
    if (found.bytes <= wanted && found.bytes != 0) {
      SPK_ASSIGN(const File opened, File::open_read(files().path(file)));
      member.content.resize(found.bytes);
      SPK_TRY(opened.read_exact(
          *offset, {reinterpret_cast<uint8_t*>(member.content.data()), member.content.size()}));
    }
  }
  if (!status.ok()) {
    status = std::move(status).at_path(escape_bytes(files().path(file)));
    if (!salvage || status.code() != Code::kDamaged) {
      return std::move(status).with_hint("--salvage takes the members that are whole");
    }
    groups->warnings().add("an archive is not whole; what is, was taken", status.to_string());
    member.reject = status.message();
    member.content.clear();
  }
  return groups->add(std::move(member));
}

Result<bool> ZipSource::has_deflated(const File& file) const {
  SPK_ASSIGN(ZipReader zip, ZipReader::open(file));
  ZipMember member;
  for (;;) {
    SPK_ASSIGN(const bool more, zip.next(&member));
    if (!more) return false;
    if (member.method == ZipMember::Method::kDeflated && !member.is_encrypted) return true;
  }
}

Status ZipSource::list_archive(uint32_t file, bool salvage, ArchiveGroups* groups) const {
  SPK_ASSIGN(const File opened, File::open_read(files().path(file)));
  Unpacked unpacked;
  SPK_ASSIGN(unpacked.any, has_deflated(opened));
  if (unpacked.any && files().spool() != nullptr) {
    const std::string name = files().spooled_name(file);
    SPK_ASSIGN(const bool is_there, files().spool()->holds(name));
    // Of an archive that is not whole, the second reading has to find what the first one did.
    if (!is_there || salvage) {
      SPK_ASSIGN(Spool::Writer writer, files().spool()->create(name));
      unpacked.writer.emplace(std::move(writer));
    }
  }
  SPK_ASSIGN(ZipReader zip, ZipReader::open(opened));
  ZipMember member;
  for (;;) {
    SPK_ASSIGN(const bool more, zip.next(&member));
    if (!more) break;
    SPK_TRY(take(zip, member, file, salvage, &unpacked, groups));
  }
  return unpacked.writer ? unpacked.writer->finish() : Status();
}

Result<Listing> ZipSource::list(const PackOptions& options, const Sink& sink) {
  ShardSplits splits = splits_of_files(paths(), options.splits);
  SPK_ASSIGN(const std::string spill, files().sorting_place());
  SPK_ASSIGN(const auto groups, ArchiveGroups::create(options, "zip", ArchiveForm::kTold, paths(),
                                                      std::move(splits), spill));
  for (uint32_t file = 0; file < files().count(); ++file) {
    SPK_TRY(list_archive(file, options.salvage, groups.get()));
  }
  if (others() != 0) groups->ignore("not a zip archive", others());
  return groups->finish(sink);
}

}  // namespace

SourceKind zip_kind() {
  const auto recognises = [](const SourceLook& look) -> Result<bool> {
    return holds_container(look, false, ZipReader::is_zip);
  };
  const auto open = [](const PackOptions&, const SourceLook& look,
                       std::shared_ptr<Spool> spool) -> Result<std::unique_ptr<Source>> {
    SPK_ASSIGN(
        FoundSet found,
        open_containers(look, {ZipReader::is_zip, "a zip archive", "a folder without zip archives"},
                        std::move(spool)));
    return std::unique_ptr<Source>(std::make_unique<ZipSource>(std::move(found)));
  };
  return {"zip", "a zip archive", recognises, open};
}

}  // namespace spk
