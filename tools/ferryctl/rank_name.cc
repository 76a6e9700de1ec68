#include "tools/ferryctl/rank_name.h"

#include <charconv>
#include <system_error>

namespace ferry::tools {

StatusOr<RankName> ParseRankName(std::string_view text) {
  RankName name;
  const size_t dot = text.rfind('.');  // the job's own name may hold dots
  if (dot != text.npos && dot > 0) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + dot + 1, end, name.rank);
    if (error == std::errc() && stop == end && name.rank <= INT32_MAX) {
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
