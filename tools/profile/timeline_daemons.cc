#include "tools/profile/timeline_daemons.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "common/error_code.h"

namespace ferry::tools {
namespace {

using shm::DaemonTraceSlot;
using shm::DaemonWork;

// Further events that overlap are not drawn.
constexpr size_t kMostRows = 256;
constexpr uint64_t kMomentNs = 1;  // as long as it takes to be seen, and to be found by an arrow

DaemonWork WorkOf(const DaemonTraceSlot& event) { return static_cast<DaemonWork>(event.work); }

bool IsOfReceiver(const DaemonTraceSlot& event) {
  const DaemonWork work = WorkOf(event);
  return work == DaemonWork::kDelivery || work == DaemonWork::kRndvGet ||
         work == DaemonWork::kRead || work == DaemonWork::kCopyOut;
}

bool IsOneSided(const DaemonTraceSlot& event) {
  return static_cast<uint32_t>(event.message) >= shm::kFirstOneSidedMessage;
}

bool HasOffset(const DaemonTraceSlot& event) {
  const DaemonWork work = WorkOf(event);
  return work == DaemonWork::kRead || work == DaemonWork::kWrite || work == DaemonWork::kCopyIn ||
         work == DaemonWork::kCopyOut || work == DaemonWork::kLent;
}

RouteStop StopOf(const DaemonTraceSlot& event, int64_t at_ns) {
  RouteStop stop;
  stop.from = IsOfReceiver(event) ? event.peer : event.rank;
  stop.to = IsOfReceiver(event) ? event.rank : event.peer;
  stop.at_ns = at_ns;
  stop.bytes = event.bytes;
  stop.message = event.message;
  return stop;
}

// ---- Tracks -------------------------------------------------------------------------------------

// Tracks stand in this order.
std::pair<uint32_t, std::string> TrackOf(const DaemonTraceSlot& event) {
  switch (WorkOf(event)) {
    case DaemonWork::kEagerSend:
      return {0, "eager sends"};
    case DaemonWork::kRts:
    case DaemonWork::kPut:
      return {1, "rendezvous sends"};
    case DaemonWork::kStagedSend:
      return {2, "staged sends"};
    case DaemonWork::kLent:
      return {3, "blocks lent"};
    case DaemonWork::kDelivery:
      return {4, "deliveries"};
    case DaemonWork::kRndvGet:
      return {5, "rendezvous gets"};
    case DaemonWork::kRead:
    case DaemonWork::kWrite:
      return {6, "RDMA"};
    case DaemonWork::kCopyIn:
    case DaemonWork::kCopyOut:
      return {7, shm::DaemonPlaceText(static_cast<shm::DaemonPlace>(event.place), event.worker)};
    case DaemonWork::kCounters:
      break;
  }
  return {8, "other"};
}

// Work of a daemon overlaps, and slices of a track may not: so each kind of work has as many tracks
// as were needed at once.
class Tracks {
 public:
  Tracks(uint32_t process, TraceJson* json) : process_(process), json_(*json) {}

  // Takes a place on a track. Events come in the order in which they begin. nullptr: there is none.
  const Track* Take(const DaemonTraceSlot& event, uint64_t begin_ns, uint64_t end_ns) {
    const auto kind = TrackOf(event);
    std::vector<Row>& rows = kinds_[kind];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& one) { return one.end_ns <= begin_ns; });
    if (row == rows.end()) {
      if (rows.size() == kMostRows) {
        return nullptr;
      }
      const auto number = static_cast<uint32_t>(rows.size());
      const std::string name =
          number == 0 ? kind.second : kind.second + " " + std::to_string(number + 1);
      row = rows.insert(rows.end(), {{process_, ++threads_}, 0});
      json_.NameTrack(row->track, name, kind.first * kMostRows + number);
    }
    row->end_ns = end_ns;
    return &row->track;
  }

 private:
  struct Row {
    Track track;
    uint64_t end_ns = 0;
  };
  const uint32_t process_;
  TraceJson& json_;
  uint32_t threads_ = 0;
  std::map<std::pair<uint32_t, std::string>, std::vector<Row>> kinds_;
};

