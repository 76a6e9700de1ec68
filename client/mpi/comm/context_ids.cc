#include "client/mpi/comm/context_ids.h"

#include <string>

namespace ferry::mpi {

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
