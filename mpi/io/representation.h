// Data representations of files that are not the machine's own (MPI 5.0, section 14.5):
// "external32", and those that a program registers.
//
// A view with one of them has the etype and the filetype as they are in the file, where elements
// have other sizes: byte displacements and bounds that a program gave stay, extents follow the
// elements. Transfers convert all of a call's data at once, in host memory.
//
// Units: bytes. Calling thread: any. Nothing blocks, but functions of the program may.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/datatype/datatype.h"
#include "mpi/p2p/payload.h"

namespace ferry::mpi {

// A representation that a program has registered, for the life of the process.
struct Datarep {
  std::string name;
  // One of each two is set; none: the program gave MPI_CONVERSION_FN_NULL.
  MPI_Datarep_conversion_function* read = nullptr;
  MPI_Datarep_conversion_function* write = nullptr;
  MPI_Datarep_conversion_function_c* read_c = nullptr;
  MPI_Datarep_conversion_function_c* write_c = nullptr;
  MPI_Datarep_extent_function* extent = nullptr;
  void* extra_state = nullptr;
};

// MPI_ERR_DUP_DATAREP: the name is one of MPI's, or was registered before.
Failure RegisterDatarep(Datarep datarep);
// Null: none has that name. The result lives as long as the process.
const Datarep* FindDatarep(const std::string& name);

// Returns the datatype that has the places of `type`'s data in a file of "external32", or of the
// representation `datarep` unless that is null. Committed. MPI_ERR_ARG: its sizes do not fit into
// 63 bits. MPI_ERR_CONVERSION: the program's function failed.
Result<Ref<Datatype>> TypeInFile(Datatype& type, const Datarep* datarep);

// The data of a call in memory, and how a file has them.
struct Conversion {
  const Datarep* datarep = nullptr;  // null: "external32"
  void* buffer = nullptr;            // of the program
  int64_t count = 0;
  Ref<const Datatype> type;
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  int64_t file_bytes = 0;  // of one element of `type`, in the file
};

// Convert between the program's memory, as `payload` describes it too, and the bytes of a file, one
// behind the other. The second converts what is whole in `bytes`; *moved: the bytes in memory.
// MPI_ERR_CONVERSION, MPI_ERR_NO_MEM.
Failure ConvertForFile(const Conversion& conversion, const Payload& payload, std::byte* file_data);
Failure ConvertFromFile(const Conversion& conversion, const Payload& payload,
                        const std::byte* file_data, int64_t bytes, int64_t* moved);

}  // namespace ferry::mpi
