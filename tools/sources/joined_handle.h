// Several handles as one.
#pragma once

#include <memory>
#include <vector>

#include "sources/source.h"

namespace spk {

// Their bytes, one behind the other.
class JoinedHandle : public SampleHandle {
 public:
  void add(std::unique_ptr<SampleHandle> handle);
  uint64_t size_bytes() const override { return size_bytes_; }
  Status read_at(uint64_t offset, MutableByteSpan into) override;

 private:
  std::vector<std::unique_ptr<SampleHandle>> handles_;
  std::vector<uint64_t> starts_;
  uint64_t size_bytes_ = 0;
};

}  // namespace spk
