// A file that is written from front to back, through a buffer, under a temporary name until it is
// whole and on disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/directory.h"
#include "io/file.h"

namespace spk {

class OutputFile {
 public:
  // `directory` must outlive it. NAME may stand there already: finish() replaces it.
  static Result<OutputFile> create(const Directory& directory, const std::string& name);
  OutputFile(OutputFile&&) noexcept = default;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes what is not finished

  Status append(ByteSpan bytes);
  Status append(std::string_view text);
  Status append_zeros(uint64_t count);
  // Little-endian.
  Status append_u32(uint32_t value);
  Status append_u64(uint64_t value);
  uint64_t position() const noexcept { return written_ + buffer_.size(); }
  // Replaces bytes that were appended before.
  Status rewrite(uint64_t offset, ByteSpan bytes);
  // Forces it to disk and gives it its name.
  Status finish();

 private:
  OutputFile(const Directory& directory, std::string name, std::string temporary_name, File file);
  Status flush();

  const Directory* directory_;
  std::string name_;
  std::string temporary_name_;
  File file_;
  uint64_t written_ = 0;
  uint64_t given_to_disk_ = 0;  // of these
  std::vector<uint8_t> buffer_;
};

// A small file, whole.
Status write_output_file(const Directory& directory, const std::string& name, ByteSpan bytes);

}  // namespace spk
