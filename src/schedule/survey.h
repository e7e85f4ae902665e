// The survey of a group: it is lowered once over its plain domain, one loop per dimension, to see every access. From
// that a nest is made.
//
// A survey can grow. Fusion adds one root after another to a group and asks each time whether the whole still is one
// nest; a root that comes last is lowered by itself then, so that a group costs its roots and not their square.
#pragma once

#include "lowering.h"
#include "nest.h"

namespace tenon::schedule {

class Survey {
 public:
  // Throws `Refused` if the group is no loop nest.
  Survey(const Schedule& schedule, Group group);
  Survey(const Survey&) = delete;

  const std::vector<Stage>& stages() const { return nest_.stages; }
  // Axes and stages alone, dimensions not merged; nothing where that would tell other sizes than the nest does.
  std::optional<Nest> outline() const;

  // Adds the root by which `joined` is more than this group. False where that cannot be told by itself: then, and after
  // `Refused`, the survey is of no use any more, and the group is surveyed anew.
  bool grow(const Group& joined);

  // Takes what was seen.
  Nest nest();

 private:
  struct StageSurvey {
    std::vector<Expr> coordinates;
    std::vector<ValueId> kept_stores;
  };
  struct Measured {
    Reused value;
    int32_t begin, end;  // values of the kernel that were made for it
  };

  void begin_stage();
  void end_stage();
  void survey_root(ValueId root);
  bool is_reused(ValueId id, int stage);
  bool reads(ValueId from, ValueId wanted) const;
  const loop::Block& innermost();
  void collect();
  void collect(const loop::Statement& statement);
  bool belongs_outside(size_t a, size_t b) const;
  void order_dimensions();
  bool mergeable(size_t outer, size_t inner);
  void merge_dimensions();

  Group group_;
  Lowering lowering_;
  Nest nest_;
  std::vector<StageSurvey> stages_;
  size_t collected_ = 0;  // statements of the innermost scope
  std::vector<Measured> reused_;
  std::set<int32_t> indirect_;  // symbols that are bound to data
  std::vector<size_t> order_;
};

}  // namespace tenon::schedule
