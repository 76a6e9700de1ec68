// The text of an option that weighs ranks, or users: "RANK:WEIGHT,...", such as "0:4,7:2". Empty:
// none.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/status.h"

namespace ferry::config {

// The weights by number. `whose` ("rank", "uid") is what the numbers name. kConfiguration says
// which part is wrong, and why.
StatusOr<std::map<uint32_t, uint32_t>> ParseWeights(const std::string& text,
                                                    const std::string& whose);

}  // namespace ferry::config
