// The file of an LMDB environment (data.mdb, format 1 of 64-bit machines), read page by page with
// checks, without LMDB: no memory map that a cut file turns into SIGBUS, no lock file, nothing
// written, and every value known by its place in the file. liblmdb trusts what it maps.
//
// A snapshot: the newer of the two meta pages. Whoever writes meanwhile changes the file's mtime.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace spk {

// A database within the environment: where its tree begins.
struct LmdbDatabase {
  uint16_t flags = 0;
  uint16_t depth = 0;
  uint64_t entries = 0;
  uint64_t root = 0;  // page; kNoPage: empty
  static constexpr uint64_t kNoPage = UINT64_MAX;
  static constexpr uint16_t kDuplicates = 0x04;
};

struct LmdbEntry {
  std::string_view key;  // until the visitor returns
  uint64_t offset = 0;   // of the value in the file
  uint64_t bytes = 0;
  bool is_database = false;  // the value describes a named database: parse_named()
};

class LmdbTree {
 public:
  static constexpr size_t kMetaHeadBytes = 32;
  // Whether a file that begins so is one.
  static bool recognises(ByteSpan head) noexcept;

  // FILE outlives this. kDamaged where no meta page is whole, kUnsupported for files of 32-bit or
  // big-endian machines and later formats.
  static Result<LmdbTree> open(const File& file);

  const LmdbDatabase& main() const noexcept { return main_; }
  uint64_t file_bytes() const noexcept { return file_bytes_; }
  // Reads what a visitor was told is_database of.
  Result<LmdbDatabase> parse_named(const LmdbEntry& entry) const;

  // Every entry in the database's order. Memory: one page a level. kDamaged, with its offset, where
  // a page does not lie within the file or contradicts itself or the tree. With LOST given, such
  // pages are left out instead and counted.
  using Visit = std::function<Status(const LmdbEntry& entry)>;
  Status walk(const LmdbDatabase& database, const Visit& visit, uint64_t* lost = nullptr) const;

 private:
  struct Walk;
  struct Page;
  explicit LmdbTree(const File& file) : file_(&file) {}
  Result<Page> read_page(Walk* walk, uint64_t number) const;
  Status walk_page(Walk* walk, uint64_t number, unsigned level) const;
  Status visit_branch(Walk* walk, const Page& page, unsigned level) const;
  Status visit_leaf(Walk* walk, const Page& page) const;
  Result<uint64_t> overflow_place(Walk* walk, uint64_t page, uint64_t bytes) const;
  Status page_error(uint64_t number, std::string message) const;

  const File* file_;
  uint64_t file_bytes_ = 0;
  uint64_t page_bytes_ = 0;
  uint64_t last_page_ = 0;  // as the meta page says
  LmdbDatabase main_;
};

}  // namespace spk