Details DetailsOf(const DaemonTraceSlot& event, std::string_view peer_node) {
  const RouteStop ends = StopOf(event, 0);
  Details details;
  details.Add("from", ends.from).Add("to", ends.to);
  details.Add(IsOfReceiver(event) ? "from_node" : "to_node", peer_node).Add("bytes", event.bytes);
  if (event.message != 0) {
    details.Add("message", std::to_string(static_cast<uint32_t>(event.message)) + "." +
                               std::to_string(event.message >> 32));
  }
  if (HasOffset(event)) {
    details.Add("offset", event.offset);
  }
  if (event.block != shm::kNoDaemonBlock) {
    details.Add("block", event.block);
  }
  if (IsOneSided(event)) {
    details.AddFlag("one_sided");
  }
  if (event.error != 0) {
    details.Add("error", ErrorCodeText(static_cast<ErrorCode>(event.error)));
  }
  return details;
}

}  // namespace

// ---- Loading ------------------------------------------------------------------------------------

bool TimelineDaemons::Load(uint32_t i, TimelineDaemon* daemon) const {
  return timeline_.load_daemon(i, daemon) && daemon->node < timeline_.nodes.size();
}

void TimelineDaemons::ForEachEvent(const UseTimes& use) {
  facts_.daemons_missing += timeline_.daemons_missing;
  for (uint32_t i = 0; i < timeline_.daemons; ++i) {
    TimelineDaemon daemon;
    if (!Load(i, &daemon)) {
      ++facts_.daemons_missing;
      continue;
    }
    facts_.daemon_events_lost += daemon.trace.lost;
    for (const DaemonTraceSlot& event : daemon.trace.events) {
      use(daemon.node, event.begin_ns, event.end_ns);
    }
  }
}

// ---- Arrows -------------------------------------------------------------------------------------

void TimelineDaemons::AddMessage(const RoutedMessage& message) {
  if (timeline_.daemons != 0) {
    messages_.push_back(message);
  }
}

void TimelineDaemons::AddStops(uint32_t i, const TimelineDaemon& daemon, const NodeClock& clock) {
  for (uint32_t number = 0; number < daemon.trace.events.size(); ++number) {
    const DaemonTraceSlot& event = daemon.trace.events[number];
    const DaemonWork work = WorkOf(event);
    std::vector<RouteStop>* const stops =
        IsOneSided(event) ? nullptr
        : work == DaemonWork::kEagerSend || work == DaemonWork::kRts || work == DaemonWork::kPut
            ? &departures_
        : work == DaemonWork::kDelivery ? &arrivals_
        : work == DaemonWork::kRndvGet  ? &gets_
                                        : nullptr;
    if (stops != nullptr) {
      RouteStop stop = StopOf(event, clock.ToLauncher(event.begin_ns));
      stop.daemon = i;
      stop.event = number;
      stops->push_back(stop);
    }
  }
}

// Leaves those that go from a node to another, with all that is known of them.
void TimelineDaemons::RouteMessages(const Known& known) {
  std::erase_if(messages_, [&](RoutedMessage& message) {
    message.to_node = known.node_of[message.to];
    return message.to_node == UINT32_MAX || message.to_node == message.from_node;
  });
  for (RoutedMessage& message : messages_) {
    message.begin_ns += known.shifts_ns[message.from_node];
    const auto end = std::lower_bound(known.ends_ns.begin(), known.ends_ns.end(),
                                      std::pair(message.id, INT64_MIN));
    if (message.id != 0 && end != known.ends_ns.end() && end->first == message.id) {
      message.end_ns = end->second;
    }
  }
}

void TimelineDaemons::FindStops(const Known& known) {
  std::vector<RouteNode> nodes(known.nodes.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    if (known.errors_ns[node] > INT32_MAX) {  // no clock that says anything of messages
      return;
    }
    nodes[node].error_ns = static_cast<int64_t>(known.errors_ns[node]);
  }
  for (uint32_t i = 0; i < timeline_.daemons; ++i) {
    TimelineDaemon daemon;
    if (Load(i, &daemon)) {
      const NodeClock& clock = known.nodes[daemon.node].clock;
      nodes[daemon.node].since_ns = clock.ToLauncher(daemon.trace.complete_since_ns);
      nodes[daemon.node].until_ns = clock.ToLauncher(daemon.seen_ns);
      AddStops(i, daemon, clock);
    }
  }
  RouteMessages(known);
  tools::FindStops(RouteSide::kDeparture, nodes, &messages_, &departures_);
  tools::FindStops(RouteSide::kArrival, nodes, &messages_, &arrivals_);
  LeadThrough(known);
  for (std::vector<RouteStop>* stops : {&departures_, &arrivals_, &gets_}) {
    *stops = {};
  }
  messages_ = {};
}

