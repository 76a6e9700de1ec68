/* Patterns of pairs: each rank of the first half with one of the second, so that the two of a pair
 * live on different nodes where there are two. */
#ifndef BENCHMARKS_MPI_PAIR_H_
#define BENCHMARKS_MPI_PAIR_H_

#include "benchmarks/mpi/pattern.h"

enum { kWindow = 64 };

static inline int Leads(const Side* side) { return side->rank < side->ranks / 2; }
static inline int Peer(const Side* side) { return (side->rank + side->ranks / 2) % side->ranks; }

static inline size_t MessageBytes(const Side* side) { return side->size; }

/* Tells the leading rank that all messages of the window have come. */
static inline void EndWindow(const Side* side) {
  char answer = 0;
  if (Leads(side)) {
    Receive(&answer, 0, Peer(side));
  } else {
    Send(&answer, 0, Peer(side));
  }
}

/* Windows of messages from the leading rank (or from both, if `both`), each answered by an empty
 * message. All messages of a window leave from one buffer and arrive in another, as OSU's do. */
static inline void ExchangeWindow(const Side* side, int both) {
  Request requests[2 * kWindow];
  int count = 0;
  for (int i = 0; (both || !Leads(side)) && i < kWindow; ++i) {
    StartReceive(side->in, side->size, Peer(side), &requests[count++]);
  }
  for (int i = 0; (both || Leads(side)) && i < kWindow; ++i) {
    StartSend(side->out, side->size, Peer(side), &requests[count++]);
  }
  WaitAll(count, requests);
  EndWindow(side);
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
  memset(side->in, 0x55, side->size);
  FillBytes(side->out, side->rank, 0, side->size);
  ExchangeWindow(side, both);
  if (both || !Leads(side)) {
    CompareBytes(side, side->in, Peer(side), 0, side->size);
  }
}

/* Bytes that one rank sends in a window. */
static inline double WindowBytes(const Side* side) { return (double)side->size * kWindow; }

#endif /* BENCHMARKS_MPI_PAIR_H_ */
