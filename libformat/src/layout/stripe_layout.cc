#include "layout/stripe_layout.h"

namespace spk {

const char* stripe_system_name(StripeSystem system) noexcept {
  switch (system) {
    case StripeSystem::kNone: return "none";
    case StripeSystem::kLustre: return "lustre";
    case StripeSystem::kBeegfs: return "beegfs";
    case StripeSystem::kCeph: return "ceph";
  }
  return "none";
}

const StripeComponent* StripeLayout::at(uint64_t offset) const noexcept {
  for (const StripeComponent& component : components) {
    if (offset >= component.begin_bytes && offset < component.end_bytes) return &component;
  }
  return nullptr;
}

std::optional<uint32_t> stripe_target(const StripeLayout& layout, uint64_t offset) noexcept {
  const StripeComponent* component = layout.at(offset);
  if (component == nullptr || component->targets.empty() || component->stripe_bytes == 0) return {};
  // Counted from the file's begin in every component, as Lustre does.
  const uint64_t stripe = offset / component->stripe_bytes;
  return component->targets[stripe % component->targets.size()];
}

std::optional<uint64_t> stripe_object(const StripeLayout& layout, uint64_t offset) noexcept {
  const StripeComponent* component = layout.at(offset);
  if (layout.system != StripeSystem::kCeph || component == nullptr) return {};
  if (component->stripe_bytes == 0 || component->stripe_count == 0) return {};
  const uint64_t stripes_per_object = component->object_bytes / component->stripe_bytes;
  if (stripes_per_object == 0) return {};
  const uint64_t block = offset / component->stripe_bytes;
  const uint64_t row = block / component->stripe_count;
  const uint64_t column = block % component->stripe_count;
  return row / stripes_per_object * component->stripe_count + column;
}

}  // namespace spk
