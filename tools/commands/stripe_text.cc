#include "commands/stripe_text.h"

#include "base/text.h"

namespace spk {

namespace {

std::string component_text(const StripeComponent& component) {
  std::string text = component.stripe_bytes == 0
                         ? std::string("stripes of the default size")
                         : str_cat("stripes of ", format_size(component.stripe_bytes));
  if (component.stripe_count == kAllTargets) {
    text += ", over all targets";
  } else if (component.stripe_count != 0) {
    text += str_cat(", ", component.stripe_count, " a file");
  }
  if (component.object_bytes != 0) {
    text += str_cat(", objects of ", format_size(component.object_bytes));
  }
  if (!component.pool.empty()) text += ", pool " + escape_bytes(component.pool);
  if (!component.targets.empty()) {
    text += component.targets.size() == 1 ? ", target" : ", targets";
    for (size_t i = 0; i < component.targets.size(); ++i) {
      text += str_cat(i == 0 ? " " : ",", component.targets[i]);
    }
  }
  return text;
}

}  // namespace

std::string stripe_text(const StripeLayout& layout) {
  if (layout.foreign) return "foreign: only the program that made it knows";
  if (layout.components.empty()) {
    return layout.system == StripeSystem::kNone ? "not told" : "the file system's default";
  }
  std::string text;
  for (const StripeComponent& component : layout.components) {
    if (!text.empty()) text += "; ";
    if (layout.composite && component.end_bytes != UINT64_MAX) {
      text += str_cat("to ", format_size(component.end_bytes), ": ");
    } else if (layout.composite) {
      text += "then: ";
    }
    text += component_text(component);
  }
  if (layout.released) text += "; released to an archive";
  return text;
}

}  // namespace spk
