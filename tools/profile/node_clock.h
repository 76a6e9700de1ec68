// Brings the clocks of a job's nodes together, so that its timeline shows what was before what.
//
// First by questions: a daemon answers with its CLOCK_MONOTONIC. The answer with the shortest round
// trip says most (the clock filter of RFC 5905, section 10): its error is at most half of that.
// Answers from the beginning and the end of the job show how fast one clock runs against the other.
//
// Then by the job's own messages, which are much faster than questions: between two nodes that send
// to each other, the fastest message of either direction bounds the error from its side (Duda,
// Harrus, Haddad and Bernard, "Estimating global time in distributed systems", ICDCS 1987).
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ferry::tools {

// All of CLOCK_MONOTONIC, in nanoseconds.
struct ClockSample {
  uint64_t asked_ns = 0;     // the launcher's clock before the question
  uint64_t node_ns = 0;      // the node's, in the answer
  uint64_t answered_ns = 0;  // the launcher's when the answer had come; not before asked_ns
};

class NodeClock {
 public:
  // That of the launcher itself.
  NodeClock() = default;
  // By answers of the node, in any order. Without any the clock is taken for the launcher's, with
  // an error of UINT64_MAX.
  static NodeClock Of(std::span<const ClockSample> samples);

  // Returns the launcher's time at the node's `node_ns`.
  int64_t ToLauncher(uint64_t node_ns) const;
  // Adds to what ToLauncher returns.
  void Shift(int64_t by_ns) { shift_ns_ += by_ns; }
  // By how much ToLauncher may be wrong, for times between the answers.
  uint64_t error_ns() const { return error_ns_; }
  double drift() const { return drift_; }

 private:
  int64_t from_ns_ = 0;  // the node's time at which the launcher's is `to_ns_`
  int64_t to_ns_ = 0;
  double drift_ = 0;  // how much faster the launcher's clock runs: 1e-6 is 1 us per second
  int64_t shift_ns_ = 0;
  uint64_t error_ns_ = 0;
};

// The fastest message from a node to another: by how much it came later than it left, by clocks
// that may differ, so that it may have come before it left.
struct NodeDelay {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t least_ns = 0;
};

struct ClockShifts {
  std::vector<int64_t> shift_ns;   // by node: to be added to its times
  std::vector<uint64_t> error_ns;  // by node: against the node that it was compared with
};

// Compares each node with the launcher (an error of `errors_ns`, by node) or, if that is more
// exact, with another node by the messages that went between them both ways. `delays` has each
// ordered pair of nodes at most once; a node that does not exist is left out.
ClockShifts ShiftsByMessages(std::span<const uint64_t> errors_ns,
                             std::span<const NodeDelay> delays);

}  // namespace ferry::tools
