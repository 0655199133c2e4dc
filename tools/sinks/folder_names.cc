#include "sinks/folder_names.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr size_t kMostNameBytes = 255;
constexpr size_t kMostKeyBytes = 3000;
constexpr size_t kMostFolderBytes = 2700;  // leaves room for a new name
constexpr size_t kRestHeadBytes = 120;
constexpr size_t kRestTailBytes = 60;

bool is_harmless(std::string_view name) noexcept {
  return !name.empty() && name != "." && name != ".." && name.size() <= kMostNameBytes &&
         name.find('\0') == std::string_view::npos && !name.starts_with(kTemporaryPrefix);
}

bool is_plain(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::string percent_text(std::string_view rest) {
  const bool cut = rest.size() > kRestHeadBytes + kRestTailBytes;
  std::string text;
  const auto append = [&](std::string_view part) {
    for (const char c : part) {
      if (is_plain(c)) {
        text += c;
      } else {
        text += str_cat('%', to_hex(static_cast<uint8_t>(c)).substr(14));
      }
    }
  };
  append(cut ? rest.substr(0, kRestHeadBytes) : rest);
  if (!cut && text.size() <= kRestHeadBytes + kRestTailBytes) return text;
  if (cut) append(rest.substr(rest.size() - kRestTailBytes));
  // Bytes written %hh take three: what came out is cut once more.
  return str_cat(text.substr(0, kRestHeadBytes), '~', text.substr(text.size() - kRestTailBytes));
}

uint64_t path_hash(std::string_view path) { return xxh3_64(as_bytes(path)); }

}  // namespace

KeyShape key_shape(std::string_view key) noexcept {
  KeyShape shape;
  size_t at = 0;
  for (;;) {
    const size_t slash = key.find('/', at);
    if (!is_harmless(key.substr(at, slash == key.npos ? slash : slash - at))) return shape;
    if (slash == key.npos) {
      shape.is_path = key.size() <= kMostKeyBytes;
      return shape;
    }
    if (slash + 1 > kMostFolderBytes) return shape;
    at = slash + 1;
    shape.folder_bytes = at;
  }
}

void FolderNames::add(uint64_t sample, std::string_view key) {
  const KeyShape shape = key_shape(key);
  for (size_t slash = key.find('/'); slash < shape.folder_bytes; slash = key.find('/', slash + 1)) {
    folders_.insert(path_hash(key.substr(0, slash)));
  }
  if (shape.is_path) {
    files_.push_back({path_hash(key), sample});
  } else {
    troubled_.push_back(sample);
  }
}

void FolderNames::reserve(std::string_view path) { folders_.insert(path_hash(path)); }

bool FolderNames::takes(std::string_view path) const { return taken(path_hash(path)); }

bool FolderNames::taken(uint64_t hash) const {
  if (folders_.contains(hash) || assigned_.contains(hash)) return true;
  const auto at = std::lower_bound(files_.begin(), files_.end(), File{hash, 0});
  return at != files_.end() && at->hash == hash;
}

Status FolderNames::finish(const std::function<Result<std::string>(uint64_t)>& key_of) {
  std::sort(files_.begin(), files_.end());
  for (size_t i = 0; i < files_.size(); ++i) {
    // Keys that only share a hash are renamed without need, which harms nobody.
    const bool repeats = i > 0 && files_[i].hash == files_[i - 1].hash;
    if (repeats || folders_.contains(files_[i].hash)) troubled_.push_back(files_[i].sample);
  }
  std::sort(troubled_.begin(), troubled_.end());
  for (const uint64_t sample : troubled_) {
    SPK_ASSIGN(const std::string key, key_of(sample));
    const size_t folder_bytes = key_shape(key).folder_bytes;
    const std::string folder = key.substr(0, folder_bytes);
    std::string name = str_cat('%', sample, '_', percent_text(key.substr(folder_bytes)));
    while (taken(path_hash(folder + name))) name.insert(0, 1, '%');
    assigned_.insert(path_hash(folder + name));
    renamed_.emplace(sample, folder + name);
  }
  return {};
}

std::string FolderNames::path_of(uint64_t sample, std::string_view key) const {
  const auto found = renamed_.find(sample);
  return found == renamed_.end() ? std::string(key) : found->second;
}

}  // namespace spk
