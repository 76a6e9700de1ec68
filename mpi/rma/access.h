// Puts and gets (MPI 5.0, sections 12.3.1, 12.3.2 and 12.3.5).
//
// In memory that this process has mapped they are copies, over at once. Otherwise they are
// libferry's one-sided operations, one for each run of bytes of the target's datatype; the origin's
// data are packed before, or unpacked after, where they are no run of bytes. Private memory of
// others is reached in the ways of private_memory.h.
//
// Calling thread: that of the call. Blocks where data have to be unpacked, or the owner is asked.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "client/api/one_sided.h"
#include "mpi/base/failure.h"
#include "mpi/datatype/datatype.h"
#include "mpi/rma/operation.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// `count` elements: at `buffer`, or (it is null) at a displacement of a window.
struct Elements {
  void* buffer = nullptr;
  int64_t count = 0;
  const Datatype* type = nullptr;

  int64_t size_bytes() const { return count * type->size_bytes(); }
};

// The address from which displacements of the target's datatype count.
struct WindowAddress {
  const WindowTarget* target = nullptr;
  const Exposed* memory = nullptr;
  int rank = 0;                      // in the window
  int64_t offset = 0;                // from the beginning of the memory
  std::shared_ptr<const void> kept;  // what `memory` is a part of, in a dynamic window
};
// MPI_ERR_DISP, MPI_ERR_RMA_RANGE: some of the elements do not lie in what the target exposes.
Failure FindWindowAddress(Win& win, int rank, int64_t disp, const Elements& there,
                          WindowAddress* window_address);

// Returns the memory at `offset` from that address, as one-sided operations name it.
client::RemoteAddress RemoteAddressAt(const WindowAddress& window_address, int64_t offset);

// Returns true if the address is in private memory of another node, which operations reach while
// this process has a direct link to its owner. They return kUnsupported while it has none.
bool IsReachedByLink(const WindowAddress& window_address);

// Calls use(offset from the beginning of the target's memory, length) for each run of bytes there,
// in packed order, until one fails.
template <typename Use>
Failure ForEachRunAt(const WindowAddress& window_address, const Elements& there, Use&& use) {
  Failure failure;
  there.type->ForEachRun(there.count, 0, there.size_bytes(),
                         [&](int64_t displacement, int64_t length) {
                           if (failure.ok()) {
                             failure = use(window_address.offset + displacement, length);
                           }
                         });
  return failure;
}

// Carry out MPI_Put and MPI_Get, of as many bytes at both sides. Operations that are under way
// afterwards are in the context of `operation`, if it is given; *is_over: none is under way.
Failure Put(Win& win, const WindowAddress& window_address, const Elements& here,
            const Elements& there, Operation* operation, bool* is_over);
Failure Get(Win& win, const WindowAddress& window_address, const Elements& here,
            const Elements& there, const Ref<Operation>& operation, bool* is_over);

}  // namespace ferry::mpi