// Where the daemon of the receiver fetches the message, the arrow leads through that as well.
void TimelineDaemons::LeadThrough(const Known& known) {
  using Name = std::tuple<uint32_t, uint32_t, uint64_t>;
  std::map<Name, const RouteStop*> gets;
  for (const RouteStop& get : gets_) {
    gets[{get.from, get.to, get.message}] = &get;
  }
  const auto lead = [&](const RouteStop& stop, uint64_t id) {
    through_.push_back({KeyOf(stop.daemon, stop.event), id});
  };
  const auto is_drawn = [&](uint64_t id) {
    return id != 0 && std::binary_search(known.arrows.begin(), known.arrows.end(), id);
  };
  std::vector<uint64_t> ids;
  for (const RouteStop& stop : departures_) {
    if (is_drawn(stop.id)) {
      lead(stop, stop.id);
      ids.push_back(stop.id);
    }
  }
  for (const RouteStop& stop : arrivals_) {
    if (is_drawn(stop.id)) {
      lead(stop, stop.id);
      ids.push_back(stop.id);
      const auto get = gets.find({stop.from, stop.to, stop.message});
      if (stop.message != 0 && get != gets.end() && get->second->at_ns >= stop.at_ns) {
        lead(*get->second, stop.id);
      }
    }
  }
  std::sort(ids.begin(), ids.end());
  facts_.through_daemons = static_cast<uint64_t>(std::unique(ids.begin(), ids.end()) - ids.begin());
  std::sort(through_.begin(), through_.end(),
            [](const Through& a, const Through& b) { return a.event < b.event; });
}

uint64_t TimelineDaemons::ArrowThrough(uint64_t event) const {
  const auto found =
      std::lower_bound(through_.begin(), through_.end(), event,
                       [](const Through& one, uint64_t key) { return one.event < key; });
  return found != through_.end() && found->event == event ? found->id : 0;
}

// ---- Drawing ------------------------------------------------------------------------------------

void TimelineDaemons::Draw(const Known& known, const Range& range, TraceJson* json) {
  for (uint32_t i = 0; i < timeline_.daemons && json->is_wanted(); ++i) {
    TimelineDaemon daemon;
    if (Load(i, &daemon)) {
      DrawOne(i, daemon, known, range, json);
    }
  }
}

void TimelineDaemons::DrawOne(uint32_t i, const TimelineDaemon& daemon, const Known& known,
                              const Range& range, TraceJson* json) {
  const NodeClock& clock = known.nodes[daemon.node].clock;
  const std::vector<DaemonTraceSlot>& events = daemon.trace.events;
  std::vector<uint32_t> order;
  for (uint32_t number = 0; number < events.size(); ++number) {
    if (clock.ToLauncher(events[number].end_ns) >= range.cut_ns) {
      order.push_back(number);
    }
  }
  if (order.empty()) {
    return;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return events[a].begin_ns < events[b].begin_ns; });
  ++facts_.daemons;
  const uint32_t process = timeline_.size + 1 + i;  // behind the ranks, of which 1 is the first
  json->NameProcess(process, "ferryd " + known.nodes[daemon.node].name, process);
  Tracks tracks(process, json);
  for (const uint32_t number : order) {
    const DaemonTraceSlot& event = events[number];
    const int64_t event_ns = clock.ToLauncher(event.begin_ns);
    const auto begin_ns = static_cast<uint64_t>(std::max(event_ns, range.cut_ns) - range.first_ns);
    const auto until_ns = static_cast<uint64_t>(clock.ToLauncher(event.end_ns) - range.first_ns);
    const uint64_t end_ns = std::max(until_ns, begin_ns + kMomentNs);
    const Track* const track = tracks.Take(event, begin_ns, end_ns);
    if (track == nullptr) {
      ++facts_.daemon_events_crowded;
      continue;
    }
    json->Slice(*track, "daemon", shm::DaemonWorkText(WorkOf(event)), begin_ns, end_ns,
                DetailsOf(event, PeerNode(known, event)));
    const uint64_t id = ArrowThrough(KeyOf(i, number));
    if (id != 0 && event_ns >= range.cut_ns) {
      json->ArrowThrough(*track, id, begin_ns);
    }
  }
}

std::string TimelineDaemons::PeerNode(const Known& known, const DaemonTraceSlot& event) const {
  const uint32_t node = known.node_of[event.peer];
  return node < known.nodes.size() ? known.nodes[node].name : std::to_string(event.peer_node);
}

}  // namespace ferry::tools
