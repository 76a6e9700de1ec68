// Checks the data that a collective call names, and binds them to the program's memory; fills in
// both sides of a collective of an intercommunicator (MPI 5.0, sections 6.2.2 and 6.2.3).
//
// For the files of this folder that describe collectives. Calling thread: the program's.
#pragma once

#include <vector>

#include "mpi/api/collective_call.h"

namespace ferry::mpi {

// `count` elements, or as many for each rank, as a program passes them.
struct Run {
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  const char* type_name;  // of the argument
};

// Checks the data and binds them, `times` times as long. Stores the bytes of one time.
Failure Bind(const Run& run, int times, CollectiveBuffer* buffer, size_t* bytes);
// Binds the data that a rank sends to all, or to the root.
Failure BindOwnInput(const Run& send, CollectiveOperation* operation, size_t* bytes);

// Blocks of their own counts and places: one datatype, or one each.
struct Blocks {
  const void* buffer;
  Numbers counts;
  Numbers displacements;
  MPI_Datatype datatype;          // of all
  const MPI_Datatype* datatypes;  // or one each: displacements are in bytes then
  const char* name;               // "send" or "recv"
};

// Binds `count` blocks, and stores where each lies.
Failure BindBlocks(const Run& run, int count, CollectiveBuffer* buffer,
                   std::vector<collective::Block>* places);
Failure BindBlocks(const Blocks& blocks, int count, CollectiveBuffer* buffer,
                   std::vector<collective::Block>* places);
std::vector<collective::Block> InARow(int count, size_t block_bytes);
// Blocks [first, first + count) of all that were bound.
inline Portion PortionOf(const Run& run, int64_t first, int64_t count) {
  return {first * run.count, count * run.count};
}
inline Portion PortionOf(const Blocks&, int64_t first, int64_t count) { return {first, count}; }
// Returns the address by which two buffers are found to be the same: the beginning of the run, or
// that of the i-th block. Only after BindBlocks.
inline const void* AddressOf(const Run& run, int) { return run.buffer; }
const void* AddressOf(const Blocks& blocks, int i);

// Checks that a rank sends to itself as much as it receives from itself.
Failure CheckOwn(size_t sent, size_t received);

// ---- Intercommunicators -------------------------------------------------------------------------

// Fills in the ranks of both sides, for collectives without a root.
Failure DescribeInter(const Comm& comm, CollectiveOperation* operation);
// Fills in the ranks of both sides, and the root: `root` is MPI_ROOT at the root, MPI_PROC_NULL at
// the other ranks of its group, its rank in the other group. MPI_ERR_ROOT.
Failure DescribeInter(const Comm& comm, int root, CollectiveOperation* operation);

}  // namespace ferry::mpi
