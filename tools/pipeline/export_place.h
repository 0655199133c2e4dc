// Where an export is built until it is whole, and how it is published as DEST.
//
// DEST.partial holds two folders: `files`, which becomes DEST, and one of our own with the request
// and a record for each finished file. A run may die at any point: while `files` is there an equal
// run continues; where only our own folder is left, DEST was published.
#pragma once

#include <string>

#include "base/result.h"
#include "io/directory.h"
#include "pipeline/claim.h"

namespace spk {

class ExportPlace {
 public:
  // Makes DEST.partial, or joins what an equal export left there: REQUEST says in words what is
  // exported, and is kept there. kExists where DEST is taken (unless `force`); kBusy where
  // another process is at work; kMismatch where another export lies unfinished (unless `restart`,
  // which throws it away).
  static Result<ExportPlace> take(const std::string& dest, const std::string& request, bool force,
                                  bool restart);
  // For the ranks of a run whose first one has taken it.
  static Result<ExportPlace> attach(const std::string& dest);
  // Where files go: `files`, or for a split a folder in it.
  Result<Directory> directory_of_split(const std::string& split) const;
  // Where the records of a split's files go; not part of what is published.
  Result<Directory> records_of_split(const std::string& split) const;
  // Gives it its name. What was at DEST before (only with `force`) stays beside it; `aside` is its
  // path then.
  Status publish(std::string* aside);

 private:
  ExportPlace() = default;
  OutputPlace place_;
  Directory parent_;
  Directory partial_;
  Directory files_;  // both in partial_
  Directory own_;    // the request and the records
};

}  // namespace spk
