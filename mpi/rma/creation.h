// Makes windows, and ends them (MPI 5.0, section 12.2).
//
// Both calls are collective over the communicator, and block. All members tell each other the
// memory that they expose; a member whose arguments are wrong, or that has no memory, tells that,
// too, so that the call fails on all of them. Calling thread: any, one at a time for one
// communicator.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/comm/comm.h"
#include "mpi/info/info.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

struct WindowWish {
  int flavor = MPI_WIN_FLAVOR_ALLOCATE;  // or CREATE, SHARED, DYNAMIC
  void* base = nullptr;                  // MPI_WIN_FLAVOR_CREATE
  int64_t size_bytes = 0;
  int64_t disp_unit = 1;
  const Info* info = nullptr;  // may be null
  // Why the caller's arguments are wrong, if they are.
  Failure refused;
};

// Makes a window, and stores the address of this process's memory in *base. MPI_ERR_RMA_SHARED:
// MPI_WIN_FLAVOR_SHARED, and not all members are on one node.
Result<Ref<Win>> MakeWindow(const Comm& comm, const WindowWish& wish, void** base);

// Ends the window's operations, meets all other processes, and frees the window's memory. Call it
// before the last reference to the window is dropped. MPI_ERR_RMA_SYNC: an epoch is open, and the
// window stays. Other failures: a rank is gone, and the window's memory stays where it is.
Failure EndWindow(Win& win);

}  // namespace ferry::mpi
