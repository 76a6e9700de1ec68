#include "tools/profile/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "shm/call_record.h"
#include "tools/profile/message_pairs.h"
#include "tools/profile/timeline_daemons.h"

namespace ferry::tools {
namespace {

using shm::TraceEvent;
using shm::TraceKind;

// Tracks of queues, and behind them of streams, come behind those of threads, whose ids are smaller
// (PID_MAX_LIMIT is 2^22).
constexpr uint32_t kFirstQueue = 1U << 24;
constexpr uint32_t kFirstStream = 1U << 25;

bool Has(const TraceEvent& event, uint8_t flag) { return (event.flags & flag) != 0; }

bool IsOfQueue(const TraceEvent& event) {
  return event.kind == TraceKind::kQueued || event.kind == TraceKind::kQueueWait;
}

// ---- The picture --------------------------------------------------------------------------------

std::string RankName(const Timeline& timeline, const TimelineRank& rank) {
  return "rank " + std::to_string(rank.rank) + " (" + timeline.nodes[rank.node].name + ")";
}

std::string_view WorkText(uint32_t work) {
  switch (static_cast<shm::TraceWork>(work)) {
    case shm::TraceWork::kCopy:
      return "copy";
    case shm::TraceWork::kReduction:
      return "reduction";
    case shm::TraceWork::kMove:
      return "move a message";
    case shm::TraceWork::kMoveWait:
      return "wait for a message";
    case shm::TraceWork::kEventWait:
      return "wait for an event";
    case shm::TraceWork::kValueWait:
      return "wait for a value";
    case shm::TraceWork::kHostCall:
      return "host function";
    case shm::TraceWork::kNone:
      break;
  }
  return "work";
}

std::string_view NameOf(const TraceEvent& event) {
  switch (event.kind) {
    case TraceKind::kSend:
      return "send";
    case TraceKind::kPost:
      return "post a receive";
    case TraceKind::kReceive:
      return "receive";
    case TraceKind::kWait:
      return "waits";
    case TraceKind::kQueued:
      return "enqueue";
    case TraceKind::kQueueWait:
      return "wait for the queue";
    case TraceKind::kWork:
      return WorkText(event.order);
    default:
      return shm::CallText(event.name);
  }
}

std::string_view CategoryOf(const TraceEvent& event) {
  return IsMessage(event) || event.kind == TraceKind::kPost ? "message"
         : event.kind == TraceKind::kWait                   ? "wait"
         : IsOfQueue(event)                                 ? "queue"
         : event.kind == TraceKind::kWork                   ? "stream"
                                                            : "call";
}

Details DetailsOf(const TraceEvent& event, std::string_view way) {
  Details details;
  if (event.kind == TraceKind::kWait) {
    return details;
  }
  if (event.peer >= 0) {
    details.Add(event.kind == TraceKind::kSend      ? "to"
                : event.kind == TraceKind::kReceive ? "from"
                                                    : "rank",
                event.peer);
  } else if (event.peer == shm::kCallAnyRank) {
    details.Add("rank", "any");
  }
  if (Has(event, shm::kTraceHasTag)) {
    details.Add("tag", event.tag);
  }
  if (Has(event, shm::kTraceHasBytes)) {
    details.Add("bytes", event.bytes);
  }
  if (Has(event, shm::kTraceHasGroup)) {
    details.Add(IsMessage(event) ? "context" : "communicator", event.group);
  }
  if (event.number != 0 || Has(event, shm::kTraceHasNumber)) {
    details.Add("number", event.number);
  }
  if (!way.empty()) {
    details.Add("way", way);
  }
  if (Has(event, shm::kTraceFailed)) {
    details.AddFlag("failed");
  }
  return details;
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const TraceJson::Write& write, TimelineFacts* facts)
      : timeline_(timeline),
        nodes_(timeline.nodes),
        daemons_(timeline, facts),
        json_(write),
        facts_(*facts) {}

