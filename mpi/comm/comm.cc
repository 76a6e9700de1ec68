#include "mpi/comm/comm.h"

#include "mpi/info/memory_kinds.h"

namespace ferry::mpi {

std::vector<Info::Entry> DefaultHints() {
  return {{"mpi_assert_no_any_tag", "false"},
          {"mpi_assert_no_any_source", "false"},
          {"mpi_assert_exact_length", "false"},
          {"mpi_assert_allow_overtaking", "false"}};
}

std::vector<Info::Entry> WithHints(std::vector<Info::Entry> hints,
                                   const std::vector<Info::Entry>& given,
                                   const MemoryKinds& kinds) {
  TakeAssertedKinds(given, kinds, &hints);
  for (const Info::Entry& wish : given) {
    for (Info::Entry& hint : hints) {
      if (hint.first == wish.first && (wish.second == "true" || wish.second == "false")) {
        hint.second = wish.second;
      }
    }
  }
  return hints;
}

Failure ContextIds::Make(uint32_t count, uint32_t* first) {
  uint64_t made = made_.load(std::memory_order_relaxed);
  uint64_t begin = 0;
  do {
    begin = first_ + made * step_;
    if (count > 0 && begin + (uint64_t{count} - 1) * step_ >= kNumberLimit) {
      return Failure{MPI_ERR_INTERN, "this process has made " + std::to_string(made) +
                                         " communicators, and has no number for " +
                                         std::to_string(count) + " more"};
    }
  } while (!made_.compare_exchange_weak(made, made + count, std::memory_order_relaxed));
  *first = static_cast<uint32_t>(begin);
  return Failure{};
}

}  // namespace ferry::mpi
