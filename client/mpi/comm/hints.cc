#include "client/mpi/comm/hints.h"

#include <string_view>

namespace ferry::mpi {
namespace {

constexpr std::string_view kAssertKinds = "mpi_assert_memory_alloc_kinds";

}  // namespace

std::vector<Info::Entry> DefaultHints() {
  return {{"mpi_assert_no_any_tag", "false"},
          {"mpi_assert_no_any_source", "false"},
          {"mpi_assert_exact_length", "false"},
          {"mpi_assert_allow_overtaking", "false"}};
}

std::vector<Info::Entry> WithHints(std::vector<Info::Entry> hints,
                                   const std::vector<Info::Entry>& given,
                                   const MemoryKinds& kinds) {
  for (const Info::Entry& wish : given) {
    if (wish.first == kAssertKinds && kinds.HasAll(wish.second)) {
      std::erase_if(hints, [](const Info::Entry& hint) { return hint.first == kAssertKinds; });
      hints.push_back(wish);
      continue;
    }
    for (Info::Entry& hint : hints) {
      if (hint.first == wish.first && (wish.second == "true" || wish.second == "false")) {
        hint.second = wish.second;
      }
    }
  }
  return hints;
}

}  // namespace ferry::mpi
