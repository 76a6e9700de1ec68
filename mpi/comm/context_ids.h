// Numbers that tell the messages of one communicator from those of all others.
//
// A communicator has a *number*, and eight contexts of libferry's 32-bit space, which begin at
// eight times that number: one for each kind of traffic that must not meet another.
//
// Numbers are made, not agreed on: process r of w makes r, r + w, r + 2 w, ... (above a few that
// are reserved) and tells the other members of the new communicator. So no two communicators of a
// job ever have the same number, even if several processes make them at the same time on any
// groups, and making one takes a single broadcast in its group. Numbers are not used again: a
// member may still have messages of a communicator that others have freed.
#pragma once

#include <atomic>
#include <cstdint>

#include "mpi/base/failure.h"

namespace ferry::mpi {

// Kinds of traffic of one communicator.
enum class Traffic : uint32_t {
  kPointToPoint = 0,
  kCollective = 1,
  kAgreement = 2,      // agreement on communicators made of it, boards, long waits
  kGroupCreation = 3,  // MPI_Comm_create_group: only some members, told apart by tags
  kLeaders = 4,        // MPI_Intercomm_create through this one as the bridge, by tags
  kIdup = 5,           // numbers of communicators that MPI_Comm_idup makes
  kPartitioned = 6,
  kFromGroup = 7,  // of MPI_COMM_WORLD: communicators made of groups alone, by tags
};

inline constexpr uint32_t kContextsPerCommunicator = 8;
// libferry's own contexts lie in number 0.
inline constexpr uint32_t kWorldNumber = 1;
inline constexpr uint32_t kSelfNumber = 2;
// The number of a communicator that has none yet, or never got one.
inline constexpr uint32_t kUnusableNumber = 3;
inline constexpr uint32_t kReservedNumbers = 16;
// The contexts of smaller numbers are the lower half of 32 bits; OpenSHMEM has the upper one
// (shmem/base/message_contexts.h).
inline constexpr uint32_t kNumberLimit = uint32_t{1} << 28;

// The context of `traffic` in the communicator `number`.
inline constexpr uint32_t ContextOf(uint32_t number, Traffic traffic) {
  return number * kContextsPerCommunicator + static_cast<uint32_t>(traffic);
}

// The numbers that one process makes. Calling thread: any; does not block.
class ContextIds {
 public:
  // `size` at least 1, `rank` below it.
  ContextIds(int rank, int size)
      : step_(static_cast<uint32_t>(size)),
        first_(kReservedNumbers + static_cast<uint32_t>(rank)) {}

  // The difference between numbers that one call of Make makes.
  uint32_t step() const { return step_; }
  // Makes `count` numbers: *first, *first + step(), ... MPI_ERR_INTERN when this process has none
  // left.
  Failure Make(uint32_t count, uint32_t* first);

 private:
  const uint32_t step_;
  const uint32_t first_;
  std::atomic<uint64_t> made_{0};
};

}  // namespace ferry::mpi
