// Room on disk for what a source must unpack to read it at random: the plain bytes of a compressed
// archive. Lies in OUT.partial while a pack is built, so that a run that continues finds it again.
//
// Thread safety: different names may be written at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "io/directory.h"
#include "io/file.h"

namespace spk {

class Spool {
 public:
  // A file while it is written. Removed again if it is not finished.
  class Writer {
   public:
    Writer(Writer&&) noexcept = default;
    Writer& operator=(Writer&&) = delete;
    ~Writer();
    // kNoSpace where the disk is full.
    Status append(ByteSpan bytes);
    uint64_t bytes() const noexcept { return bytes_; }
    // Forces it to disk and gives it its name.
    Status finish();

   private:
    friend class Spool;
    Writer(Spool& spool, std::string name, std::string temporary_name, File file);
    Spool* spool_;
    std::string name_;
    std::string temporary_name_;
    File file_;
    uint64_t bytes_ = 0;
  };

  // DIRECTORY is made when the first file is.
  explicit Spool(std::string directory) : path_(std::move(directory)) {}
  // In a folder for temporary files ($TMPDIR, /tmp); removed at the end of its life.
  static std::shared_ptr<Spool> make_temporary();
  // Keeps nothing and makes nothing, but counts what would be written.
  static std::shared_ptr<Spool> make_measuring();
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Names are single path components. A good one tells of what the bytes were made (a hash of path,
  // size and mtime), so that a file that is there can be taken for what it is.
  Result<bool> holds(const std::string& name);
  Result<Writer> create(const std::string& name);
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const noexcept { return path_; }
  // Where samples may be sorted: the directory, which is made, or one for temporary files.
  Result<std::string> sorting_place();
  // Whether anything was unpacked into it, which other nodes need not see. False of a measuring
  // one.
  bool is_used() const noexcept { return is_used_; }
  // Of a measuring one: what all its files would take.
  uint64_t measured_bytes();

 private:
  Status make_directory();
  std::string path_;
  bool is_temporary_ = false;
  bool measures_ = false;
  std::atomic<bool> is_used_ = false;
  std::mutex mutex_;  // guards directory_ until it is open, and what follows it
  Directory directory_;
  std::map<std::string, uint64_t> measured_;  // by name: what is read twice is written once
};

}  // namespace spk
