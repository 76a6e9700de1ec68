// Reads the report of ferry-kernel-meter, line by line, and derives the cutovers that follow from
// it.
//
//   put 16 4096 812.5   operation, threads, bytes, nanoseconds of a call
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "shmem/base/cutovers.h"

namespace ferry::tools {

struct KernelCase {
  int operation = 0;  // FERRY_SHMEM_PUT or _GET
  uint32_t threads = 0;
  uint64_t size_bytes = 0;

  auto operator<=>(const KernelCase&) const = default;
};

using KernelTimes = std::map<KernelCase, double>;  // nanoseconds

// kCorrupt, with the line, for text that the meter would never write.
StatusOr<KernelTimes> ReadKernelTimes(std::string_view text);

// Keeps the shorter of both times of each case.
void KeepShorter(const KernelTimes& more, KernelTimes* times);

struct KernelComparison {
  KernelCase which;
  double stores_ns = 0;
  double ferryd_ns = 0;
};
// Compares the cases that were measured both ways, in the order of KernelCase.
std::vector<KernelComparison> CompareKernels(const KernelTimes& stores, const KernelTimes& ferryd);

// Returns the cutovers for these times. ferryd is asked from the size on from which it was faster,
// by 5 % at least, at all sizes that were measured; the cutover lies halfway, in powers, between
// that size and the one before it. Crews of other numbers of threads do as the next smaller one
// that was measured.
shmem::Cutovers CutoversFrom(std::span<const KernelComparison> comparisons);

}  // namespace ferry::tools
