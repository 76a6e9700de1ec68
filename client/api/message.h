// Messages, requests and their completions, as front ends see them (front_end.h).
#pragma once

#include <cstdint>

#include "common/error_code.h"

namespace ferry::client {

// Communicator contexts. Applications of ferry.h use one context; Ferry's own messages never match
// theirs, nor those of front ends.
inline constexpr uint32_t kUserContext = 0;
inline constexpr uint32_t kInternalContext = 1;
inline constexpr uint32_t kFrontEndContexts = 2;  // the first that front ends may use

// 0 = null; otherwise slot index in the lower half, the slot's serial in the upper.
using RequestHandle = uint64_t;

// Names a queue of starts and waits that a stream carries out. 0 = none.
using QueueHandle = uint64_t;

// The handle of a send that completed at once and needed no request. Index 0 names no slot.
inline constexpr RequestHandle kCompletedSend = uint64_t{1} << 32;

// The peer or the tag of a receive or a probe that matches any.
inline constexpr int32_t kAny = -1;

// How a receive looks to `ferryctl why`, which would take it for the program's own otherwise.
enum class Service : uint8_t {
  kNone,
  kServes,  // waits for requests of other ranks to a thread that serves them; the program does not
  kServed,  // waits for the answer of such a thread, which does not depend on its rank's program
};

// The arguments of a call that starts a message. Peers are ranks of the job.
struct Message {
  void* buffer = nullptr;
  uint64_t size_bytes = 0;
  int32_t peer = 0;
  int32_t tag = 0;
  uint32_t context = kUserContext;
  bool synchronous = false;  // a send completes only once it has been matched
  bool ready = false;        // a persistent, matched send whose receive is already started
  bool in_place = false;     // a persistent, matched receive waits in no cell: its buffer has the
                             // message as soon as it has come
  Service service = Service::kNone;
};

struct Completion {
  int source = 0;
  int tag = 0;
  ErrorCode error = ErrorCode::kOk;
  uint64_t size_bytes = 0;
};

}  // namespace ferry::client
