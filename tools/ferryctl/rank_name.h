// RankName: a rank as users name it, JOB.RANK, which `ferryctl sessions` shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace ferry::tools {

struct RankName {
  std::string job_id;
  uint32_t rank = 0;
};

// Reads a rank's name. kInvalidArgument when `text` is not of that form. Any thread.
StatusOr<RankName> ParseRankName(std::string_view text);

}  // namespace ferry::tools
