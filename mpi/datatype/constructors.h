// The constructors of derived datatypes (MPI 5.0, sections 5.1.2 to 5.1.5 and 5.1.8 to 5.1.9).
// Those that take counts as int and those that take MPI_Count share these; `form` says which one it
// was, as MPI_Type_get_contents tells.
//
// Arrays have the lengths that the standard gives them; the caller has seen to it. Everything else
// is checked here: the errors are MPI_ERR_COUNT for a negative count, MPI_ERR_ARG for other values
// out of range, for sizes and displacements that do not fit into 63 bits, and for types nested more
// than kMaxDatatypeDepth deep.
//
// Displacements and strides are in bytes where MPI says so (h... and struct), otherwise in extents
// of the old type. The new datatypes are not committed, but for a duplicate of a committed one.
// Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

enum class CountForm : uint8_t { kInt, kLarge };

inline constexpr int kMaxDatatypeDepth = 2000;

using MadeDatatype = Result<Ref<Datatype>>;
using Counts = std::vector<int64_t>;

MadeDatatype MakeContiguous(CountForm form, int64_t count, Datatype& old);
MadeDatatype MakeVector(CountForm form, int64_t count, int64_t blocklength, int64_t stride,
                        Datatype& old);
MadeDatatype MakeHvector(CountForm form, int64_t count, int64_t blocklength, int64_t stride_bytes,
                         Datatype& old);
MadeDatatype MakeIndexed(CountForm form, Counts blocklengths, Counts displacements, Datatype& old);
MadeDatatype MakeHindexed(CountForm form, Counts blocklengths, Counts displacements_bytes,
                          Datatype& old);
MadeDatatype MakeIndexedBlock(CountForm form, int64_t blocklength, Counts displacements,
                              Datatype& old);
MadeDatatype MakeHindexedBlock(CountForm form, int64_t blocklength, Counts displacements_bytes,
                               Datatype& old);
MadeDatatype MakeStruct(CountForm form, const Counts& blocklengths,
                        const Counts& displacements_bytes, const std::vector<Datatype*>& types);
// order: MPI_ORDER_C or MPI_ORDER_FORTRAN.
MadeDatatype MakeSubarray(CountForm form, const Counts& sizes, const Counts& subsizes,
                          const Counts& starts, int order, Datatype& old);

struct DarrayArguments {
  int64_t size = 0;  // processes
  int64_t rank = 0;
  Counts gsizes;
  Counts distributions;  // MPI_DISTRIBUTE_...
  Counts arguments;      // block sizes, or MPI_DISTRIBUTE_DFLT_DARG
  Counts psizes;
  int order = MPI_ORDER_C;
};
MadeDatatype MakeDarray(CountForm form, const DarrayArguments& arguments, Datatype& old);

MadeDatatype MakeResized(CountForm form, int64_t lower_bound, int64_t extent, Datatype& old);
MadeDatatype MakeDuplicate(Datatype& old);

}  // namespace ferry::mpi
