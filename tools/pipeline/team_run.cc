// The ranks of an MPI program. The first one does what a run of one process does; the others build
// their shards in between. After each step all know whether all may go on.
#include <thread>

#include "base/text.h"
#include "base/varint.h"
#include "pipeline/pack_steps.h"

namespace spk {

namespace {

// A network file system may show what another node made only after its caches have aged.
constexpr std::chrono::seconds kMostWait{60};

Status garbled() { return internal_error("a rank sent what no rank sends"); }

void append_numbers(std::string& out, std::initializer_list<uint64_t> numbers) {
  for (const uint64_t number : numbers) append_varint(out, number);
}

}  // namespace

std::string PackRun::plans_message() const {
  std::string message;
  if (outcome_.end == PackEnd::kComplete) return message;
  append_varint(message, outcome_.splits.size());
  for (const SplitOutcome& split : outcome_.splits) {
    append_string(message, split.split);
    append_string(message, split.plan.plan_id.to_hex());
  }
  return message;
}

Status PackRun::attach_to_plans(std::string_view message) {
  ByteSpan rest = as_bytes(message);
  uint64_t splits = 0;
  if (!take_varint(&rest, &splits)) return garbled();
  const auto until = std::chrono::steady_clock::now() + kMostWait;
  const auto patient = [&](const Status& status) {
    if (status.code() != Code::kNotFound || std::chrono::steady_clock::now() >= until ||
        shared_.stopping()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return true;
  };
  while (!claim_) {
    auto claim = Claim::attach(place_);
    if (claim.ok()) {
      claim_.emplace(std::move(claim).value());
    } else if (!patient(claim.status())) {
      return std::move(claim).status();
    }
  }
  for (uint64_t i = 0; i < splits; ++i) {
    std::string_view name, plan_id;
    if (!take_string(&rest, &name) || !take_string(&rest, &plan_id)) return garbled();
    SplitOutcome split;
    split.split = name;
    const std::string path = plan_path(claim_->partial().path(), split.split);
    auto plan = Plan::load(path);
    while (!plan.ok() && patient(plan.status())) plan = Plan::load(path);
    if (!plan.ok()) return std::move(plan).status();
    split.plan = (*plan)->info();
    if (split.plan.plan_id.to_hex() != plan_id) {
      return Status(Code::kMismatch, "is another plan than the first rank's")
          .at_path(path)
          .with_hint("OUT must be the same folder for all ranks, on a file system they share");
    }
    outcome_.splits.push_back(std::move(split));
  }
  return {};
}

std::string PackRun::counts_message() const {
  std::string message;
  for (const SplitOutcome& split : outcome_.splits) {
    const BuildResult& build = split.build;
    append_numbers(message, {build.samples, build.rejects, build.payload_bytes, build.shard_bytes,
                             build.shards_found_complete, build.kept_samples, build.shards_built,
                             build.shards_taken_over});
  }
  append_varint(message, outcome_.reject_reasons.size());
  for (const auto& [reason, count] : outcome_.reject_reasons) {
    append_string(message, reason);
    append_varint(message, count);
  }
  append_varint(message, outcome_.warnings.kinds().size());
  for (const auto& [kind, found] : outcome_.warnings.kinds()) {
    append_string(message, kind);
    append_varint(message, found.count);
    append_varint(message, found.examples.size());
    for (const std::string& example : found.examples) append_string(message, example);
  }
  return message;
}

// Of the ranks but the first, whose own are there.
Status PackRun::take_counts(const std::vector<std::string>& messages) {
  for (size_t rank = 1; rank < messages.size(); ++rank) {
    ByteSpan rest = as_bytes(messages[rank]);
    for (SplitOutcome& split : outcome_.splits) {
      BuildResult& build = split.build;
      uint64_t found = 0, built = 0, taken_over = 0, rejects = 0;
      for (uint64_t* into : {&build.samples, &rejects, &build.payload_bytes, &build.shard_bytes,
                             &found, &build.kept_samples, &built, &taken_over}) {
        uint64_t number = 0;
        if (!take_varint(&rest, &number)) return garbled();
        *into += number;
      }
      build.rejects += rejects;
      outcome_.rejects += rejects;
      build.shards_found_complete += static_cast<uint32_t>(found);
      build.shards_built += static_cast<uint32_t>(built);
      build.shards_taken_over += static_cast<uint32_t>(taken_over);
    }
    uint64_t reasons = 0, kinds = 0;
    std::string_view text;
    uint64_t count = 0;
    if (!take_varint(&rest, &reasons)) return garbled();
    for (uint64_t i = 0; i < reasons; ++i) {
      if (!take_string(&rest, &text) || !take_varint(&rest, &count)) return garbled();
      outcome_.reject_reasons[std::string(text)] += count;
    }
    if (!take_varint(&rest, &kinds)) return garbled();
    for (uint64_t i = 0; i < kinds; ++i) {
      uint64_t examples = 0;
      if (!take_string(&rest, &text) || !take_varint(&rest, &count) ||
          !take_varint(&rest, &examples)) {
        return garbled();
      }
      const std::string kind(text);
      for (uint64_t e = 0; e < examples; ++e) {
        if (!take_string(&rest, &text)) return garbled();
        outcome_.warnings.add(kind, std::string(text));
      }
      if (count > examples) outcome_.warnings.add_count(kind, count - examples);
    }
  }
  return {};
}

Status PackRun::team_steps(Team& team) {
  part_ = {team.rank(), team.size()};
  Status status = open();
  // Nobody claims OUT before all ranks can read the source.
  SPK_ASSIGN(std::vector<std::string> told, agree(team, status, ""));

  bool complete = false;
  if (team.first()) status = begin(&complete);
  SPK_ASSIGN(told, agree(team, status, status.ok() ? plans_message() : ""));
  if (told[0].empty()) {
    outcome_.end = PackEnd::kComplete;
    return {};
  }

  if (!team.first()) status = attach_to_plans(told[0]);
  if (status.ok()) status = build();
  if (!status.ok()) team.tell_stop();
  SPK_ASSIGN(told, agree(team, status, counts_message()));

  if (team.first()) {
    status = take_counts(told);
    if (status.ok()) status = conclude();
  }
  SPK_ASSIGN(told, agree(team, status, std::to_string(static_cast<int>(outcome_.end))));
  if (told[0] == std::to_string(static_cast<int>(PackEnd::kNotPublished))) {
    outcome_.end = PackEnd::kNotPublished;
  }
  return {};
}

Result<PackOutcome> PackRun::run_team(Team& team) {
  shared_.told = &team.stop_flag();
  SPK_TRY(team_steps(team));
  outcome_.seconds = seconds();
  return std::move(outcome_);
}

}  // namespace spk
