// Options of `pack` and `repack` for jobs of several processes: --part and --wait, and the batch
// script that --print-sbatch writes.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "pipeline/pack_options.h"

namespace spk {

struct JobOptions {
  std::string part;  // as typed; empty: none
  uint64_t wait_seconds = 0;
  bool print_sbatch = false;
  uint64_t nodes = 1;
  std::string time;
};

void add_job_options(CLI::App& sub, JobOptions* job);

// Settles options->part, ->wait_seconds and ->request by what was typed for SUB. kInvalidArgument
// for what does not go together.
Status take_job_options(const CLI::App& sub, const JobOptions& job, PackOptions* options);

// The words that this process was started with.
std::vector<std::string> typed_words();
// The same in one line, those with blanks quoted for people and shells.
std::string command_line();
// A script for sbatch: an array of parts that run these words and publish by themselves.
std::string sbatch_script(const JobOptions& job, const std::vector<std::string>& words);

}  // namespace spk
