#include "sources/source.h"

namespace spk {

void Warnings::add(const std::string& kind, std::string example) {
  Kind& entry = kinds_[kind];
  ++entry.count;
  if (entry.examples.size() < kExamplesKept) entry.examples.push_back(std::move(example));
}

void Warnings::add_count(const std::string& kind, uint64_t count) {
  if (count != 0) kinds_[kind].count += count;
}

void Warnings::merge(const Warnings& other) {
  for (const auto& [kind, from] : other.kinds_) {
    Kind& into = kinds_[kind];
    into.count += from.count;
    for (const std::string& example : from.examples) {
      if (into.examples.size() == kExamplesKept) break;
      into.examples.push_back(example);
    }
  }
}

uint64_t Warnings::total() const {
  uint64_t total = 0;
  for (const auto& [kind, entry] : kinds_) total += entry.count;
  return total;
}

}  // namespace spk
