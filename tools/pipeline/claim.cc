#include "pipeline/claim.h"

#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "base/text.h"
#include "container/pack.h"
#include "io/atomic_file.h"
#include "pipeline/plans_file.h"

namespace spk {

namespace {
constexpr std::string_view kOwnerName = "owner";
constexpr std::string_view kPartialEnding = ".partial";

std::string owner_text() {
  return str_cat("process ", getpid(), " on ", host_name(), " since ", utc_now());
}

Result<bool> is_same_directory(const Directory& parent, const std::string& name,
                               const Directory& held) {
  struct stat info = {};
  if (fstat(held.fd(), &info) != 0) return Status::from_errno(errno, "cannot stat directory");
  auto named = parent.stat(name);
  if (!named.ok() && named.status().code() == Code::kNotFound) return false;
  if (!named.ok()) return std::move(named).status();
  return named->device == info.st_dev && named->inode == info.st_ino;
}

// Temporary names are all of the form "shard-00000.spks.<attempt>.tmp", "index.spki.tmp",
// "run.json.tmp-<token>", "plan.tmp.<token>".
bool is_temporary_name(std::string_view name) {
  return name.ends_with(".tmp") || name.find(".tmp-") != std::string_view::npos ||
         name.starts_with("plan.tmp.");
}

// ".nfs": what NFS makes of a file that is removed while somebody has it open.
bool is_own_file_name(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {
      kOwnerName,  "plan.spkp", kManifestName, kIndexName, kRejectsName,
      kLayoutName, kRunName,    "SHA256SUMS",  kPlansName, kPlanFailedName};
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  return is_temporary_name(name) || name.starts_with(".nfs") ||
         (name.starts_with("shard-") && name.ends_with(".spks"));
}

// The first entry that no run of ours can have made; "" where there is none.
Result<std::string> foreign_entry(const Directory& partial) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, partial.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.type == EntryType::kRegular) {
      if (!is_own_file_name(entry.name)) return entry.name;
      continue;
    }
    if (entry.type != EntryType::kDirectory) return entry.name;
    if (is_replan_name(entry.name) || entry.name == kSpoolName) continue;
    SPK_ASSIGN(const Directory split, Directory::open_at(partial, entry.name));
    SPK_ASSIGN(const std::vector<DirectoryEntry> inner, split.list());
    for (const DirectoryEntry& file : inner) {
      if (file.type != EntryType::kRegular || !is_own_file_name(file.name)) {
        return str_cat(entry.name, "/", file.name);
      }
    }
  }
  return std::string();
}
}  // namespace

bool is_replan_name(std::string_view name) { return name.starts_with(kReplanName); }

Result<OutputPlace> split_output(const std::string& output) {
  std::string path = output;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const size_t slash = path.rfind('/');
  OutputPlace place;
  place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  place.parent = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (place.name.empty() || place.name == "." || place.name == "..") {
    return invalid_argument(str_cat("OUT '", escape_bytes(output), "' names no new directory"))
        .with_hint("write for example DIR/name.pack");
  }
  // Otherwise a pack of the name without this ending would be built in it, as in its own.
  if (place.name.ends_with(kPartialEnding)) {
    return invalid_argument(str_cat("OUT '", escape_bytes(output), "' ends in '", kPartialEnding,
                                    "', as what is unfinished does"))
        .with_hint("leave that ending off: the same command line continues what lies there");
  }
  return place;
}

Status Claim::open(bool make) {
  SPK_ASSIGN(parent_, Directory::open(place_.parent));
  if (make) {
    auto made = Directory::create_at(parent_, place_.partial_name());
    if (made.ok()) {
      partial_ = std::move(made).value();
      made_ = true;
      return {};
    }
    if (made.status().code() != Code::kExists) return std::move(made).status();
  }
  SPK_ASSIGN(partial_, Directory::open_at(parent_, place_.partial_name()));
  return {};
}

Status Claim::lock(int kind) const {
  if (flock(partial_.fd(), kind | LOCK_NB) == 0 || errno != EWOULDBLOCK) return {};
  auto owner = read_whole_file(partial_, kOwnerName, 4096);
  const std::string who = owner.ok() ? std::string(as_text(*owner)) : "another process";
  return Status(Code::kBusy, str_cat("another run is packing here: ", escape_bytes(who)))
      .at_path(partial_.path())
      .with_hint("wait for it, or stop it; then the same command line continues");
}

