// The messages of a timeline, of which either end knows its own half only.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shm/trace_ring.h"

namespace ferry::tools {

// One end of a message.
struct MessageEnd {
  uint64_t id = 0;  // both ends have it, and no other message
  int64_t at_ns = 0;
  uint32_t node = 0;
};

bool IsMessage(const shm::TraceEvent& event);
// Returns true if the other end can be found.
bool HasId(const shm::TraceEvent& event);
// Returns the number of the message of an event of `rank`; HasId(event) must be true.
uint64_t IdOf(uint32_t rank, const shm::TraceEvent& event);
// A sender is at the message when it starts to send, a receiver when all has come.
uint64_t TimeOf(const shm::TraceEvent& event);

// Numbers the receives among the events of a rank as their senders have numbered the messages.
void OrderReceives(std::vector<shm::TraceEvent>* events);

// The messages of which both ends are there once.
struct Pairing {
  std::vector<MessageEnd> sends;
  std::vector<MessageEnd> receives;

  // Before ForEachPair.
  void Sort();
  // In the order of their ids.
  template <typename Use>
  void ForEachPair(Use&& use) const {
    const auto is_alone = [](const std::vector<MessageEnd>& ends, size_t i) {
      return (i == 0 || ends[i - 1].id != ends[i].id) &&
             (i + 1 == ends.size() || ends[i + 1].id != ends[i].id);
    };
    for (size_t s = 0, r = 0; s < sends.size() && r < receives.size();) {
      if (sends[s].id == receives[r].id) {
        if (is_alone(sends, s) && is_alone(receives, r)) {
          use(sends[s], receives[r]);
        }
        ++s;
        ++r;
      } else {
        ++(sends[s].id < receives[r].id ? s : r);
      }
    }
  }
};

}  // namespace ferry::tools
