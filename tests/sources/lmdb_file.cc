#include "sources/lmdb_file.h"

#include <cstring>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/varint.h"

namespace spk::test {

namespace {

constexpr uint32_t kHead = 16;
constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kMeta = 8, kBig = 1, kNamed = 2;

class Maker {
 public:
  explicit Maker(const LmdbFileOptions& options) : options_(options) {
    file_.resize(2 * size_t{options.page_bytes});  // for the meta pages
  }

  // Gives the database's description.
  std::string add_database(const LmdbPairs& pairs, uint16_t flags, uint16_t value_flags = 0) {
    std::vector<std::pair<std::string, uint64_t>> leaves;  // first key, page
    for (size_t begin = 0; begin < pairs.size(); begin += options_.pairs_a_leaf) {
      const size_t end = std::min(pairs.size(), begin + options_.pairs_a_leaf);
      std::vector<std::string> nodes;
      for (size_t i = begin; i < end; ++i) nodes.push_back(leaf_node(pairs[i], value_flags));
      leaves.emplace_back(pairs[begin].first, add_page(kLeaf, nodes));
    }
    uint64_t root = leaves.empty() ? UINT64_MAX : leaves[0].second;
    uint16_t depth = leaves.empty() ? 0 : 1;
    if (leaves.size() > 1) {
      std::vector<std::string> nodes;
      for (const auto& [key, page] : leaves) {
        nodes.push_back(node(page & 0xffffffff, static_cast<uint16_t>(page >> 32), key, ""));
      }
      root = add_page(kBranch, nodes);
      depth = 2;
    }
    std::string text(48, '\0');
    put<uint16_t>(&text, 4, flags);
    put<uint16_t>(&text, 6, depth);
    put<uint64_t>(&text, 32, pairs.size());
    put<uint64_t>(&text, 40, root);
    return text;
  }

  std::string finish(const std::string& main) {
    for (uint64_t page = 0; page < 2; ++page) {
      const size_t at = page * options_.page_bytes;
      put<uint64_t>(&file_, at, page);
      put<uint16_t>(&file_, at + 10, kMeta);
      put<uint32_t>(&file_, at + 16, 0xbeefc0de);
      put<uint32_t>(&file_, at + 20, 1);
      put<uint64_t>(&file_, at + 32, uint64_t{1} << 40);
      put<uint32_t>(&file_, at + 40, options_.page_bytes);
      put<uint64_t>(&file_, at + 80, UINT64_MAX);  // no free pages
      put<uint64_t>(&file_, at + 128, UINT64_MAX);
      if (page == 1) file_.replace(at + 88, 48, main);
      put<uint64_t>(&file_, at + 136, file_.size() / options_.page_bytes - 1);
      put<uint64_t>(&file_, at + 144, page);
    }
    return file_;
  }

 private:
  template <typename T>
  static void put(std::string* text, size_t at, T value) {
    store_le<T>(reinterpret_cast<uint8_t*>(text->data()) + at, value);
  }

  static std::string node(uint64_t low, uint16_t flags, const std::string& key,
                          const std::string& data) {
    std::string text(8, '\0');
    put<uint32_t>(&text, 0, static_cast<uint32_t>(low));
    put<uint16_t>(&text, 4, flags);
    put<uint16_t>(&text, 6, static_cast<uint16_t>(key.size()));
    text += key + data;
    if (text.size() % 2 != 0) text += '\0';
    return text;
  }

  std::string leaf_node(const std::pair<std::string, std::string>& pair, uint16_t flags) {
    const auto& [key, value] = pair;
    if (value.size() <= options_.inline_at_most) return node(value.size(), flags, key, value);
    const uint64_t pages = divide_up(kHead + value.size(), options_.page_bytes);
    const uint64_t first = file_.size() / options_.page_bytes;
    const size_t at = file_.size();
    file_.resize(at + pages * options_.page_bytes);
    put<uint64_t>(&file_, at, first);
    put<uint16_t>(&file_, at + 10, kOverflow);
    put<uint32_t>(&file_, at + 12, static_cast<uint32_t>(pages));
    file_.replace(at + kHead, value.size(), value);
    std::string place(8, '\0');
    put<uint64_t>(&place, 0, first);
    return node(value.size(), static_cast<uint16_t>(flags | kBig), key, place);
  }

  uint64_t add_page(uint16_t kind, const std::vector<std::string>& nodes) {
    const uint64_t number = file_.size() / options_.page_bytes;
    const size_t at = file_.size();
    file_.resize(at + options_.page_bytes);
    size_t upper = options_.page_bytes;
    size_t lower = kHead;
    for (const std::string& one : nodes) {
      upper -= one.size();
      file_.replace(at + upper, one.size(), one);
      put<uint16_t>(&file_, at + lower, static_cast<uint16_t>(upper));
      lower += 2;
    }
    put<uint64_t>(&file_, at, number);
    put<uint16_t>(&file_, at + 10, kind);
    put<uint16_t>(&file_, at + 12, static_cast<uint16_t>(lower));
    put<uint16_t>(&file_, at + 14, static_cast<uint16_t>(upper));
    return number;
  }

  const LmdbFileOptions& options_;
  std::string file_;
};

}  // namespace

std::string make_lmdb_file(const LmdbPairs& pairs, const LmdbFileOptions& options) {
  Maker maker(options);
  std::string main = maker.add_database(pairs, options.flags);
  if (!options.named.empty()) main = maker.add_database({{options.named, main}}, 0, kNamed);
  return maker.finish(main);
}

std::string proto_number(uint32_t number, uint64_t value) {
  std::string out;
  append_varint(out, uint64_t{number} << 3);
  append_varint(out, value);
  return out;
}

std::string proto_bytes(uint32_t number, const std::string& bytes) {
  std::string out;
  append_varint(out, uint64_t{number} << 3 | 2);
  append_varint(out, bytes.size());
  return out + bytes;
}

}  // namespace spk::test
