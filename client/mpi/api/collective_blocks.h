// Checks the blocks that a collective call names, and binds them to the program's memory.
//
// For the files of this folder that describe collectives. Calling thread: the program's.
#pragma once

#include <vector>

#include "client/mpi/api/collective_call.h"

namespace ferry::mpi {

// A buffer of `count` elements as a program passes it.
struct Run {
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  const char* type_name;  // of the argument
};

// Checks it and binds it, `times` times as long. Returns its bytes (of one time).
Failure Bind(const Run& run, int times, CollectiveBuffer* buffer, size_t* bytes);

// Blocks of their own counts and places: one datatype, or one each.
struct Blocks {
  const void* buffer;
  Numbers counts;
  Numbers displacements;
  MPI_Datatype datatype;          // of all
  const MPI_Datatype* datatypes;  // or one each: displacements are in bytes then
  const char* name;               // "send" or "recv"
};

// Where the i-th one begins. Only after Bind.
const void* AddressOf(const Blocks& blocks, int i);

Failure Bind(const Blocks& blocks, int size, CollectiveBuffer* buffer, std::vector<Block>* places);

// Checks that a rank sends to itself as much as it receives from itself.
Failure CheckOwn(size_t sent, size_t received);

}  // namespace ferry::mpi
