// Rules of a selection table as text, so that they can be measured, kept and changed.
//
// The text is a TOML file of [[rule]] tables, of which only these keys are understood:
//
//   [[rule]]
//   collective = "allreduce"     # and algorithm: must be there
//   algorithm = "direct"
//   max_bytes = 65536            # the rest: absent means any
//   max_ranks = 8
//   nodes = "one_node"           # "one_node", "spread", "mixed" or "any"
//   segment_bytes = 131072
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "coll/algorithms/selection.h"
#include "common/status.h"

namespace ferry::collective {

// `name` is the file's, for messages. kConfiguration names the wrong line, and what is allowed
// there.
StatusOr<std::vector<SelectionRule>> ParseSelectionRules(std::string_view text,
                                                         std::string_view name);
// Returns the text that ParseSelectionRules reads back as the same rules.
std::string FormatSelectionRules(const std::vector<SelectionRule>& rules);

// "allreduce=ring,bcast=chain:131072": one algorithm for each of these collectives, whatever the
// size, with the segment behind a colon. Parses one algorithm for each collective named. Errors as
// of ParseSelectionRules; `where` opens their texts.
StatusOr<std::vector<SelectionRule>> ParseAlgorithmNames(std::string_view text,
                                                         std::string_view where);

}  // namespace ferry::collective
