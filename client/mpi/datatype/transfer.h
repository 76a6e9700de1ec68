// Moves the bytes that a layout describes: memory to packed, packed to memory.
//
// `buffer` is what displacements count from. It may be null with displacements that are addresses
// (MPI_BOTTOM). Host memory only; for other memory ForEachLayoutRun says what lies where.
//
// For this folder: others use Datatype. Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>

#include "client/mpi/datatype/layout.h"

namespace ferry::mpi {

// Packed bytes [offset, offset + bytes) of the layout, which it must have.
void PackLayout(const LayoutNode& layout, const void* buffer, int64_t offset, int64_t bytes,
                void* packed);
void UnpackLayout(const LayoutNode& layout, void* buffer, int64_t offset, int64_t bytes,
                  const void* packed);

// run(context, displacement, length) for each piece of the packed bytes [offset, offset + bytes),
// in packed order; pieces that follow one another in memory are one.
using LayoutRun = void (*)(void* context, int64_t displacement, int64_t length);
void ForEachLayoutRun(const LayoutNode& layout, int64_t offset, int64_t bytes, LayoutRun run,
                      void* context);

}  // namespace ferry::mpi
