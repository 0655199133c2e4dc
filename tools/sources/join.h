// A source of any kind with what a table says of its samples: see sources/join_table.h.
//
// Samples and rows find each other by sorting both by key, so memory is bounded however many there
// are. Entries are handed out in the order of keys, with the ordinals that the inner source gave.
#pragma once

#include <memory>

#include "sources/join_table.h"
#include "sources/source.h"

namespace spk {

class JoinSource : public Source {
 public:
  // Reads the table's header. SPOOL: where to sort; without one, where temporary files go.
  static Result<std::unique_ptr<Source>> around(std::unique_ptr<Source> inner,
                                                const PackOptions& options,
                                                std::shared_ptr<Spool> spool);

  bool lists_in_order() const override { return inner_->lists_in_order(); }
  Result<Listing> list(const PackOptions& options, const Sink& sink) override;
  Result<std::unique_ptr<SampleHandle>> open(const SampleEntry& entry) const override;

 private:
  class Collector;
  class Merger;
  JoinSource(std::unique_ptr<Source> inner, std::unique_ptr<JoinTable> table,
             std::shared_ptr<Spool> spool)
      : inner_(std::move(inner)), table_(std::move(table)), spool_(std::move(spool)) {}

  std::unique_ptr<Source> inner_;
  std::unique_ptr<JoinTable> table_;
  std::shared_ptr<Spool> spool_;
  // A column may become a text: entries then carry texts in their places. Told by header and
  // options alone, so that a process that never listed opens entries as well.
  bool carries_texts_ = false;
};

}  // namespace spk
