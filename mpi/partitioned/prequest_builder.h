// Makes the parts of a Prequest: chooses the mover of units that kernels have readied, and places
// the Prequest in memory. Calling thread: any. Blocks on the daemon.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/partitioned/prequest_parts.h"

namespace ferry::mpi {

// Returns the values that the counters of the plan's units have when the round begins.
std::vector<uint64_t> CountersAt(const PrequestPlan& plan, uint64_t round);
// Copies bytes to the device's memory, which `memory` describes.
Failure StoreOnDevice(const DeviceBlock& memory, void* to, const void* from, uint64_t size_bytes);

class PrequestBuilder {
 public:
  // All outlive the builder.
  PrequestBuilder(const PrequestPlan& plan, int device, PrequestParts* parts)
      : plan_(plan), device_(device), parts_(*parts) {}

  // Fills in the parts. MPI_ERR_UNSUPPORTED_OPERATION, with the reason; MPI_ERR_NO_MEM. Also after
  // a failure the caller gives back the memory that the parts have.
  Failure Build(const PrequestWishes& wishes);

 private:
  Failure ChooseWay(const PrequestWishes& wishes);
  Failure FindKernelWay() const;
  Failure FindDaemonWay();
  Failure Allocate();
  uint64_t BytesToFill() const;
  void Describe(MPIX_Prequest_object* object) const;
  Failure Fill();

  const PrequestPlan& plan_;
  const int device_;
  PrequestParts& parts_;
};

}  // namespace ferry::mpi
