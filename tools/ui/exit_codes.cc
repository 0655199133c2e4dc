#include "ui/exit_codes.h"

#include "ui/signals.h"

namespace spk {

int exit_code_of(const Status& status) noexcept {
  switch (status.code()) {
    case Code::kOk: return kExitDone;
    case Code::kInvalidArgument: return kExitUsage;
    case Code::kNotThisFormat:
    case Code::kUnsupported: return kExitNotAPack;
    case Code::kCancelled:
      return cancel_signal() != 0 ? kExitSignal + cancel_signal() : kExitFailed;
    case Code::kDamaged:
    case Code::kIo:
    case Code::kNoSpace:
    case Code::kNotFound:
    case Code::kExists:
    case Code::kNoMemory:
    case Code::kPartial:
    case Code::kBusy:
    case Code::kMismatch:
    case Code::kInternal:
    case Code::kDenied: return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace spk
