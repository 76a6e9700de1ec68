// The portable representation "external32" (MPI 5.0, section 15.5.2): big-endian, IEEE formats,
// sizes that are the same everywhere, nothing aligned.
//
// Units: bytes; signature().external_bytes of a datatype is what an element takes. Buffers are host
// memory. Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>

#include "mpi/base/failure.h"
#include "mpi/datatype/datatype.h"

namespace ferry::mpi {

// MPI_ERR_CONVERSION: a long or a wide character does not fit into what external32 has for it; the
// text says which. The buffer is then partly written.
Failure PackExternal(const void* buffer, int64_t count, const Datatype& type, void* external);
void UnpackExternal(const void* external, void* buffer, int64_t count, const Datatype& type);

// As PackExternal and UnpackExternal, of data that are packed: without gaps, in the machine's own
// representation. The second converts whole basic elements, as far as `external_bytes` reach, and
// returns the packed bytes that they are.
Failure PackedToExternal(const void* packed, int64_t count, const Datatype& type, void* external);
int64_t ExternalToPacked(const void* external, int64_t external_bytes, int64_t count,
                         const Datatype& type, void* packed);

}  // namespace ferry::mpi
