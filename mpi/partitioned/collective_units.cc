#include "mpi/partitioned/collective_units.h"

#include <algorithm>

namespace ferry::mpi {

Units CutCollective(int partitions, uint64_t partition_bytes, uint64_t least_bytes,
                    const UnitLimits& limits) {
  const uint64_t bytes = limits.min_bytes == 0 ? least_bytes : limits.min_bytes;
  const uint64_t most = limits.max_units == UnitLimits().max_units
                            ? kUnitsOfCollectives
                            : std::min(uint64_t{limits.max_units}, kMostUnitsOfCollectives);
  const auto all = static_cast<uint64_t>(partitions);
  // Empty partitions cost nothing: they need no company.
  const uint64_t by_size = partition_bytes == 0 ? 1 : (bytes - 1) / partition_bytes + 1;
  const uint64_t per_unit =
      std::min({std::max(by_size, (all - 1) / most + 1), all, uint64_t{kPartitionsPerUnit}});
  return {.partitions = static_cast<uint32_t>(partitions),
          .per_unit = static_cast<uint32_t>(per_unit),
          .partition_bytes = partition_bytes};
}

}  // namespace ferry::mpi
