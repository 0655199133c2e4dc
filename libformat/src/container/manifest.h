// manifest.json and rejects.tsv: the parts of a pack that people read. Both are pure functions of
// the shards, so repair writes them again and verify compares them byte for byte.
#pragma once

#include <string>
#include <vector>

#include "format/index.h"

namespace spk {

// The whole text of manifest.json. `schema` and `settings` as the index has them.
std::string render_manifest(const IndexHeader& header, const std::vector<ShardRow>& shards,
                            const Schema& schema, const Settings& settings);

// rejects.tsv: this line, then one line a reject, shard by shard.
std::string rejects_header();
// "ORDINAL\tKEY\tREASON\n", key and reason escaped.
void append_reject(std::string& out, const RejectRow& row);

}  // namespace spk
