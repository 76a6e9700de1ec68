// What the two sides of a partitioned message share: each has a block of words in its rank's heap,
// which ranks of its node map and daemons of other nodes reach by one-sided operations.
//
// Who writes what: the sender's block belongs to the sender, but for `cleared`, `answer` and
// `receiver_ended`, which the receiver writes; the receiver's belongs to the receiver, but for
// `sender_ended`, and for the words of arrivals, which whoever moves data adds to. Only ranks of
// one node, which can read `ready` and `taken`, take a unit's partitions from the other side, by
// exchanging the word `taken`.
//
// Layout only. Words are used by shm/atomic.h.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"

namespace ferry::mpi {

// What the receiver tells the sender once they are matched. Written before `SenderBlock::cleared`
// is raised for the first time.
struct ReceiverAnswer {
  uint64_t error = 0;        // an MPI error class: they do not fit together
  uint64_t total_bytes = 0;  // of the receive, for messages
  uint64_t partitions = 0;   // likewise
  shm::Location data;        // where data go: the program's buffer, or memory in its stead
  shm::Location block;       // its ReceiverBlock
  uint64_t is_landing = 0;   // data go into memory of the library's own
};

// One for each unit. Apart where there are few, so that threads that ready different units do not
// share lines.
struct UnitWords {
  uint64_t ready;  // Ready adds a partition's bit
  uint64_t taken;  // by whoever moves it: exchanged, never added to
};

struct alignas(64) SenderBlock {
  uint64_t cleared;         // data of rounds up to this one may be moved
  uint64_t receiver_ended;  // not 0: the receiver has freed its request, and writes nothing more
  uint64_t has_answer;      // `answer` is complete
  ReceiverAnswer answer;
  // Then the units' words, UnitStride(count) bytes apart.
};

struct alignas(64) ReceiverBlock {
  uint64_t sender_ended;  // as above
  uint64_t reserved[7];
  // Then uint64_t arrived[count].
};

inline constexpr uint64_t UnitStride(uint32_t units) {
  return units <= 64 ? 64 : sizeof(UnitWords);
}
inline constexpr uint64_t SenderBlockBytes(uint32_t units) {
  return sizeof(SenderBlock) + units * UnitStride(units);
}
inline constexpr uint64_t ReceiverBlockBytes(uint32_t units) {
  return sizeof(ReceiverBlock) + units * sizeof(uint64_t);
}

}  // namespace ferry::mpi
