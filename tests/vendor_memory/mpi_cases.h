// The operations of ranks on memory that they have allocated by the vendor's calls. Each takes the
// kind of memory that this rank uses; ranks may use different ones.
#pragma once

#include <mpi.h>

#include "tests/vendor_memory/buffer.h"

#define VENDOR_OK(call) VENDOR_CHECK((call) == MPI_SUCCESS)

namespace ferry::vendor_memory {

inline int rank = -1;
inline int size = 0;

void SendAllSizes(const Kind& kind);  // every way to send, 8 B to 256 KiB
// As the benchmarks of OSU (OMB 7.4) do it with "-d cuda D D": there and back, and many at a time
// from one buffer into another, in one direction and in both.
void SendAsBenchmarks(const Kind& kind);
void SendTypes(const Kind& kind);  // vectors and structs, packed and not
void SendPartitions(const Kind& kind);
void SendByQueues(const Kind& kind);
void RunCollectives(const Kind& kind);
void RunReductions(const Kind& kind);
void RunNonblockingCollectives(const Kind& kind);
void ExchangeHalos(const Kind& kind);  // of blocks on a torus, with all neighbours
void UseWindows(const Kind& kind);
void MoveFarBlocks(const Kind& kind);       // of windows, by types with gaps
void UseWindowByThreads(const Kind& kind);  // memory of all kinds goes there
void ReuseAddresses(const Kind& kind);      // frees and allocates anew at the same address
void UseThreads(const Kind& kind);          // several threads, each with its own memory
void TouchBothSides(const Kind& kind);      // CPUs and messages in turn
// Buffers that are no good: each is named, and the program goes on.
void UseBadBuffers(const Kind& kind);

}  // namespace ferry::vendor_memory
