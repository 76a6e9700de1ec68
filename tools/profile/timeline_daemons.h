// The daemons in the timeline of a job: each is a process of the picture, with tracks for what it
// has done for the job's messages, and the arrows of these lead through its events.
//
// Calling thread: any. Blocks as Timeline::load_daemon does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/profile/message_routes.h"
#include "tools/profile/timeline.h"
#include "tools/profile/trace_json.h"

namespace ferry::tools {

class TimelineDaemons {
 public:
  // Both outlive it.
  TimelineDaemons(const Timeline& timeline, TimelineFacts* facts)
      : timeline_(timeline), facts_(*facts) {}

  // Calls `use` with the node of each event, and its times by that node's clock.
  using UseTimes = std::function<void(uint32_t node, uint64_t begin_ns, uint64_t end_ns)>;
  void ForEachEvent(const UseTimes& use);
  // Adds a message that a rank has sent, and not by a direct link. `to_node` and `end_ns` are not
  // known yet.
  void AddMessage(const RoutedMessage& message);

  // The findings of the rest of the timeline.
  struct Known {
    const std::vector<TimelineNode>& nodes;  // with the clocks that the picture has,
    const std::vector<uint64_t>& errors_ns;  // by how much these may be wrong, by node,
    const std::vector<int64_t>& shifts_ns;   // and how far they were shifted after AddMessage
    const std::vector<uint32_t>& node_of;    // by rank; UINT32_MAX: not known
    const std::vector<uint64_t>& arrows;     // the ids of those that are drawn, in order
    const std::vector<std::pair<uint64_t, int64_t>>& ends_ns;  // of messages by id, in order
  };
  // Finds the events of the messages.
  void FindStops(const Known& known);

  // Times of the launcher: where the picture begins, and from where on events are shown.
  struct Range {
    int64_t first_ns = 0;
    int64_t cut_ns = 0;
  };
  void Draw(const Known& known, const Range& range, TraceJson* json);

 private:
  struct Through {
    uint64_t event = 0;  // KeyOf
    uint64_t id = 0;
  };
  static uint64_t KeyOf(uint64_t daemon, uint64_t event) { return daemon << 32 | event; }
  bool Load(uint32_t i, TimelineDaemon* daemon) const;
  void AddStops(uint32_t i, const TimelineDaemon& daemon, const NodeClock& clock);
  void RouteMessages(const Known& known);
  void LeadThrough(const Known& known);
  void DrawOne(uint32_t i, const TimelineDaemon& daemon, const Known& known, const Range& range,
               TraceJson* json);
  std::string PeerNode(const Known& known, const shm::DaemonTraceSlot& event) const;
  // The id of the arrow through an event; 0: none.
  uint64_t ArrowThrough(uint64_t event) const;

  const Timeline& timeline_;
  TimelineFacts& facts_;
  std::vector<RoutedMessage> messages_;
  std::vector<RouteStop> departures_;
  std::vector<RouteStop> arrivals_;
  std::vector<RouteStop> gets_;
  std::vector<Through> through_;  // in order
};

}  // namespace ferry::tools
