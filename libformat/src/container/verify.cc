#include "container/verify.h"

#include "container/pack_check.h"

namespace spk {

Result<VerifyReport> verify_pack(const std::string& path, const VerifyOptions& options,
                                 const DamageSink& sink, const VerifyHooks& hooks) {
  SPK_ASSIGN(const Directory dir, Directory::open(path));
  SPK_ASSIGN(PackCheckResult result, check_pack(dir, true, options, sink, hooks));
  return std::move(result.report);
}

}  // namespace spk
