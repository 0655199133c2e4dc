#include "pipeline/repeat_finder.h"

#include <bit>
#include <iterator>
#include <set>

#include "base/hash.h"
#include "pipeline/entry_codec.h"

namespace spk {

namespace {

uint64_t labels_hash(const SampleEntry& entry) {
  std::string bytes;
  for (const int64_t label : entry.int_labels) {
    append_be64(bytes, static_cast<uint64_t>(label));
  }
  for (const double label : entry.float_labels) append_be64(bytes, std::bit_cast<uint64_t>(label));
  return xxh3_64(as_bytes(bytes));
}

struct Kind {
  uint64_t repeats = 0;
  std::set<std::pair<uint32_t, uint64_t>> firsts;  // the lowest few

  void add(std::pair<uint32_t, uint64_t> first, uint64_t more) {
    repeats += more;
    firsts.insert(first);
    if (firsts.size() > Warnings::kExamplesKept) firsts.erase(std::prev(firsts.end()));
  }
};

}  // namespace

Status RepeatFinder::add(const SampleEntry& entry) {
  std::string key, payload;
  const Hash128 hash = xxh3_128(as_bytes(entry.key));
  append_be32(key, entry.split);
  append_be64(key, hash.high);
  append_be64(key, hash.low);
  append_be64(payload, entry.ordinal);
  append_be64(payload, labels_hash(entry));
  return hashes_.add(as_bytes(key), as_bytes(payload));
}

Result<RepeatFinder::Examples> RepeatFinder::finish(Warnings* warnings) {
  SPK_TRY(hashes_.finish());
  SPK_ASSIGN(const auto stream, hashes_.read());
  Kind same, conflicting;
  std::string group_key;
  std::pair<uint32_t, uint64_t> first;
  uint64_t first_labels = 0, repeats = 0;
  bool conflict = false;
  for (bool more = true; more;) {
    ByteSpan key, payload;
    SPK_ASSIGN(more, stream->next(&key, &payload));
    if (more && as_text(key) == group_key) {
      ++repeats;
      conflict |= load_be<uint64_t>(payload.data() + 8) != first_labels;
      continue;
    }
    if (repeats != 0) (conflict ? conflicting : same).add(first, repeats);
    if (!more) break;
    group_key.assign(as_text(key));
    first = {load_be<uint32_t>(key.data()), load_be<uint64_t>(payload.data())};
    first_labels = load_be<uint64_t>(payload.data() + 8);
    repeats = 0;
    conflict = false;
  }
  Examples examples;
  for (const auto& [name, kind] : {std::pair{"listed again with another label", &conflicting},
                                   std::pair{"listed more than once", &same}}) {
    for (const auto& place : kind->firsts) examples[place] = name;
    warnings->add_count(name, kind->repeats - kind->firsts.size());
  }
  return examples;
}

}  // namespace spk
