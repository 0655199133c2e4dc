// Lists sources made in a directory of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/text.h"
#include "sources/pieces.h"
#include "sources/source.h"
#include "support/test_pack.h"

namespace spk {

namespace fs = std::filesystem;
using Labels = std::vector<int64_t>;
using Names = std::vector<std::string>;

// VALUE in so many bytes, the least one first.
inline std::string le(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

struct Listed {
  Status status;
  Listing listing;
  std::vector<SampleEntry> entries;  // in order
  std::unique_ptr<Source> source;

  Names keys() const {
    Names keys;
    for (const SampleEntry& entry : entries) {
      if (entry.reject.empty()) keys.push_back(entry.key);
    }
    return keys;
  }
  Labels labels() const {
    Labels labels;
    for (const SampleEntry& entry : entries) {
      if (!entry.reject.empty()) continue;
      labels.insert(labels.end(), entry.int_labels.begin(), entry.int_labels.end());
    }
    return labels;
  }
  std::map<std::string, std::string> rejects() const {
    std::map<std::string, std::string> rejects;
    for (const SampleEntry& entry : entries) {
      if (!entry.reject.empty()) rejects[entry.key] = entry.reject;
    }
    return rejects;
  }
  uint64_t warned(const std::string& kind) const {
    const auto found = listing.warnings.kinds().find(kind);
    return found == listing.warnings.kinds().end() ? 0 : found->second.count;
  }
};

class SourceTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text = "picture") {
    fs::create_directories(fs::path(dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  void folder(const std::string& name) { fs::create_directories(dir_ / name); }
  void link(const std::string& target, const std::string& name) {
    ASSERT_EQ(::symlink(target.c_str(), (dir_ / name).c_str()), 0);
  }
  Listed list(const std::string& name, PackOptions options = {},
              std::shared_ptr<Spool> spool = nullptr) {
    options.source = dir_ / name;
    Listed listed;
    auto source = open_source(options, std::move(spool));
    if (!source.ok()) {
      listed.status = source.status();
      return listed;
    }
    listed.source = std::move(*source);
    std::mutex mutex;
    auto listing = listed.source->list(options, [&](SampleEntry&& entry) {
      const std::lock_guard lock(mutex);
      listed.entries.push_back(std::move(entry));
      return Status();
    });
    if (!listing.ok()) {
      listed.status = listing.status();
      return listed;
    }
    listed.listing = std::move(*listing);
    EXPECT_EQ(listed.listing.ordered, listed.source->lists_in_order());
    if (!listed.listing.ordered) {
      std::sort(listed.entries.begin(), listed.entries.end(),
                [](const SampleEntry& a, const SampleEntry& b) {
                  return a.split != b.split ? a.split < b.split : a.key < b.key;
                });
    } else {
      for (size_t i = 0; i < listed.entries.size(); ++i) EXPECT_EQ(listed.entries[i].ordinal, i);
    }
    return listed;
  }
  // What another reading of an entry gives.
  static std::string read(const Listed& listed, size_t entry) {
    auto handle = listed.source->open(listed.entries.at(entry));
    EXPECT_TRUE(handle.ok()) << handle.status().to_string();
    if (!handle.ok()) return {};
    const auto bytes = read_all(**handle);
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    return bytes.ok() ? std::string(as_text(*bytes)) : std::string();
  }
  // A list beside the files i0.jpg ... i4.jpg.
  Listed list_text(const std::string& text, PackOptions options = {}) {
    for (int i = 0; i < 5; ++i) write(str_cat("m/i", i, ".jpg"));
    write("m/list", text);
    return list("m/list", std::move(options));
  }
  test::TempDir dir_;
};

}  // namespace spk
