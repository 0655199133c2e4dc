#include "format/version.h"

#include "base/text.h"
#include "format/constants.h"

namespace spk {

Status check_version(std::string_view what, uint32_t version, uint32_t features_incompatible) {
  if (version >= 1 && version <= kFormatVersion && features_incompatible == 0) return {};
  return unsupported(str_cat(what, " of format version ", version, " with features ",
                             features_incompatible, "; this program reads version ", kFormatVersion,
                             " without features"))
      .with_hint("read it with a newer stripepack");
}

}  // namespace spk
