#include "tools/profile/timeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "shm/call_record.h"

namespace ferry::tools {
namespace {

using shm::TraceEvent;
using shm::TraceKind;

// Tracks of queues, and behind them of streams, come behind those of threads, whose ids are smaller
// (PID_MAX_LIMIT is 2^22).
constexpr uint32_t kFirstQueue = 1U << 24;
constexpr uint32_t kFirstStream = 1U << 25;

bool Has(const TraceEvent& event, uint8_t flag) { return (event.flags & flag) != 0; }

bool IsMessage(const TraceEvent& event) {
  return event.kind == TraceKind::kSend || event.kind == TraceKind::kReceive;
}

bool IsOfQueue(const TraceEvent& event) {
  return event.kind == TraceKind::kQueued || event.kind == TraceKind::kQueueWait;
}

// ---- Messages -----------------------------------------------------------------------------------

// One end of a message.
struct MessageEnd {
  uint64_t id = 0;  // both ends have it, and no other message
  int64_t at_ns = 0;
  uint32_t node = 0;
};

uint64_t Mixed(uint64_t value) {  // the finalizer of MurmurHash3
  value ^= value >> 33;
  value *= 0xff51'afd7'ed55'8ccd;
  value ^= value >> 33;
  value *= 0xc4ce'b9fe'1a85'ec53;
  return value ^ value >> 33;
}

uint64_t IdOf(uint32_t rank, const TraceEvent& event) {
  const auto peer = static_cast<uint32_t>(event.peer);
  const bool is_send = event.kind == TraceKind::kSend;
  const uint64_t ends = is_send ? uint64_t{rank} << 32 | peer : uint64_t{peer} << 32 | rank;
  const uint64_t kind = uint64_t{event.group} << 32 | static_cast<uint32_t>(event.tag);
  return Mixed(Mixed(Mixed(ends) + kind) + event.number);
}

bool HasId(const TraceEvent& event) {
  return IsMessage(event) && event.number != 0 && !Has(event, shm::kTraceFailed);
}

// A sender is at the message when it starts to send, a receiver when all has come.
uint64_t TimeOf(const TraceEvent& event) {
  return event.kind == TraceKind::kSend ? event.begin_ns : event.end_ns;
}

// Numbers that follow each other may pass 2^32 in between.
bool IsBefore(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// A rank counts messages when they have come, which large ones do late. Of those that cannot
// overtake each other, the first went to the receive that was posted first.
void OrderReceives(std::vector<TraceEvent>* events) {
  std::vector<TraceEvent*> receives;
  for (TraceEvent& event : *events) {
    if (event.kind == TraceKind::kReceive && HasId(event)) {
      receives.push_back(&event);
    }
  }
  const auto stream_of = [](const TraceEvent* one) {
    return std::tuple(one->peer, one->group, one->tag);
  };
  std::stable_sort(receives.begin(), receives.end(), [&](const auto* a, const auto* b) {
    return stream_of(a) != stream_of(b) ? stream_of(a) < stream_of(b)
                                        : IsBefore(a->order, b->order);
  });
  for (size_t begin = 0; begin < receives.size();) {
    size_t end = begin;
    std::vector<uint32_t> numbers;
    for (; end < receives.size() && stream_of(receives[end]) == stream_of(receives[begin]); ++end) {
      numbers.push_back(receives[end]->number);
    }
    std::sort(numbers.begin(), numbers.end(), IsBefore);
    for (size_t i = begin; i < end; ++i) {
      receives[i]->number = numbers[i - begin];
    }
    begin = end;
  }
}

// The messages of which both ends are there once.
struct Pairing {
  std::vector<MessageEnd> sends;
  std::vector<MessageEnd> receives;

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

  void Sort() {
    for (std::vector<MessageEnd>* ends : {&sends, &receives}) {
      std::sort(ends->begin(), ends->end(),
                [](const MessageEnd& a, const MessageEnd& b) { return a.id < b.id; });
    }
  }
};

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
      : timeline_(timeline), nodes_(timeline.nodes), json_(write), facts_(*facts) {}

  bool Run() {
    node_of_.assign(timeline_.size, UINT32_MAX);
    for (uint32_t i = 0; i < timeline_.ranks; ++i) {
      Collect(i);
    }
    if (end_ns_ < first_ns_) {  // no rank has an event
      first_ns_ = end_ns_ = 0;
    }
    AlignByMessages();
    MatchMessages();
    for (uint32_t i = 0; i < timeline_.ranks && json_.is_wanted(); ++i) {
      Draw(i);
    }
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
    for (const TraceEvent& event : rank.trace.events) {
      first_ns_ = std::min(first_ns_, clock.ToLauncher(event.begin_ns));
      end_ns_ = std::max(end_ns_, clock.ToLauncher(event.end_ns));
      if (HasId(event)) {
        auto& ends = event.kind == TraceKind::kSend ? pairing_.sends : pairing_.receives;
        ends.push_back({IdOf(rank.rank, event), clock.ToLauncher(TimeOf(event)), rank.node});
      }
    }
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
    if (facts_.clock_error_ns == UINT64_MAX) {
      facts.Add("clock_error_ns", "not known");
    } else {
      facts.Add("clock_error_ns", facts_.clock_error_ns);
    }
    return facts;
  }

  const Timeline& timeline_;
  std::vector<TimelineNode> nodes_;
  TraceJson json_;
  TimelineFacts& facts_;
  std::vector<uint32_t> node_of_;  // by rank; UINT32_MAX: not known
  Pairing pairing_;
  ClockShifts shifts_;
  std::vector<uint64_t> arrows_;  // sorted
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
