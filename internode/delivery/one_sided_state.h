// The progress thread's records of the operations of a rank of this node on memory of ranks of
// other nodes (internode/rma/one_sided.h).
//
// Calling thread: the progress thread.
#pragma once

#include <cstdint>
#include <deque>

#include "internode/delivery/node_use.h"
#include "shm/layout/descriptor.h"

namespace ferry::progress {

// The first number of RTSs of long operations.
inline constexpr uint32_t kFirstOneSidedRts = uint32_t{1} << 31;
// The first number of long gets of rings, by which nothing is announced.
inline constexpr uint32_t kRingGets = kFirstOneSidedRts + (uint32_t{1} << 30);

// ---- Of its lane

struct OneSidedCounts {
  uint64_t begun = 0;
  uint64_t done = 0;  // so many, the first ones, are over
};
struct AwaitedAnswer {
  uint64_t number = 0;      // of the operation among those with that peer; 0: it is a long one
  uint64_t size_bytes = 0;  // of data
  uint32_t peer = 0;
  uint16_t answer = 0;  // of the session's answers: by which the rank knows it
  uint16_t serial = 0;
  bool is_fetched = false;  // a long get whose bytes are on their way
  shm::Location here{};     // where a long get puts them
  CountedUse use{};         // of NodeUse::bytes_asked, or long_asked
};

// ---- Of its rings of devices

// The name by which the owner of the rings knows an operation.
struct RingToken {
  uint64_t ring = 0;  // 0: its ring is gone, and no answer is wanted
  uint64_t sequence = 0;
};
struct RingFlight {
  uint64_t number = 0;  // among the rings' operations with that peer
  RingToken token;
  bool wants_answer = false;
  uint64_t size_bytes = 0;  // of a get's data
  shm::Location here{};     // which go there; region 0: into the answer's value
};
struct RingStream {
  OneSidedCounts counts;
  std::deque<RingFlight> flights;  // in the order of their numbers
  uint64_t get_bytes = 0;          // which these wait for
  CountedUse use;                  // of NodeUse::bytes_asked
};
// A long operation of a ring.
struct RingTransfer {
  RingToken token;
  uint32_t peer = 0;
  uint32_t request = 0;  // by which the daemons know it
  uint32_t generation = 0;
  bool is_get = false;
  bool is_fetched = false;  // a get whose bytes are on their way
  uint64_t size_bytes = 0;
  shm::Location here{};  // where a get puts them
  CountedUse use{};      // of NodeUse::long_asked
};

}  // namespace ferry::progress
