// Finds the events of daemons that the messages between two nodes went through.
//
// A message has no number that travels with it, and a daemon does not know how its ends count it.
// But messages from one rank to another leave, and are delivered, in the order in which they were
// started. So the n-th message has the (n + k)-th event, with one k for all of them: that with
// which each event lies between the beginning of its message and its end, and has as many bytes.
// Where several would do, or none, no event is taken for any of these messages.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace ferry::tools {

// Times are those of the launcher.
struct RoutedMessage {
  uint64_t id = 0;
  uint32_t from = 0;  // ranks
  uint32_t to = 0;
  uint32_t from_node = 0;
  uint32_t to_node = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = INT64_MAX;  // of its receive, if that is known
  uint64_t bytes = 0;
};

// The departure of a message from the sender's node, or its arrival at the receiver's.
struct RouteStop {
  uint32_t from = 0;  // ranks
  uint32_t to = 0;
  int64_t at_ns = 0;
  uint64_t bytes = 0;
  uint64_t message = 0;  // as the daemons name it
  uint32_t daemon = 0;   // which, and
  uint32_t event = 0;    // which of its events
  uint64_t id = 0;       // found: of the message; 0: not known
};

enum class RouteSide { kDeparture, kArrival };

struct RouteNode {
  // Its daemon has the stop of each message that began at `since_ns` or later, and had come by
  // `until_ns`: here of none.
  int64_t since_ns = INT64_MAX;
  int64_t until_ns = INT64_MIN;
  int64_t error_ns = 0;  // of its clock
};

// Sets the ids of the stops, which are all of one side; sorts both. Messages lead from a node to
// another one; both are among `nodes`. A stop that seems to be before its message, or after it,
// since clocks differ, gets no id.
void FindStops(RouteSide side, const std::vector<RouteNode>& nodes,
               std::vector<RoutedMessage>* messages, std::vector<RouteStop>* stops);

}  // namespace ferry::tools
