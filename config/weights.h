// Reads the text of an option that gives ranks, or users, weights: "RANK:WEIGHT,...", such as
// "0:4,7:2". Empty: no weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/status.h"

namespace ferry::config {

// Returns the weights by number. `whose` says what the numbers name: "rank" or "uid".
// kConfiguration says which part of the text is wrong, and why.
StatusOr<std::map<uint32_t, uint32_t>> ParseWeights(const std::string& text,
                                                    const std::string& whose);

}  // namespace ferry::config
