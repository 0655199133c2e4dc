// What `stripepack pack` tells at its end, to people, as JSON, and in the report file.
#pragma once

#include <string>

#include "pipeline/pack_run.h"
#include "ui/ui.h"

namespace spk {

void show_outcome(Ui& ui, const PackOptions& options, const PackOutcome& outcome);
// The whole report as one JSON object.
std::string report_text(const PackOptions& options, const PackOutcome& outcome);

}  // namespace spk
