// What `stripepack pack` tells at its end, to people, as JSON, and in the report file.
#pragma once

#include <string>

#include "commands/named_file.h"
#include "pipeline/pack_run.h"
#include "ui/ui.h"

namespace spk {

void show_outcome(Ui& ui, const PackOptions& options, const PackOutcome& outcome);
// Before the work: kInvalidArgument where FILE, of --report, would replace a file of the source or
// a picture, lie inside a source's folder, or where the pack is built.
Status refuse_report_place(const PackOptions& options, const NamedFile& file);
// The whole report as one JSON object.
std::string report_text(const PackOptions& options, const PackOutcome& outcome);

}  // namespace spk
