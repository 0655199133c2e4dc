#include "sources/lmdb_tree.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/text.h"

namespace spk {

namespace {

constexpr uint32_t kMagic = 0xbeefc0de;
constexpr uint32_t kVersion = 1;
constexpr uint64_t kPageHeadBytes = 16;  // page number, pad, flags, lower, upper
constexpr uint64_t kNodeHeadBytes = 8;   // value size or page (3 x 16 bits), key size
constexpr uint64_t kDatabaseBytes = 48;
constexpr uint64_t kMetaBytes = 24 + 2 * kDatabaseBytes + 16;
constexpr uint64_t kLeastPageBytes = 512;
constexpr uint64_t kMostPageBytes = 65536;
constexpr unsigned kMostLevels = 32;  // liblmdb's own limit

constexpr uint16_t kPageBranch = 0x01;
constexpr uint16_t kPageLeaf = 0x02;
constexpr uint16_t kPageOverflow = 0x04;
constexpr uint16_t kPageMeta = 0x08;
constexpr uint16_t kPageLeaf2 = 0x20;
constexpr uint16_t kPageKinds = kPageBranch | kPageLeaf | kPageOverflow | kPageMeta | kPageLeaf2;
constexpr uint16_t kNodeBig = 0x01;
constexpr uint16_t kNodeDatabase = 0x02;
constexpr uint16_t kNodeDuplicates = 0x04;

constexpr char kCutHint[] =
    "the copy was cut or its disk was full: copy it anew with `mdb_copy`; --salvage takes what is "
    "whole";

struct Meta {
  uint64_t page_bytes = 0;
  uint64_t last_page = 0;
  uint64_t transaction = 0;
  LmdbDatabase main;
};

LmdbDatabase parse_database(const uint8_t* at) {
  LmdbDatabase database;
  database.flags = load_le<uint16_t>(at + 4);
  database.depth = load_le<uint16_t>(at + 6);
  database.entries = load_le<uint64_t>(at + 32);
  database.root = load_le<uint64_t>(at + 40);
  return database;
}

bool is_page_size(uint64_t bytes) {
  return bytes >= kLeastPageBytes && bytes <= kMostPageBytes && (bytes & (bytes - 1)) == 0;
}

std::optional<Meta> parse_meta(ByteSpan page) {
  if (page.size() < kPageHeadBytes + kMetaBytes) return {};
  const uint8_t* const at = page.data() + kPageHeadBytes;
  if ((load_le<uint16_t>(page.data() + 10) & kPageMeta) == 0 || load_le<uint32_t>(at) != kMagic ||
      load_le<uint32_t>(at + 4) != kVersion) {
    return {};
  }
  Meta meta;
  meta.page_bytes = load_le<uint32_t>(at + 24);  // kept in the free list's description
  meta.main = parse_database(at + 24 + kDatabaseBytes);
  meta.last_page = load_le<uint64_t>(at + 24 + 2 * kDatabaseBytes);
  meta.transaction = load_le<uint64_t>(at + 24 + 2 * kDatabaseBytes + 8);
  if (!is_page_size(meta.page_bytes)) return {};
  return meta;
}

}  // namespace

struct LmdbTree::Page {
  uint64_t number = 0;
  uint16_t flags = 0;
  uint32_t nodes = 0;
  std::vector<uint8_t> bytes;

