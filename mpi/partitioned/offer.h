// Offer: the one message by which a partitioned send and a partitioned receive are paired. The
// sender sends it with the program's tag, on a context that the communicator has for offers. So the
// inits pair in the order of their calls, as messages and receives do.
//
// Layout only.
#pragma once

#include <cstdint>

#include "mpi/partitioned/units.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

struct Offer {
  static constexpr uint64_t kMagic = 0x3270'6672'7265'7466;

  uint64_t magic = kMagic;
  uint32_t partitions = 0;
  uint32_t per_unit = 0;
  uint32_t pieces = 0;
  uint32_t reserved = 0;
  uint64_t partition_bytes = 0;
  shm::Location block{};     // the SenderBlock
  shm::Location data{};      // the sender's buffer
  uint64_t is_readable = 0;  // ranks of the node may take ready parts from `data`

  // Returns true if the values are possible in a sender's offer.
  bool IsSound() const {
    return magic == kMagic && partitions != 0 && partitions <= INT32_MAX && per_unit != 0 &&
           per_unit <= kPartitionsPerUnit && pieces != 0 && pieces <= kPartitionsPerUnit &&
           (pieces == 1 || (per_unit == 1 && partition_bytes != 0)) &&
           partition_bytes <= static_cast<uint64_t>(INT64_MAX) / partitions;
  }
  Units units() const { return {partitions, per_unit, partition_bytes, pieces}; }
};

}  // namespace ferry::mpi
