#include "tools/ferryctl/rank_name.h"

#include "common/number_text.h"

namespace ferry::tools {

StatusOr<RankName> ParseRankName(std::string_view text) {
  RankName name;
  const size_t dot = text.rfind('.');  // the job's own name may hold dots
  if (dot != text.npos && dot > 0) {
    const auto rank = NumberIn<decltype(name.rank)>(text.substr(dot + 1));
    if (rank && *rank <= INT32_MAX) {
      name.rank = *rank;
      name.job_id = text.substr(0, dot);
      return name;
    }
  }
  return Status(ErrorCode::kInvalidArgument,
                "\"" + std::string(text) +
                    "\" names no rank: write JOB.RANK, such as 1f2e3d.0 (ferryctl sessions lists "
                    "them)");
}

}  // namespace ferry::tools