  // Where a node begins; its head lies within the page.
  uint64_t node(uint32_t i) const {
    return load_le<uint16_t>(bytes.data() + kPageHeadBytes + 2 * uint64_t{i});
  }
};

struct LmdbTree::Walk {
  const Visit& visit;
  uint64_t* lost;
  uint64_t pages_left;  // in a tree, each page of the file is met at most once
  unsigned levels;
  uint64_t entries = 0;
};

bool LmdbTree::recognises(ByteSpan head) noexcept {
  if (head.size() < kMetaHeadBytes) return false;
  for (const size_t at : {16, 12}) {  // 12: of 32-bit machines
    const auto magic = load_le<uint32_t>(head.data() + at);
    if (magic == kMagic || magic == byte_swap(kMagic)) return true;
  }
  return false;
}

Result<LmdbTree> LmdbTree::open(const File& file) {
  LmdbTree tree(file);
  SPK_ASSIGN(tree.file_bytes_, file.size());
  std::vector<uint8_t> head(std::min<uint64_t>(kPageHeadBytes + kMetaBytes, tree.file_bytes_));
  SPK_TRY(file.read_exact(0, head));
  if (!recognises(head)) {
    return Status(Code::kNotThisFormat, "not the data file of an LMDB environment")
        .at_path(file.path());
  }
  if (load_le<uint32_t>(head.data() + kPageHeadBytes) != kMagic) {
    return unsupported("an LMDB environment of a 32-bit or big-endian machine")
        .at_path(file.path())
        .with_hint("there, `mdb_dump` writes it as text, which `mdb_load` takes here");
  }
  if (const auto version = load_le<uint32_t>(head.data() + kPageHeadBytes + 4);
      version != kVersion) {
    return unsupported(str_cat("an LMDB environment of format ", version, "; this program reads ",
                               kVersion))
        .at_path(file.path())
        .with_hint("`mdb_dump` of the version that wrote it and `mdb_load` of LMDB 0.9 convert it");
  }
  std::optional<Meta> best = parse_meta(head);
  // The second lies one page on; where the first does not tell how large that is, all sizes are
  // tried.
  const uint64_t smallest = best ? best->page_bytes : kLeastPageBytes;
  const uint64_t largest = best ? best->page_bytes : kMostPageBytes;
  for (uint64_t size = smallest; size <= largest; size *= 2) {
    if (!range_fits(size, head.size(), tree.file_bytes_)) break;
    SPK_TRY(file.read_exact(size, head));
    const std::optional<Meta> second = parse_meta(head);
    if (second && second->page_bytes == size &&
        (!best || second->transaction > best->transaction)) {
      best = second;
    }
  }
  if (!best) {
    return damaged("neither meta page of the LMDB environment is whole")
        .at_path(file.path())
        .at_offset(0);
  }
  tree.page_bytes_ = best->page_bytes;
  tree.last_page_ = best->last_page;
  tree.main_ = best->main;
  return tree;
}

Status LmdbTree::page_error(uint64_t number, std::string message) const {
  uint64_t offset = 0;
  Status status = Status(Code::kDamaged, std::move(message)).at_path(file_->path());
  if (checked_mul(number, page_bytes_, &offset)) status = std::move(status).at_offset(offset);
  return status;
}

Result<LmdbDatabase> LmdbTree::parse_named(const LmdbEntry& entry) const {
  uint8_t bytes[kDatabaseBytes];
  if (entry.bytes != kDatabaseBytes) {
    return Status(Code::kDamaged, "the description of a named database has a wrong size")
        .at_path(file_->path())
        .at_offset(entry.offset);
  }
  SPK_TRY(file_->read_exact(entry.offset, bytes));
  return parse_database(bytes);
}

Status LmdbTree::walk(const LmdbDatabase& database, const Visit& visit, uint64_t* lost) const {
  if ((database.flags & LmdbDatabase::kDuplicates) != 0) {
    return unsupported("an LMDB database with several values a key (MDB_DUPSORT)")
        .at_path(file_->path());
  }
  if (database.root == LmdbDatabase::kNoPage) return {};
  if (database.depth == 0 || database.depth > kMostLevels) {
    return page_error(0, str_cat("an LMDB tree of ", database.depth, " levels"));
  }
  Walk walk{visit, lost, file_bytes_ / page_bytes_, database.depth};
  SPK_TRY(walk_page(&walk, database.root, 1));
  if (lost == nullptr && walk.entries != database.entries) {
    return page_error(database.root, str_cat("the LMDB tree has ", walk.entries,
                                             " entries; its description says ", database.entries));
  }
  return {};
}

Result<LmdbTree::Page> LmdbTree::read_page(Walk* walk, uint64_t number) const {
  if (number >= file_bytes_ / page_bytes_) {
    const uint64_t whole = last_page_ >= number ? last_page_ + 1 : number + 1;
    return Status(Code::kDamaged,
                  str_cat("truncated: page ", number, " lies behind the end; the file has ",
                          file_bytes_, " bytes, its meta page tells of ", whole, " pages of ",
                          page_bytes_))
        .at_path(file_->path())
        .at_offset(file_bytes_)
        .with_hint(kCutHint);
  }
  if (walk->pages_left == 0) return page_error(number, "pages of the LMDB tree are met twice");
  --walk->pages_left;
  Page page;
  page.number = number;
  page.bytes.resize(page_bytes_);
  SPK_TRY(file_->read_exact(number * page_bytes_, page.bytes));
  page.flags = load_le<uint16_t>(page.bytes.data() + 10);
  const uint16_t lower = load_le<uint16_t>(page.bytes.data() + 12);
  if (load_le<uint64_t>(page.bytes.data()) != number || lower < kPageHeadBytes ||
      lower > page_bytes_ || lower % 2 != 0) {
    return page_error(number, str_cat("page ", number, " of the LMDB tree is not whole"));
  }
  page.nodes = static_cast<uint32_t>((lower - kPageHeadBytes) / 2);
  for (uint32_t i = 0; i < page.nodes; ++i) {
    if (page.node(i) < lower || !range_fits(page.node(i), kNodeHeadBytes, page_bytes_)) {
      return page_error(number, str_cat("page ", number, " of the LMDB tree is not whole"));
    }
  }
  return page;
}

Status LmdbTree::walk_page(Walk* walk, uint64_t number, unsigned level) const {
  const auto step = [&]() -> Status {
    SPK_ASSIGN(const Page page, read_page(walk, number));
    const uint16_t kind = page.flags & kPageKinds;
    if (level < walk->levels && kind == kPageBranch) return visit_branch(walk, page, level);
    if (level == walk->levels && kind == kPageLeaf) return visit_leaf(walk, page);
    return page_error(number,
                      str_cat("page ", number, " is no ", level < walk->levels ? "branch" : "leaf",
                              " of the LMDB tree (its flags are ", page.flags, ")"));
  };
  Status status = step();
  if (walk->lost == nullptr || status.code() != Code::kDamaged) return status;
  ++*walk->lost;
  return {};
}

Status LmdbTree::visit_branch(Walk* walk, const Page& page, unsigned level) const {
  for (uint32_t i = 0; i < page.nodes; ++i) {
    const uint8_t* const node = page.bytes.data() + page.node(i);
    const uint64_t child = load_le<uint16_t>(node) | uint64_t{load_le<uint16_t>(node + 2)} << 16 |
                           uint64_t{load_le<uint16_t>(node + 4)} << 32;
    SPK_TRY(walk_page(walk, child, level + 1));
  }
  return {};
}

Status LmdbTree::visit_leaf(Walk* walk, const Page& page) const {
  const auto bad_node = [&](uint32_t i) {
    return page_error(page.number, str_cat("entry ", i, " of page ", page.number, " is not whole"));
  };
  for (uint32_t i = 0; i < page.nodes; ++i) {
    const uint64_t start = page.node(i);
    const uint8_t* const node = page.bytes.data() + start;
    const uint16_t flags = load_le<uint16_t>(node + 4);
    const uint16_t key_bytes = load_le<uint16_t>(node + 6);
    const uint64_t value_start = start + kNodeHeadBytes + key_bytes;
    LmdbEntry entry;
    entry.bytes = load_le<uint16_t>(node) | uint64_t{load_le<uint16_t>(node + 2)} << 16;
    const bool is_big = (flags & kNodeBig) != 0;
    if (!range_fits(value_start, is_big ? 8 : entry.bytes, page_bytes_)) return bad_node(i);
    if ((flags & kNodeDuplicates) != 0) {
      return unsupported("an LMDB key with several values").at_path(file_->path());
    }
    ++walk->entries;
    entry.key = as_text(ByteSpan(page.bytes).subspan(start + kNodeHeadBytes, key_bytes));
    entry.is_database = (flags & kNodeDatabase) != 0;
    entry.offset = page.number * page_bytes_ + value_start;
    if (is_big) {
      const auto first = load_le<uint64_t>(page.bytes.data() + value_start);
      auto place = overflow_place(walk, first, entry.bytes);
      if (!place.ok()) {
        if (walk->lost == nullptr || place.status().code() != Code::kDamaged) {
          return std::move(place).status();
        }
        ++*walk->lost;
        continue;
      }
      entry.offset = *place;
    }
    SPK_TRY(walk->visit(entry));
  }
  return {};
}

// Where a value of pages of its own lies.
Result<uint64_t> LmdbTree::overflow_place(Walk* walk, uint64_t page, uint64_t bytes) const {
  const uint64_t pages = divide_up(kPageHeadBytes + bytes, page_bytes_);
  if (!range_fits(page, pages, file_bytes_ / page_bytes_)) {
    return Status(Code::kDamaged, str_cat("truncated: a value of ", bytes, " bytes at page ", page,
                                          " reaches behind the end; the file has ", file_bytes_,
                                          " bytes, its meta page tells of ", last_page_,
                                          " + 1 pages of ", page_bytes_))
        .at_path(file_->path())
        .at_offset(file_bytes_)
        .with_hint(kCutHint);
  }
  if (walk->pages_left < pages) return page_error(page, "pages of the LMDB tree are met twice");
  walk->pages_left -= pages;
  return page * page_bytes_ + kPageHeadBytes;
}

}  // namespace spk
