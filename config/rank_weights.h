// The text of an option that weighs ranks: "RANK:WEIGHT,...", such as "0:4,7:2". Empty: none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/status.h"

namespace ferry::config {

// By rank. kConfiguration says which part is wrong, and why.
StatusOr<std::map<uint32_t, uint32_t>> ParseRankWeights(const std::string& text);

}  // namespace ferry::config
