// The short forms in which batch systems write hosts and numbers: "n[1-3,07-10]c[0-1],login" of
// Slurm and Flux, "2(x3),1" of Slurm, "0-3,5" of Flux.
//
// Pure functions; any thread. Errors: kInvalidArgument, which quotes the text. No text makes more
// than kMostNodes names, however much its ranges promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// More nodes than any machine has.
inline constexpr size_t kMostNodes = 100'000;

// Returns the names of a list: words separated by commas, in each of which every [...] stands for
// its numbers and ranges, in turn. A number is as wide as the first of its range: [08-10] is 08,
// 09,
// 10. An empty text is no list.
StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text);

// Returns the numbers of a list such as "2(x3),1", which is 2, 2, 2, 1: each at least 1, and
// `count` of them, which is at most kMostNodes.
StatusOr<std::vector<uint64_t>> ExpandCounts(std::string_view text, size_t count);

// Returns the numbers of a list such as "0-3,5", in its order.
StatusOr<std::vector<uint64_t>> ExpandIds(std::string_view text);

// Returns a list of these names, as short as their order lets it be: those that follow each other
// and differ only in the number at their end are one word, "n[1-3,7]". ExpandNodeList gives them
// back.
std::string ShortNodeList(const std::vector<std::string>& names);

// Returns the text in quotes, and no more of it than a message should hold.
std::string Quote(std::string_view text);

}  // namespace ferry::tools
