// Where each sample goes below the folder that a pack is extracted to.
//
// A key is its own path: "cat/1.jpg" becomes the file 1.jpg in the folder cat. Keys are any bytes,
// though, and a pack may come from somebody hostile, so there is one rule for every key that cannot
// be its own path:
//
//   It is written in the folder that its harmless first components name (often the extraction
//   folder itself), under the name %NUMBER_REST. NUMBER is the sample's number in the pack. REST is
//   the rest of the key, in which each byte but A-Z a-z 0-9 . _ - is written %hh, and of which the
//   middle is left out (~) where it is long. Should a name be taken all the same, more % go in
//   front.
//
// Keys that cannot be their own path: those with a component that is empty (as in absolute paths),
// ".", "..", longer than 255 bytes, with a NUL, or that begins with ".stripepack-"; keys of more
// than 3,000 bytes, or of more than 2,700 up to their last slash; a key that an earlier sample has
// as well; a key that is also a folder of other keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"

namespace spk {

// Names of our own while files are written; keys never become such.
inline constexpr std::string_view kTemporaryPrefix = ".stripepack-";

class FolderNames {
 public:
  // Takes 16 bytes a sample. Samples must come in rising order.
  void add(uint64_t sample, std::string_view key);
  // A path that no key gets, for it is somebody else's.
  void reserve(std::string_view path);
  // After the last add(). `key_of` gives the key of an added sample; only troubled ones are asked.
  Status finish(const std::function<Result<std::string>(uint64_t)>& key_of);

  // The path below the folder: components joined by '/', each a valid name. Thread-safe after
  // finish(). REQUIRES a sample that was added with this key.
  std::string path_of(uint64_t sample, std::string_view key) const;
  // Whether PATH is that of a sample or of a folder with samples. After finish().
  bool takes(std::string_view path) const;
  // Samples that are not written under their key, and their paths.
  const std::unordered_map<uint64_t, std::string>& renamed() const noexcept { return renamed_; }

 private:
  struct File {
    uint64_t hash;
    uint64_t sample;
    bool operator<(const File& other) const {
      return hash != other.hash ? hash < other.hash : sample < other.sample;
    }
  };
  bool taken(uint64_t hash) const;

  std::vector<File> files_;                // keys that are paths; sorted by finish()
  std::unordered_set<uint64_t> folders_;   // every folder that any path lies in
  std::unordered_set<uint64_t> assigned_;  // new names
  std::vector<uint64_t> troubled_;
  std::unordered_map<uint64_t, std::string> renamed_;
};

// How much of a key is a harmless path of folders ("a/b/" of "a/b/../c"), and whether all of it is
// a harmless path of a file (then it is the length of its folder part).
struct KeyShape {
  size_t folder_bytes = 0;
  bool is_path = false;
};
KeyShape key_shape(std::string_view key) noexcept;

}  // namespace spk