Status Claim::refuse_foreign() const {
  if (made_) return {};
  SPK_ASSIGN(const std::string foreign, foreign_entry(partial_));
  if (foreign.empty()) return {};
  return Status(Code::kExists, str_cat("holds '", escape_bytes(foreign),
                                       "', which no unfinished run leaves; it is left alone"))
      .at_path(partial_.path())
      .with_hint("a pack is built in OUT.partial first: choose another OUT, or move that away");
}

void Claim::set_attempt() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  attempt_ = str_cat(host_name(), "-", getpid(), "-", to_hex(static_cast<uint64_t>(now)));
}

Result<Claim> Claim::take(const OutputPlace& place) {
  Claim claim;
  claim.place_ = place;
  SPK_TRY(claim.open(true));
  SPK_TRY(claim.lock(LOCK_EX));
  // Between opening and locking, whoever held it may have published it under its final name.
  SPK_ASSIGN(const bool same, claim.is_in_place());
  if (!same) return take(place);
  SPK_TRY(claim.refuse_foreign());
  claim.held_ = true;
  claim.set_attempt();
  SPK_TRY(write_file_atomically(claim.partial_, kOwnerName, as_bytes(owner_text())));
  return claim;
}

Result<Claim> Claim::share(const OutputPlace& place, bool make) {
  Claim claim;
  claim.place_ = place;
  SPK_TRY(claim.open(make));
  SPK_TRY(claim.lock(LOCK_SH));
  SPK_ASSIGN(const bool same, claim.is_in_place());
  if (!same) return share(place, make);
  if (make) SPK_TRY(claim.refuse_foreign());
  claim.set_attempt();
  return claim;
}

Result<Claim> Claim::attach(const OutputPlace& place) {
  Claim claim;
  claim.place_ = place;
  SPK_TRY(claim.open(false));
  claim.set_attempt();
  return claim;
}

Result<bool> Claim::is_in_place() const {
  return is_same_directory(parent_, place_.partial_name(), partial_);
}

Claim::Claim(Claim&& other) noexcept
    : place_(std::move(other.place_)),
      parent_(std::move(other.parent_)),
      partial_(std::move(other.partial_)),
      attempt_(std::move(other.attempt_)),
      made_(other.made_),
      held_(std::exchange(other.held_, false)) {}

Claim::~Claim() {
  if (!held_) return;
  (void)partial_.unlink(kOwnerName);
  // Fails, as it should, where there is something to continue from.
  (void)parent_.remove_directory(place_.partial_name());
}

Status Claim::clear() const {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, partial_.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.name != kOwnerName) SPK_TRY(partial_.remove_tree(entry.name));
  }
  return {};
}

Status Claim::remove_temporaries(const Directory& dir) {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, dir.list());
  for (const DirectoryEntry& entry : entries) {
    if (is_temporary_name(entry.name)) SPK_TRY(dir.remove_tree(entry.name));
  }
  return {};
}

Status Claim::remove_replans() const {
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, partial_.list());
  for (const DirectoryEntry& entry : entries) {
    if (is_replan_name(entry.name)) SPK_TRY(partial_.remove_tree(entry.name));
  }
  return {};
}

Status Claim::publish() {
  SPK_TRY(remove_temporaries(partial_));
  SPK_TRY(remove_replans());
  for (const std::string_view name :
       {kOwnerName, std::string_view(kPlansName), std::string_view(kPlanFailedName)}) {
    SPK_TRY(partial_.remove_tree(name));
  }
  SPK_TRY(partial_.sync());
  SPK_ASSIGN(const bool same, is_in_place());
  if (!same) {
    return Status(Code::kNotFound, "is not there any more: another run published it, or removed it")
        .at_path(partial_.path());
  }
  // An empty directory of that name may have been made beforehand (to give it a layout, say).
  SPK_ASSIGN(const bool exists, parent_.exists(place_.name));
  if (exists) {
    SPK_TRY(parent_.rename(place_.partial_name(), place_.name)
                .with_hint("OUT is not empty; --force replaces a pack"));
  } else {
    SPK_TRY(parent_.rename_no_replace(place_.partial_name(), place_.name));
  }
  held_ = false;
  return parent_.sync();
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  std::string host(name);
  for (char& c : host) {
    if (c == '/' || static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  return host;
}

std::string user_name() {
  passwd entry = {};
  passwd* found = nullptr;
  char buffer[4096];
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) != 0 || found == nullptr) {
    return "unknown";
  }
  return entry.pw_name;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts));
}

}  // namespace spk
