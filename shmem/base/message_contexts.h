// The contexts of OpenSHMEM's messages between PEs: the upper half of libferry's 32 bits. MPI's
// communicators have the lower one (mpi/comm/context_ids.h), with the exception of the
// context of the exchanges at the beginning, which they leave free.
//
//   exchanges at shmem_init       one of the contexts that MPI reserves
//   SHMEM_TEAM_WORLD              kFirstContext
//   other teams                   numbers of their own: the first PE of a team makes its number,
//                                 and tells the others; PE r of n makes r, r + n, r + 2 n, ...
//   active sets a hash of the set, which each PE computes by itself
//
// Two active sets may have one hash. That is harmless: their collectives block, and a pair of PEs
// that is in both calls them in one order, in which libferry keeps the messages of the pair.
//
// Pure functions and constants: any thread.
#pragma once

#include <cstdint>

namespace ferry::shmem {

inline constexpr uint32_t kExchangeContext = 4 * 8;  // number 4 of context_ids.h
inline constexpr uint32_t kFirstContext = uint32_t{1} << 31;
inline constexpr uint32_t kWorldContext = kFirstContext;
inline constexpr uint32_t kFirstTeamContext = kFirstContext + 1;
inline constexpr uint32_t kActiveSetContexts = uint32_t{1} << 30;  // the last ones
inline constexpr uint32_t kFirstActiveSetContext = kFirstContext + kActiveSetContexts;
static_assert(kFirstActiveSetContext + (kActiveSetContexts - 1) == UINT32_MAX);

// Returns the context of a team by its number; 0: all are used up.
constexpr uint32_t TeamContext(uint64_t number) {
  return number < kFirstActiveSetContext - kFirstTeamContext
             ? kFirstTeamContext + static_cast<uint32_t>(number)
             : 0;
}

constexpr uint32_t ActiveSetContext(int start, int stride, int count) {
  uint64_t hash = 0;
  for (const int part : {start, stride, count}) {
    hash = (hash ^ static_cast<uint32_t>(part)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return kFirstActiveSetContext + static_cast<uint32_t>(hash % kActiveSetContexts);
}

}  // namespace ferry::shmem
