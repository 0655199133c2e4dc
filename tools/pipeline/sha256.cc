#include "pipeline/sha256.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/text.h"
#include "io/file.h"

#if SPK_HAVE_OPENSSL
#include <openssl/evp.h>
#endif

namespace spk {

#if SPK_HAVE_OPENSSL

bool sha256_available() noexcept { return true; }

Result<std::string> sha256_of_file(const Directory& dir, std::string_view name) {
  SPK_ASSIGN(const File file, File::open_read(dir, name));
  SPK_ASSIGN(const uint64_t size, file.size());
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<uint8_t> piece(std::min<uint64_t>(size, uint64_t{4} << 20));
  for (uint64_t done = 0; good && done < size;) {
    const MutableByteSpan into =
        MutableByteSpan(piece).first(std::min<uint64_t>(piece.size(), size - done));
    SPK_TRY(file.read_exact(done, into));
    good = EVP_DigestUpdate(context.get(), into.data(), into.size()) == 1;
    done += into.size();
  }
  uint8_t digest[EVP_MAX_MD_SIZE] = {};
  unsigned int length = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest, &length) == 1;
  if (!good) return internal_error("libcrypto cannot compute a SHA-256");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += to_hex(digest[i]).substr(14);
  return text;
}

#else

bool sha256_available() noexcept { return false; }

Result<std::string> sha256_of_file(const Directory&, std::string_view) {
  return unsupported("this build has no libcrypto, which --sha256 needs")
      .with_hint("install libssl-dev and build again, or run sha256sum on the pack");
}

#endif

}  // namespace spk
