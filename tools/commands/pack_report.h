// What `stripepack pack` tells at its end, to people, as JSON, and in the report file.
#pragma once

#include "pipeline/pack_run.h"
#include "ui/ui.h"

namespace spk {

void show_outcome(Ui& ui, const PackOptions& options, const PackOutcome& outcome);
// The whole report as one JSON object in options.report, written atomically.
Status write_report(const PackOptions& options, const PackOutcome& outcome);

}  // namespace spk
