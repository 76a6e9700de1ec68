// The words that the two sides of a partitioned message share. Each side has a block of words in
// its rank's heap, which ranks of its node map and daemons of other nodes reach by one-sided
// operations.
//
// The sender writes its own block, except the words under "By the receiver". The receiver writes
// its own block, except the words under "By the sender", and the words of arrivals, to which the
// mover of the data adds. Only ranks of one node, which can read `ready` and `taken`, take a unit's
// parts from the other side, by exchanging the word `taken`.
//
// Layout only. Words are used by shm/atomic.h (words.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shm/layout/descriptor.h"

namespace ferry::mpi {

// The receiver's answer to the sender's offer. Written before `has_answer`.
struct ReceiverAnswer {
  uint64_t error = 0;        // an MPI error class: send and receive do not fit together
  uint64_t total_bytes = 0;  // of the receive, for messages
  uint64_t partitions = 0;   // likewise
  shm::Location data{};      // where data go: the program's buffer, or memory in place of it
  shm::Location block{};     // the ReceiverBlock; region 0: there is none
  uint32_t is_landing = 0;   // data go into memory of the library's own
  uint32_t can_take = 0;     // the receiver takes ready parts from the sender's buffer (same node)
};

// One for each unit. Where there are few units each has a cache line of its own, so that threads
// that ready different units do not share lines.
struct UnitWords {
  uint64_t ready;  // Ready adds a partition's bit
  uint64_t taken;  // the mover of a part exchanges it, never adds to it
};

struct alignas(64) SenderBlock {
  // By the receiver:
  uint64_t cleared;         // data of rounds up to this one may be moved
  uint64_t receiver_ended;  // not 0: the receiver has freed its request, and writes nothing more
  uint64_t has_answer;      // `answer` is complete
  uint64_t attending;       // the round in which it waits, and takes ready parts (same node)
  uint64_t receiver_rests;  // the receiver sleeps, and is to be woken by arrivals (same node)
  uint64_t receiver_error;  // an MPI error class: the receiver cannot go on
  // By the sender:
  uint64_t sender_ended;  // the sender freed its request before there was an answer
  // By the receiver:
  uint64_t took;  // PartsOfRound: how many parts it has taken, if those are counted (same node)
  ReceiverAnswer answer;
  // Then the units' words, UnitStride(count) bytes apart.
};

struct alignas(64) ReceiverBlock {
  // By the sender:
  uint64_t sender_ended;  // as above
  uint64_t left;          // LeftUnit: the last unit left to an attending receiver
  uint64_t sender_rests;
  uint64_t sender_error;
  uint64_t sender_kernels;  // not 0: kernels on CPUs of the node ready its partitions
  uint64_t reserved[3];
  // Then uint64_t arrived[count].
};
static_assert(sizeof(SenderBlock) == 128 && sizeof(ReceiverBlock) == 64);

inline constexpr uint64_t UnitStride(uint32_t units) {
  return units <= 64 ? 64 : sizeof(UnitWords);
}
inline constexpr uint64_t SenderBlockBytes(uint32_t units) {
  return sizeof(SenderBlock) + units * UnitStride(units);
}
inline constexpr uint64_t ReceiverBlockBytes(uint32_t units) {
  return sizeof(ReceiverBlock) + units * sizeof(uint64_t);
}
// The value of ReceiverBlock::left, which changes with each unit that is left to the receiver.
inline constexpr uint64_t LeftUnit(uint64_t round, uint32_t unit) { return round << 32 | unit; }
inline constexpr uint32_t UnitOfLeft(uint64_t word) { return static_cast<uint32_t>(word); }

// The value of a word that counts parts in a round. Parts are counted where units are so large that
// threads which make them ready may copy some, too.
inline constexpr uint64_t kLeastCounted = uint64_t{128} << 10;
inline constexpr uint64_t PartsOfRound(uint64_t round, uint64_t parts) {
  return round << 32 | parts;
}
inline constexpr uint64_t PartsIn(uint64_t word, uint64_t round) {
  return word >> 32 == (round & UINT32_MAX) ? static_cast<uint32_t>(word) : 0;
}

// The offset of a unit's word of arrivals in the receiver's block.
inline constexpr uint64_t ArrivedOffset(uint32_t unit) {
  return sizeof(ReceiverBlock) + unit * sizeof(uint64_t);
}

}  // namespace ferry::mpi
