// One-sided operations in the memory of ranks of other nodes: the commands of a rank to its daemon,
// or to its own core where the two ranks have a direct link, and the words in which that core
// reports results (client/api/one_sided.h, internode/rma/one_sided.h).
//
// The operations of a rank with one peer are carried out in the order of their commands, and
// numbered in it, from 1 on. So one number says which of them are over.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

enum class OneSidedOperation : uint8_t {
  kNone = 0,
  kPut = 1,
  kGet = 2,
  // Atomic operations on a word of `width` bytes.
  kFetch = 3,
  kSet = 4,
  kSwap = 5,
  kCompareSwap = 6,
  kAdd = 7,
  kAnd = 8,
  kOr = 9,
  kXor = 10,
  // Long operations, of any size: the daemons fetch the bytes from where they lie. Not numbered,
  // since nothing that follows waits for them; they are over when the answer is there.
  kLongPut = 11,
  kLongGet = 12,
  // Numbers in a row, each changed as if by an atomic operation; the old values may be fetched
  // (shm/accumulate.h).
  kAccumulate = 13,
};
inline constexpr uint8_t kOneSidedOperations = 14;  // their number, kNone counted
constexpr bool IsLong(OneSidedOperation operation) {
  return operation == OneSidedOperation::kLongPut || operation == OneSidedOperation::kLongGet;
}
inline constexpr uint32_t kMostAccumulated = 1024;  // elements, by one command

// A segment is the number of a region of its rank, with this bit if only streams reach that region:
// then its bytes move as those of a long operation.
inline constexpr uint32_t kSegmentByStream = uint32_t{1} << 31;
// A segment with this bit is memory of the program's own that the rank exposes (NodePeers::Expose).
// It has a numbering of its own, which only the rank's own core knows.
inline constexpr uint32_t kSegmentPrivate = uint32_t{1} << 30;
inline constexpr uint32_t RegionOf(uint32_t segment) { return segment & ~kSegmentByStream; }

// The change of a signal word of the same rank, once the data of a put are there.
enum class SignalUpdate : uint8_t { kNone = 0, kSet = 1, kAdd = 2 };
inline constexpr uint8_t kSignalUpdates = 3;

inline constexpr uint32_t kAnswers = 64;         // that one rank may wait for at a time
inline constexpr uint16_t kNoAnswer = 0xffff;    // OneSidedCommand::answer: none is wanted
inline constexpr uint32_t kInlinePutBytes = 16;  // a put of so many goes in the command

// Payload of a descriptor of kind kOneSided. In the descriptor, `destination` is the peer,
// `context` the number of the region there, `size_bytes` that of a put, get or accumulate (at most
// kCellBytes), `tag` the region of the signal, or Accumulation::packed(). The data of a put, and
// the operands of an accumulate, lie in a cell (kFlagCell), or, if they are few and there is no
// signal, in `operand` and `compare`. The cell of a long operation holds the Location of the bytes
// here.
struct OneSidedCommand {
  uint8_t operation;  // OneSidedOperation
  uint8_t signal;     // SignalUpdate; kPut, kLongPut
  uint8_t width;      // 1, 2, 4 or 8; atomic operations
  uint8_t reserved;
  uint16_t answer;   // the AnswerLayout that gets the result; kNoAnswer
  uint16_t serial;   // AnswerLayout::serial, once it is there
  uint64_t offset;   // in the region
  uint64_t operand;  // of a put: of the signal
  uint64_t compare;  // kCompareSwap; of a put: the offset of the signal
};
FERRY_ASSERT_LAYOUT(OneSidedCommand, 32);
FERRY_ASSERT_OFFSET(OneSidedCommand, answer, 4);
FERRY_ASSERT_OFFSET(OneSidedCommand, offset, 8);
FERRY_ASSERT_OFFSET(OneSidedCommand, compare, 24);

// The progress of the operations with one peer. Written by the core that carries them: ferryd's, or
// the rank's own by a direct link. The rank changes to the other core only when no operation is
// under way, so both share one numbering.
struct OneSidedWords {
  uint64_t done;  // the number of the last that is over; all before it are, too
};
FERRY_ASSERT_LAYOUT(OneSidedWords, 8);

// Operations with one peer that have failed: those from `first` to `last` that have no answers to
// report it.
inline constexpr uint32_t kFailures = 1024;  // power of two
struct OneSidedFailure {
  uint64_t first;
  uint64_t last;
  uint32_t peer;
  uint32_t error;  // ErrorCode
};
FERRY_ASSERT_LAYOUT(OneSidedFailure, 24);
FERRY_ASSERT_OFFSET(OneSidedFailure, last, 8);
FERRY_ASSERT_OFFSET(OneSidedFailure, peer, 16);
FERRY_ASSERT_OFFSET(OneSidedFailure, error, 20);

// The failures that one core has found. Written by that core, an entry before `done` of its last
// operation. The entries are used in turn: a rank has no more operations under way than there are
// entries, and has taken the failures of all earlier ones.
struct OneSidedFailures {
  uint64_t count;  // of entries that were ever written
  uint64_t reserved[15];
  OneSidedFailure entries[kFailures];
};
FERRY_ASSERT_LAYOUT(OneSidedFailures, 24704);
FERRY_ASSERT_OFFSET(OneSidedFailures, entries, 128);
inline constexpr uint32_t kOneSidedCores = 2;  // ferryd's, and the rank's own

// The result of one operation. The bytes of a get or an accumulate lie in the cell of the same
// number. Written by the core that carries the operation, before `done` of the peer.
struct AnswerLayout {
  uint64_t value;   // of an atomic operation; of fewer than 8 bytes: in the lowest
  uint32_t error;   // ErrorCode
  uint32_t serial;  // OneSidedCommand::serial of the command; stored last
};
FERRY_ASSERT_LAYOUT(AnswerLayout, 16);
FERRY_ASSERT_OFFSET(AnswerLayout, serial, 12);

}  // namespace ferry::shm