  bool Run() {
    node_of_.assign(timeline_.size, UINT32_MAX);
    for (uint32_t i = 0; i < timeline_.ranks; ++i) {
      Collect(i);
    }
    daemons_.ForEachEvent([this](uint32_t node, uint64_t begin_ns, uint64_t end_ns) {
      Extend(nodes_[node].clock, begin_ns, end_ns);
    });
    if (end_ns_ < first_ns_) {  // there is no event
      first_ns_ = end_ns_ = 0;
    }
    AlignByMessages();
    MatchMessages();
    const TimelineDaemons::Known known{nodes_,   shifts_.error_ns, shifts_.shift_ns,
                                       node_of_, arrows_,          received_};
    daemons_.FindStops(known);
    for (uint32_t i = 0; i < timeline_.ranks && json_.is_wanted(); ++i) {
      Draw(i);
    }
    daemons_.Draw(known, {first_ns_, cut_ns_}, &json_);
    facts_.events = json_.events();
    return json_.End(Facts());
  }

 private:
  // A slice, with times of the launcher.
  struct Shown {
    const TraceEvent* event;
    TraceKind kind;  // of kCall, for its wait: kWait
    int64_t begin_ns;
    int64_t end_ns;
    bool is_unfinished;
  };

  bool Load(uint32_t i, TimelineRank* rank) {
    if (!timeline_.load(i, rank) || rank->node >= nodes_.size() || rank->rank >= timeline_.size) {
      return false;
    }
    OrderReceives(&rank->trace.events);
    return true;
  }

  void Collect(uint32_t i) {
    TimelineRank rank;
    if (!Load(i, &rank)) {
      ++facts_.missing;
      return;
    }
    node_of_[rank.rank] = rank.node;
    facts_.lost += rank.trace.lost;
    const NodeClock& clock = nodes_[rank.node].clock;
    if (rank.is_running && !rank.trace.events.empty()) {
      end_ns_ = std::max(end_ns_, clock.ToLauncher(rank.seen_ns));
    }
    const uint64_t since_ns = CompleteSince(rank.trace);
    for (const TraceEvent& event : rank.trace.events) {
      Extend(clock, event.begin_ns, event.end_ns);
      if (event.kind == TraceKind::kSend && !Has(event, shm::kTraceByLink) &&
          event.begin_ns >= since_ns) {
        daemons_.AddMessage({.id = HasId(event) ? IdOf(rank.rank, event) : 0,
                             .from = rank.rank,
                             .to = static_cast<uint32_t>(event.peer),
                             .from_node = rank.node,
                             .begin_ns = clock.ToLauncher(event.begin_ns),
                             .bytes = event.bytes});
      }
      if (HasId(event)) {
        auto& ends = event.kind == TraceKind::kSend ? pairing_.sends : pairing_.receives;
        ends.push_back({IdOf(rank.rank, event), clock.ToLauncher(TimeOf(event)), rank.node});
      }
    }
  }

  void Extend(const NodeClock& clock, uint64_t begin_ns, uint64_t end_ns) {
    first_ns_ = std::min(first_ns_, clock.ToLauncher(begin_ns));
    end_ns_ = std::max(end_ns_, clock.ToLauncher(end_ns));
  }

  // All events of the rank that ended since then are there.
  static uint64_t CompleteSince(const shm::TraceEvents& trace) {
    uint64_t since_ns = trace.lost == 0 ? 0 : UINT64_MAX;
    for (const TraceEvent& event : trace.events) {
      since_ns = std::min(since_ns, event.end_ns);
    }
    return since_ns;
  }

