/* Patterns of pairs: each rank of the first half with one of the second, so that the two of a pair
 * live on different nodes where there are two. */
#ifndef BENCHMARKS_MPI_PAIR_H_
#define BENCHMARKS_MPI_PAIR_H_

#include "benchmarks/mpi/pattern.h"

enum { kMaxWindow = 64, kMinWindow = 8, kWindowBytes = 16 << 20 };

static inline int Leads(const Side* side) { return side->rank < side->ranks / 2; }
static inline int Peer(const Side* side) { return (side->rank + side->ranks / 2) % side->ranks; }

/* Messages of a window: 64, but no more than 16 MiB, and 8 at least. */
static inline int WindowOf(const Side* side) {
  const size_t count = kWindowBytes / side->size;
  return count > kMaxWindow ? kMaxWindow : count < kMinWindow ? kMinWindow : (int)count;
}
static inline size_t WindowBytes(const Side* side) { return WindowOf(side) * side->size; }

/* Windows of messages from the leading rank (or from both, if `both`), each answered by an empty
 * message. */
static inline void ExchangeWindow(const Side* side, int both) {
  Request requests[2 * kMaxWindow];
  int count = 0;
  for (int i = 0; (both || !Leads(side)) && i < WindowOf(side); ++i) {
    StartReceive(side->in + i * side->size, side->size, Peer(side), &requests[count++]);
  }
  for (int i = 0; (both || Leads(side)) && i < WindowOf(side); ++i) {
    StartSend(side->out + i * side->size, side->size, Peer(side), &requests[count++]);
  }
  WaitAll(count, requests);
  char answer = 0;
  if (Leads(side)) {
    Receive(&answer, 0, Peer(side));
  } else {
    Send(&answer, 0, Peer(side));
  }
}

static inline double RepeatWindows(const Side* side, int both, int rounds) {
  Barrier();
  const double start = Now();
  for (int i = 0; i < rounds; ++i) {
    ExchangeWindow(side, both);
  }
  return MeanOverRanks(Now() - start, side->ranks);
}

static inline void CheckWindow(const Side* side, int both) {
  memset(side->in, 0x55, WindowBytes(side));
  FillBytes(side->out, side->rank, 0, WindowBytes(side));
  ExchangeWindow(side, both);
  if (both || !Leads(side)) {
    CompareBytes(side, side->in, Peer(side), 0, WindowBytes(side));
  }
}

#endif /* BENCHMARKS_MPI_PAIR_H_ */
