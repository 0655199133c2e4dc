// The claim on OUT: a pack is built in OUT.partial, which belongs to one run at a time.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "io/directory.h"

namespace spk {

// In OUT.partial: where a run makes its plan before it is compared with the one that is there
// ("replan-<attempt>"), and what sources unpack (sources/spool.h).
inline constexpr char kReplanName[] = "replan";
bool is_replan_name(std::string_view name);
inline constexpr char kSpoolName[] = "spool";

// OUT split into the folder that it stands in and its name there.
struct OutputPlace {
  std::string parent;  // "." where OUT has no slash
  std::string name;
  std::string partial_name() const { return name + ".partial"; }
};
// kInvalidArgument for "", "/", "." and "..". Trailing slashes do not matter.
Result<OutputPlace> split_output(const std::string& output);

class Claim {
 public:
  // Makes OUT.partial, or joins what an earlier run left there. kBusy where another live process of
  // this machine holds it (told by a lock on the directory that ends with its process; where the
  // file system has no locks, two runs at once waste work but do no harm: each writes under its own
  // names, and what they rename is the same). kNotFound where OUT's folder is missing; kExists
  // where OUT.partial holds what no run of ours leaves, for it may be somebody's data.
  static Result<Claim> take(const OutputPlace& place);
  // For the parts of a job: several at once have the claim, but not beside one that was taken.
  // kNotFound where there is no OUT.partial, unless `make`.
  static Result<Claim> share(const OutputPlace& place, bool make);
  // For the ranks of a run whose first one has taken the claim. No lock; kNotFound where there is
  // no OUT.partial.
  static Result<Claim> attach(const OutputPlace& place);
  Claim(Claim&& other) noexcept;
  Claim& operator=(Claim&&) = delete;
  // A claim that was taken and leaves nothing in its directory removes it again.
  ~Claim();

  const Directory& parent() const { return parent_; }
  const Directory& partial() const { return partial_; }
  bool made() const { return made_; }  // this run made it; otherwise it joined
  const OutputPlace& place() const { return place_; }
  // Unique among runs: for temporary names.
  const std::string& attempt() const { return attempt_; }
  // Removes everything in OUT.partial.
  Status clear() const;
  // Removes where runs planned. Only where none is at it.
  Status remove_replans() const;
  // Removes what killed runs left under temporary names in `dir`, which is OUT.partial or a split's
  // directory in it. Not while this run has temporary files of its own there.
  static Status remove_temporaries(const Directory& dir);
  // False once the directory has another name: it was published, or removed.
  Result<bool> is_in_place() const;
  // Renames OUT.partial to OUT; kNotFound where another part has done so. An empty directory OUT is
  // replaced; anything else is kExists.
  Status publish();

 private:
  Claim() = default;
  Status open(bool make);
  Status lock(int kind) const;
  Status refuse_foreign() const;
  void set_attempt();
  OutputPlace place_;
  Directory parent_;
  Directory partial_;
  std::string attempt_;
  bool made_ = false;
  bool held_ = false;  // ours alone by lock, and not yet published
};

// "host" and "user" for run.json and messages; "unknown" where the system does not say.
std::string host_name();
std::string user_name();
// "2026-11-30T12:34:56Z"
std::string utc_now();

}  // namespace spk