  void AlignByMessages() {
    pairing_.Sort();
    std::map<std::pair<uint32_t, uint32_t>, int64_t> least;
    pairing_.ForEachPair([&](const MessageEnd& send, const MessageEnd& receive) {
      if (send.node != receive.node) {
        const int64_t took_ns = receive.at_ns - send.at_ns;
        const auto [at, is_new] = least.insert({{send.node, receive.node}, took_ns});
        at->second = std::min(at->second, took_ns);
      }
    });
    std::vector<NodeDelay> delays;
    for (const auto& [nodes, least_ns] : least) {
      delays.push_back({nodes.first, nodes.second, least_ns});
    }
    std::vector<uint64_t> errors_ns;
    for (const TimelineNode& node : nodes_) {
      errors_ns.push_back(node.clock.error_ns());
    }
    shifts_ = ShiftsByMessages(errors_ns, delays);
    int64_t largest_ns = 0;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].clock.Shift(shifts_.shift_ns[node]);
      largest_ns = std::max(largest_ns, std::abs(shifts_.shift_ns[node]));
      facts_.clock_error_ns = std::max(facts_.clock_error_ns, shifts_.error_ns[node]);
    }
    first_ns_ -= largest_ns;  // times are shown from there on: none may be negative
    end_ns_ += largest_ns;
    const bool is_all = timeline_.last_ns >= static_cast<uint64_t>(end_ns_ - first_ns_);
    cut_ns_ = is_all ? first_ns_ : end_ns_ - static_cast<int64_t>(timeline_.last_ns);
    facts_.length_ns = static_cast<uint64_t>(end_ns_ - cut_ns_);
  }

  // Keeps the ids of the messages that get arrows.
  void MatchMessages() {
    const auto at_ns = [this](const MessageEnd& end) {
      return end.at_ns + shifts_.shift_ns[end.node];
    };
    uint64_t pairs = 0;
    pairing_.ForEachPair([&](const MessageEnd& send, const MessageEnd& receive) {
      ++pairs;
      received_.push_back({send.id, at_ns(receive)});
      if (at_ns(send) < cut_ns_ || at_ns(receive) < cut_ns_) {
        return;
      }
      if (at_ns(receive) <= at_ns(send)) {
        ++facts_.backward;
        return;
      }
      arrows_.push_back(send.id);  // in order, as the ends are
    });
    facts_.arrows = arrows_.size();
    facts_.unmatched = pairing_.sends.size() + pairing_.receives.size() - 2 * pairs;
    pairing_ = {};
  }

  bool IsShown(const TraceEvent& event, const NodeClock& clock) const {
    return clock.ToLauncher(IsMessage(event) ? TimeOf(event) : event.end_ns) >= cut_ns_;
  }

  void Draw(uint32_t i) {
    TimelineRank rank;
    if (!Load(i, &rank)) {
      return;
    }
    const NodeClock& clock = nodes_[rank.node].clock;
    json_.NameProcess(ProcessOf(rank), RankName(timeline_, rank), rank.rank);
    std::map<uint32_t, std::vector<Shown>> by_thread;
    std::map<uint32_t, std::vector<Shown>> by_stream;
    std::map<std::pair<uint32_t, uint64_t>, const TraceEvent*> ended;  // calls, by thread and begin
    for (const TraceEvent& event : rank.trace.events) {
      if (event.kind == TraceKind::kCall) {
        ended[{event.thread, event.begin_ns}] = &event;
      }
    }
    for (const TraceEvent& event : rank.trace.events) {
      const bool is_work = event.kind == TraceKind::kWork;
      std::vector<Shown>& shown = is_work ? by_stream[event.group] : by_thread[event.thread];
      if (event.kind == TraceKind::kWait) {
        AddWait(event, rank, ended, &shown);
      } else if (IsShown(event, clock)) {
        shown.push_back({&event, event.kind, clock.ToLauncher(event.begin_ns),
                         clock.ToLauncher(event.end_ns), false});
      }
    }
    uint32_t position = 0;
    for (auto& [thread, shown] : by_thread) {
      if (!shown.empty()) {
        const bool is_only = by_thread.size() == 1;
        json_.NameTrack({ProcessOf(rank), thread},
                        is_only ? "calls" : "calls of thread " + std::to_string(thread),
                        position++);
        DrawThread(rank, thread, &shown);
      }
    }
    for (auto& [stream, shown] : by_stream) {
      if (!shown.empty()) {
        const uint32_t track = kFirstStream + stream % kFirstStream;
        json_.NameTrack({ProcessOf(rank), track}, "stream " + std::to_string(stream), position++);
        DrawThread(rank, track, &shown);
      }
    }
    DrawQueues(rank, position);
  }

  // A wait lasts until its call is over. That of a rank that has ended within it, or waits still,
  // lasts until the next call of its thread begins (the end of this one was lost), or until the
  // rank was seen last; and its call is shown with it.
  void AddWait(const TraceEvent& event, const TimelineRank& rank,
               const std::map<std::pair<uint32_t, uint64_t>, const TraceEvent*>& ended,
               std::vector<Shown>* shown) const {
    const NodeClock& clock = nodes_[rank.node].clock;
    const int64_t begin_ns = clock.ToLauncher(event.end_ns);
    const auto call = ended.find({event.thread, event.begin_ns});
    if (call != ended.end()) {
      const int64_t end_ns = std::max(begin_ns, clock.ToLauncher(call->second->end_ns));
      if (end_ns >= cut_ns_) {
        shown->push_back({&event, TraceKind::kWait, begin_ns, end_ns, false});
      }
      return;
    }
    const auto next = ended.upper_bound({event.thread, event.end_ns});
    const bool is_followed = next != ended.end() && next->first.first == event.thread;
    const int64_t seen_ns = std::min(clock.ToLauncher(rank.seen_ns), end_ns_);
    const int64_t end_ns =
        std::max(begin_ns, is_followed ? clock.ToLauncher(next->first.second) : seen_ns);
    if (end_ns >= cut_ns_) {
      shown->push_back({&event, TraceKind::kCall, clock.ToLauncher(event.begin_ns), end_ns, true});
      shown->push_back({&event, TraceKind::kWait, begin_ns, end_ns, true});
    }
  }

  // Slices of a track lie in each other: one that begins in another ends in it. A rank's clock
  // reads see to that, but for waits, and for what no correct rank writes.
  void DrawThread(const TimelineRank& rank, uint32_t thread, std::vector<Shown>* shown) {
    std::stable_sort(shown->begin(), shown->end(), [](const Shown& a, const Shown& b) {
      return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
    });
    std::vector<int64_t> around;  // ends of the slices that this one lies in
    const Track track{ProcessOf(rank), thread};
    for (const Shown& one : *shown) {
      while (!around.empty() && around.back() <= one.begin_ns) {
        around.pop_back();
      }
      const int64_t begin_ns = std::max(one.begin_ns, cut_ns_);
      const int64_t until_ns = around.empty() ? one.end_ns : std::min(one.end_ns, around.back());
      const int64_t end_ns = std::max(begin_ns, until_ns);
      around.push_back(end_ns);
      DrawSlice(rank, track, one, begin_ns, end_ns);
    }
  }

  void DrawSlice(const TimelineRank& rank, const Track& track, const Shown& one, int64_t begin_ns,
                 int64_t end_ns) {
    TraceEvent event = *one.event;
    event.kind = one.kind;
    Details details = DetailsOf(event, WayOf(rank, event));
    if (one.is_unfinished) {
      details.AddFlag("unfinished");
      if (rank.has_died) {
        details.Add("ended", "the rank died in it");
      }
    }
    json_.Slice(track, CategoryOf(event), NameOf(event), Shift(begin_ns), Shift(end_ns), details);
    if (HasId(event)) {
      const uint64_t id = IdOf(rank.rank, event);
      if (std::binary_search(arrows_.begin(), arrows_.end(), id)) {
        if (event.kind == TraceKind::kSend) {
          json_.ArrowFrom(track, id, Shift(begin_ns));
        } else {
          json_.ArrowTo(track, id, Shift(std::max(begin_ns, end_ns - 1)));  // still in the slice
        }
      }
    }
  }

  // How a message goes, as far as its sender, or the place of its ends, tells.
  std::string_view WayOf(const TimelineRank& rank, const TraceEvent& event) const {
    if (!IsMessage(event) || node_of_[static_cast<uint32_t>(event.peer)] == UINT32_MAX) {
      return "";
    }
    if (node_of_[static_cast<uint32_t>(event.peer)] == rank.node) {
      return "in the node";
    }
    return event.kind != TraceKind::kSend  ? "between nodes"
           : Has(event, shm::kTraceByLink) ? "direct link"
                                           : "daemons";
  }

  // Operations of a queue are shown again on a track of its own, each from where it was enqueued to
  // where the rank had waited for the queue.
  void DrawQueues(const TimelineRank& rank, uint32_t position) {
    const NodeClock& clock = nodes_[rank.node].clock;
    std::map<uint32_t, std::vector<const TraceEvent*>> open;
    std::set<uint32_t> named;
    const auto draw = [&](const TraceEvent& event, int64_t end_ns) {
      const int64_t begin_ns = std::max(clock.ToLauncher(event.begin_ns), cut_ns_);
      if (end_ns < cut_ns_) {
        return;
      }
      const Track track{ProcessOf(rank), kFirstQueue + event.group % kFirstQueue};
      if (named.insert(event.group).second) {
        json_.NameTrack(track, "queue " + std::to_string(event.group), position++);
      }
      Details details;
      details.Add("position", event.number);
      json_.Slice(track, "queue", "operation " + std::to_string(event.number), Shift(begin_ns),
                  Shift(std::max(begin_ns, end_ns)), details);
    };
    const auto close = [&](std::vector<const TraceEvent*>* events, int64_t end_ns) {
      for (size_t i = 0; i < events->size(); ++i) {
        const bool is_last = i + 1 == events->size();
        const int64_t next_ns = is_last ? end_ns : clock.ToLauncher((*events)[i + 1]->begin_ns);
        draw(*(*events)[i], std::min(end_ns, next_ns));
      }
      events->clear();
    };
    for (const TraceEvent& event : rank.trace.events) {
      if (event.kind == TraceKind::kQueued) {
        open[event.group].push_back(&event);
      } else if (event.kind == TraceKind::kQueueWait) {
        close(&open[event.group], clock.ToLauncher(event.end_ns));
      }
    }
    for (auto& [queue, events] : open) {
      close(&events, end_ns_);
    }
  }

  static uint32_t ProcessOf(const TimelineRank& rank) {
    return rank.rank + 1;
  }  // 0 is the kernel's

  uint64_t Shift(int64_t launcher_ns) const {
    return static_cast<uint64_t>(std::max<int64_t>(launcher_ns - first_ns_, 0));
  }

  Details Facts() const {
    Details facts;
    facts.Add("job", timeline_.job).Add("program", timeline_.program).Add("ranks", timeline_.size);
    facts.Add("ranks_missing", facts_.missing + (timeline_.size - timeline_.ranks));
    facts.Add("arrows", facts_.arrows).Add("messages_unmatched", facts_.unmatched);
    facts.Add("messages_backward", facts_.backward).Add("events_lost", facts_.lost);
    facts.Add("daemons", facts_.daemons).Add("daemons_missing", facts_.daemons_missing);
    facts.Add("daemon_events_lost", facts_.daemon_events_lost);
    facts.Add("daemon_events_crowded", facts_.daemon_events_crowded);
    facts.Add("arrows_through_daemons", facts_.through_daemons);
    if (facts_.clock_error_ns == UINT64_MAX) {
      facts.Add("clock_error_ns", "not known");
    } else {
      facts.Add("clock_error_ns", facts_.clock_error_ns);
    }
    return facts;
  }

  const Timeline& timeline_;
  std::vector<TimelineNode> nodes_;
  TimelineDaemons daemons_;
  TraceJson json_;
  TimelineFacts& facts_;
  std::vector<uint32_t> node_of_;  // by rank; UINT32_MAX: not known
  Pairing pairing_;
  ClockShifts shifts_;
  std::vector<uint64_t> arrows_;  // sorted
  std::vector<std::pair<uint64_t, int64_t>>
      received_;  // messages by id, sorted: when they had come
  int64_t first_ns_ = INT64_MAX;
  int64_t end_ns_ = INT64_MIN;
  int64_t cut_ns_ = 0;
};

}  // namespace

bool WriteTimeline(const Timeline& timeline, const TraceJson::Write& write, TimelineFacts* facts) {
  *facts = {};
  return Drawing(timeline, write, facts).Run();
}

}  // namespace ferry::tools
