// The description from which a Prequest is made, and the parts that it consists of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ferry/device/partitioned/prequest.h"
#include "mpi/partitioned/blocks.h"
#include "mpi/partitioned/device_blocks.h"
#include "mpi/partitioned/device_ring.h"
#include "mpi/partitioned/units.h"
#include "mpi/partitioned/words.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

// The description of a matched request from which a Prequest is made.
struct PrequestPlan {
  bool is_send = true;         // kernels ready its partitions
  bool is_collective = false;  // hosts move its units, and arrivals are counted in the same units
  Units units;                 // the sender's
  uint32_t partitions = 1;     // of this side
  uint64_t round = 0;          // the last one
  uint32_t peer = 0;           // a rank of the job
  bool is_local = true;
  bool is_null = false;  // there is no other side, and nothing moves

  // For a send:
  std::byte* source = nullptr;
  bool is_packed = false;  // the host packs the data first
  SenderWords words;
  shm::Location destination{};
  std::byte* destination_mapped = nullptr;  // local, and in memory that can be mapped
  bool is_destination_by_stream = false;
  shm::Location receiver_block{};
  std::byte* receiver_mapped = nullptr;  // local

  // For a receive, and for a collective with results:
  uint64_t* arrived = nullptr;  // null: data come to other memory first, or none come
};

// The program's wishes, from info keys (mpix_partitioned.h).
struct PrequestWishes {
  enum class Copy : uint8_t { kAuto, kKernel, kHost, kDaemon };
  Copy copy = Copy::kAuto;
  std::optional<uint64_t> kernel_max_bytes;  // nullopt: the best value for the device
};

// The memory of a Prequest, and the way in which its units move.
struct PrequestParts {
  uint32_t way = FERRY_PARTITIONED_BY_HOST;
  bool has_atomics = false;  // of its kernels with the host
  bool on_cpus = false;      // its kernels run there
  bool leaves_to_waiting = false;
  DeviceBlock memory;
  Block state;
  std::shared_ptr<DeviceRing> ring;
  shm::Location source{};  // by daemon copy
};

}  // namespace ferry::mpi
