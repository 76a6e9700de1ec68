#include "client/mpi/comm/hints.h"

namespace ferry::mpi {

std::vector<Info::Entry> DefaultHints() {
  return {{"mpi_assert_no_any_tag", "false"},
          {"mpi_assert_no_any_source", "false"},
          {"mpi_assert_exact_length", "false"},
          {"mpi_assert_allow_overtaking", "false"}};
}

std::vector<Info::Entry> WithHints(std::vector<Info::Entry> hints,
                                   const std::vector<Info::Entry>& given) {
  for (const Info::Entry& wish : given) {
    for (Info::Entry& hint : hints) {
      if (hint.first == wish.first && (wish.second == "true" || wish.second == "false")) {
        hint.second = wish.second;
      }
    }
  }
  return hints;
}

}  // namespace ferry::mpi
