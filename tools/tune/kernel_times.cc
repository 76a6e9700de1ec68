#include "tools/tune/kernel_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>

namespace ferry::tools {
namespace {

// The gain by which ferryd replaces stores: less is noise.
constexpr double kWorthIt = 0.95;

uint64_t Between(uint64_t size, uint64_t next) {
  return static_cast<uint64_t>(std::sqrt(static_cast<double>(size) * static_cast<double>(next)));
}

bool AreOfOneCrew(const KernelComparison& a, const KernelComparison& b) {
  return a.which.operation == b.which.operation && a.which.threads == b.which.threads;
}

// Of one crew, by size.
uint64_t CutoverOf(std::span<const KernelComparison> comparisons) {
  uint64_t cutover = FERRY_SHMEM_NEVER;
  for (size_t i = comparisons.size(); i-- > 0;) {
    const KernelComparison& one = comparisons[i];
    if (one.ferryd_ns >= kWorthIt * one.stores_ns) {
      break;
    }
    cutover = i == 0 ? one.which.size_bytes
                     : Between(comparisons[i - 1].which.size_bytes, one.which.size_bytes);
  }
  return cutover;
}

}  // namespace

StatusOr<KernelTimes> ReadKernelTimes(std::string_view text) {
  KernelTimes times;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    KernelCase which;
    double ns = 0;
    std::string rest;
    words >> name >> which.threads >> which.size_bytes >> ns;
    if (!words || words >> rest || (name != "put" && name != "get") || which.threads == 0 ||
        !(ns > 0)) {
      return Status(ErrorCode::kCorrupt,
                    "ferry-kernel-meter said \"" + line + "\", which means nothing");
    }
    which.operation = name == "put" ? FERRY_SHMEM_PUT : FERRY_SHMEM_GET;
    times[which] = ns;
  }
  return times;
}

void KeepShorter(const KernelTimes& more, KernelTimes* times) {
  for (const auto& [which, ns] : more) {
    const auto [known, is_new] = times->emplace(which, ns);
    known->second = std::min(known->second, ns);
  }
}

std::vector<KernelComparison> CompareKernels(const KernelTimes& stores, const KernelTimes& ferryd) {
  std::vector<KernelComparison> comparisons;
  for (const auto& [which, ns] : stores) {
    const auto other = ferryd.find(which);
    if (other != ferryd.end()) {
      comparisons.push_back({.which = which, .stores_ns = ns, .ferryd_ns = other->second});
    }
  }
  return comparisons;
}

shmem::Cutovers CutoversFrom(std::span<const KernelComparison> comparisons) {
  shmem::Cutovers cutovers = shmem::NoCutovers();
  while (!comparisons.empty()) {
    size_t count = 1;
    while (count < comparisons.size() && AreOfOneCrew(comparisons[0], comparisons[count])) {
      ++count;
    }
    const KernelCase& which = comparisons[0].which;
    auto& rows = cutovers[static_cast<size_t>(which.operation)];
    const size_t row = std::min<size_t>(std::bit_width(which.threads) - 1, rows.size() - 1);
    std::fill(rows.begin() + static_cast<ptrdiff_t>(row), rows.end(),
              CutoverOf(comparisons.first(count)));
    comparisons = comparisons.subspan(count);
  }
  return cutovers;
}

}  // namespace ferry::tools
