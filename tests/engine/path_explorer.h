// Runs small programs of two ranks in every order of events: messages, receives, switches between
// the daemons and a direct link, and faults.
//
// A schedule is run from the start each time, since the engines' state lies in shared memory. One
// that comes to a state that was seen before goes on no further. In every end, what the ranks have
// got and what their segments say is checked.
#pragma once

#include <cstdint>
#include <vector>

namespace ferry::engine {

enum class Act : uint8_t {
  kSend,         // eager
  kRts,          // by RTS
  kSynchronous,  // an RTS that is not pushed
  kWrite,        // a long message, which may be written into a receive that was announced by an RTR
  kUse,
  kLeave,
  kReceive,
  kReceiveAny,
  kReceiveShort,  // of one byte: others have two
  kReceiveLong,   // it is announced by an RTR if it may be
  kProbe,
  kCancelSend,  // the rank's last one
  kCancelReceive,
};

using Script = std::vector<Act>;

// A fault that may happen besides, once.
enum class Fault : uint8_t { kNone, kDeath, kCut, kLoss };

struct Program {
  Script scripts[2];
  Fault fault = Fault::kNone;
  bool with_workers = false;
  bool pushes = false;
  bool announces = false;
};

struct Totals {
  uint64_t programs = 0;
  uint64_t states = 0;
  uint64_t ends = 0;
  uint64_t switched = 0;
};

// Adds to the totals; a failure of the test names the program and the schedule.
void Explore(const Program& program, Totals* totals);

}  // namespace ferry::engine
