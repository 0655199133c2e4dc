// Which options go with which kinds of sources: one table for all of them.
#pragma once

#include "base/status.h"
#include "pipeline/pack_options.h"
#include "sources/source_kind.h"

namespace spk {

// kInvalidArgument where an option was given that a source of this kind would not heed, or where
// --features cannot be read: before anything is listed or written.
Status check_kind_options(const PackOptions& options, const SourceKind& kind);

// kDamaged for a file of no bytes at all, where its name, or KIND if that is not null, promises
// something else than a list.
Status check_not_empty(const SourceLook& look, const SourceKind* kind);

}  // namespace spk
