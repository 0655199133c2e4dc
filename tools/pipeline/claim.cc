#include "pipeline/claim.h"

#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/text.h"
#include "io/atomic_file.h"

namespace spk {

namespace {
constexpr std::string_view kOwnerName = "owner";

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
}  // namespace

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
  return place;
}

Result<Claim> Claim::take(const OutputPlace& place) {
  Claim claim;
  claim.place_ = place;
  auto parent = Directory::open(place.parent);
  if (!parent.ok()) {
    return std::move(parent).status().with_hint("make the folder that OUT shall stand in first");
  }
  claim.parent_ = std::move(parent).value();
  auto made = Directory::create_at(claim.parent_, place.partial_name());
  if (made.ok()) {
    claim.partial_ = std::move(made).value();
    claim.made_ = true;
  } else if (made.status().code() == Code::kExists) {
    SPK_ASSIGN(claim.partial_, Directory::open_at(claim.parent_, place.partial_name()));
  } else {
    return std::move(made).status();
  }
  if (flock(claim.partial_.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    claim.made_ = false;  // whoever holds it, it is not ours to remove
    auto owner = read_whole_file(claim.partial_, kOwnerName, 4096);
    const std::string who = owner.ok() ? std::string(as_text(*owner)) : "another process";
    return Status(Code::kBusy, str_cat("another run is packing here: ", escape_bytes(who)))
        .at_path(claim.partial_.path())
        .with_hint("wait for it, or stop it; then the same command line continues");
  }
  // Between opening and locking, whoever held it may have published it under its final name.
  SPK_ASSIGN(const bool same, is_same_directory(claim.parent_, place.partial_name(), claim.partial_));
  if (!same) return take(place);
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  claim.attempt_ = str_cat(host_name(), "-", getpid(), "-", to_hex(static_cast<uint64_t>(now)));
  SPK_TRY(write_file_atomically(claim.partial_, kOwnerName, as_bytes(owner_text())));
  return claim;
}

Claim::~Claim() {
  if (!partial_.is_open() || published_) return;
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

Status Claim::publish() {
  SPK_TRY(partial_.unlink(kOwnerName));
  SPK_TRY(partial_.sync());
  // An empty directory of that name may have been made beforehand (to give it a layout, say).
  SPK_ASSIGN(const bool exists, parent_.exists(place_.name));
  if (exists) {
    SPK_TRY(parent_.rename(place_.partial_name(), place_.name)
                .with_hint("OUT is not empty; --force replaces a pack"));
  } else {
    SPK_TRY(parent_.rename_no_replace(place_.partial_name(), place_.name));
  }
  published_ = true;
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
