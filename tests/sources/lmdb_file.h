// Files of LMDB environments, byte by byte, for tests: also such as liblmdb never writes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace spk::test {

using LmdbPairs = std::vector<std::pair<std::string, std::string>>;  // in key order

struct LmdbFileOptions {
  uint32_t page_bytes = 4096;
  uint16_t flags = 0;            // of the database
  uint32_t pairs_a_leaf = 100;   // more than one leaf makes a branch above them
  uint32_t inline_at_most = 64;  // longer values get pages of their own
  std::string named;             // not empty: PAIRS are in the named database of that name
};

std::string make_lmdb_file(const LmdbPairs& pairs, const LmdbFileOptions& options = {});

// Field NUMBER of protobuf's wire format.
std::string proto_number(uint32_t number, uint64_t value);
std::string proto_bytes(uint32_t number, const std::string& bytes);

}  // namespace spk::test
