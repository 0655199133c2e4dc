// A small file besides packs and samples that the user asks for by name: a report, a list.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "io/directory.h"

namespace spk {

// Where a named file goes. It is looked at before the work, so that a name that cannot be written
// shows at once, and written after it.
class NamedFile {
 public:
  // PATH as typed for OPTION. Wrong names are kInvalidArgument: folders, and files inside a pack,
  // which has only its own. The folder must be there.
  static Result<NamedFile> find(const std::string& path, const std::string& option);

  // A file appears whole or not at all; where PATH is a symbolic link, so does the file that it
  // leads to, and the link stays. What is no file (/dev/stdout, /dev/null, a fifo) is written to.
  Status write(ByteSpan bytes) const;

  // False for what is no file: there is nothing then that writing could replace.
  bool replaces() const noexcept { return !in_place_; }
  // Where it stands, links followed. REQUIRES replaces().
  const Directory& folder() const noexcept { return folder_; }
  const std::string& name() const noexcept { return name_; }
  // Its path below ROOT, or "" where it is not there. REQUIRES replaces().
  std::string path_below(const Directory& root) const;

 private:
  NamedFile() = default;
  Status write_in_place(ByteSpan bytes) const;

  std::string path_;
  bool standard_output_ = false;
  bool in_place_ = false;
  Directory folder_;  // of the file, where it is not written in place
  std::string name_;
};

}  // namespace spk
