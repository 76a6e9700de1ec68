// The elements of accumulates (MPI 5.0, section 12.3.4): which operations they take, and how they
// lie in memory.
//
// Calling thread: any. Blocks: never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/op.h"
#include "shm/accumulate.h"

namespace ferry::mpi {

// The predefined datatype that `type` is made of, if MPI_Accumulate and its like take the operation
// for it. MPI_ERR_OP: the operation is a program's own, or not for such elements; MPI_ERR_TYPE: the
// datatype is not made of one predefined one.
Failure FindElements(const Op& op, const Datatype& type, const Datatype** elements);

// Returns the operation in the form in which it is carried out (shm/accumulate.h); nothing if it is
// not defined on such elements.
std::optional<shm::Accumulation> AccumulationOf(const Op& op, const BasicType& basic);

// Turn packed pairs into pairs that lie as in memory, with gaps (which become zeros), and back.
// `packed` has as many pairs as `laid_out`.
void LayOutPairs(const BasicType& pair, const std::byte* packed, std::vector<std::byte>* laid_out);
void PackPairs(const BasicType& pair, const std::vector<std::byte>& laid_out, std::byte* packed);

// Returns true if MPI_Compare_and_swap takes such elements (section 12.3.4).
bool IsComparable(const BasicType& type);

}  // namespace ferry::mpi
