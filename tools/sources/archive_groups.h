// Members of archives (tar, zip) as samples. Two forms, told by what all members are together:
//
// WebDataset: a key is the path up to the first '.' of its last component; what follows is the name
// of a field. Fields of a key need not be adjacent, and never come from two archives.
// Class folders: each picture is a sample, its class the first folder, as in a folder source.
//
// Memory is bounded: members are sorted on disk where there are many.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/external_sort.h"
#include "sources/json_pick.h"
#include "sources/label_values.h"
#include "sources/list_labels.h"
#include "sources/pieces.h"
#include "sources/shard_names.h"
#include "sources/source.h"
#include "sources/source_features.h"

namespace spk {

struct ArchiveMember {
  std::string name;  // as stored
  bool is_folder = false;
  uint32_t archive = 0;           // its number
  std::optional<uint64_t> place;  // where it was taken before; otherwise it is the next
  int64_t mtime_ns = kUnknownMtime;
  Piece piece;
  std::string reject;   // not empty: why its bytes cannot be had
  std::string content;  // where wanted_bytes() asked for it
};

enum class ArchiveForm { kTold, kWebDataset, kFolders };

class ArchiveGroups {
 public:
  // KIND as in Listing::source_kind. PATHS of the archives, for messages; SPLITS of them. SPILL:
  // where to sort what does not fit into memory; empty: nowhere.
  static Result<std::unique_ptr<ArchiveGroups>> create(const PackOptions& options, const char* kind,
                                                       ArchiveForm form,
                                                       std::vector<std::string> paths,
                                                       ShardSplits splits,
                                                       const std::string& spill);

  // So many bytes of a member's contents decide something and are to be given with it; members that
  // have more are given without.
  uint64_t wanted_bytes(std::string_view name) const;
  // In the order of the archives.
  Status add(ArchiveMember member);
  // For a member that is added later than it is met.
  uint64_t take_place() { return next_place_++; }
  void ignore(const char* why, uint64_t count = 1) { listing_.ignored[why] += count; }
  Warnings& warnings() { return listing_.warnings; }

  // Decides the form and hands out the samples in the order of their first members.
  Result<Listing> finish(const Source::Sink& sink);

 private:
  struct Group;
  struct Stored;
  struct Folders;
  using GroupSink = std::function<Status(Group&)>;

  ArchiveGroups(const PackOptions& options, const char* kind, ArchiveForm form,
                std::vector<std::string> paths, ShardSplits splits, const std::string& spill);
  bool is_hidden(std::string_view name);
  void note_folders(std::string_view name, bool is_folder, bool is_picture);
  std::string json_picks(std::string_view content) const;
  std::string_view label_source() const;
  bool is_label_field(std::string_view field) const;
  static Status decode(ByteSpan key, ByteSpan payload, Stored* member, std::string* group_key);
  Status refuse_repeat(const Stored& member) const;
  Status for_groups(const GroupSink& use);

  Status learn(Group& group);
  Status learn_word(const Group& group);
  void name_classes();
  Status choose_fields();
  Result<bool> pick_image(const Group& group, const Stored** image, std::string* reject) const;
  Status emit_sample(Group& group);
  void set_fields(const Group& group, const Stored* image, SampleEntry* entry) const;
  // The text of the sample's label; where there is none but should be, *reject says so.
  std::optional<std::string> find_label(const Group& group, std::string* reject) const;
  std::string set_label(const Group& group, SampleEntry* entry);
  void set_key(const Group& group, SampleEntry* entry) const;

  Status choose_classes();
  Status emit_pictures(Group& group);
  Status store(uint64_t place, const SampleEntry& entry);
  Status hand_out(const Source::Sink& sink);

  const PackOptions& options_;
  ArchiveForm form_;
  std::vector<std::string> paths_;
  ShardSplits splits_;
  SourceFeatures features_;
  std::vector<std::string> json_paths_;  // of the features that come from json
  ExternalSorter members_;               // by archive, key, field
  ExternalSorter samples_;               // by place of the first member
  uint64_t next_place_ = 0;

  // Learned of all groups.
  bool any_label_ = false;
  uint64_t groups_ = 0;           // with a picture
  uint64_t shared_groups_ = 0;    // with something else beside it
  std::set<std::string> fields_;  // beside the picture and the label
  bool too_many_fields_ = false;
  std::vector<JsonPickType> json_types_;

  // Folders, the first levels of them: all, and those with pictures directly in them.
  std::set<std::string, std::less<>> folders_;
  std::set<std::string, std::less<>> folders_with_pictures_;
  bool too_many_folders_ = false;
  std::string top_;  // the folder that holds everything, with a slash; or empty
  bool folder_splits_ = false;
  std::vector<std::vector<uint64_t>> class_counts_;

  std::map<std::string, size_t, std::less<>> blob_of_;  // field -> index in listing_.blobs
  LabelValues labels_;
  NameTable words_;  // --labels words
  Listing listing_;
};

}  // namespace spk
