#include "daemon/admin/why_streams.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "daemon/jobs/pair_book.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/queue_steps.h"

namespace ferry::daemon {
namespace {

using shm::QueueStep;
using shm::QueueStepKind;

using Place = std::pair<uint32_t, uint64_t>;  // region, offset

Place PlaceOf(const RegionPlace& end) { return {end.region->id, end.offset}; }

// The steps of the queue that a rank here waits for; none: it waits for none, or tells none.
std::vector<QueueStep> StepsOf(uint32_t rank, WhySteps* steps) {
  const Session* const session = steps->SessionOf(rank);
  if (session == nullptr) {
    return {};
  }
  for (const shm::CallView& call : steps->Look(rank).view.calls.calls) {
    const auto place = call.name == shm::CallName::kFerryQueueWait && call.has_object
                           ? shm::PlaceOf(call.object)
                           : std::nullopt;
    const auto region = place ? session->FindRegion(place->region) : nullptr;
    if (region != nullptr && region->kind == RegionKind::kHostHeap && !region->lent &&
        !region->by_stream && place->address % alignof(shm::QueueStepsLayout) == 0 &&
        region->IsInside(place->address, sizeof(shm::QueueStepsLayout))) {
      return shm::ReadQueueSteps(
          *reinterpret_cast<const shm::QueueStepsLayout*>(region->mapping.base() + place->address));
    }
  }
  return {};
}

// A rank's queue, as far as it can tell anything.
struct Queue {
  std::vector<QueueStep> steps;
  std::map<Place, PairBook::EndView> ends;
  const QueueStep* wait = nullptr;  // the first one whose message is not complete

  const PairBook::EndView* EndOf(const QueueStep& step) const {
    const auto found = ends.find({step.end.region, step.end.address});
    return found == ends.end() ? nullptr : &found->second;
  }
};

uint64_t ValueOf(const shm::PairLayout& end) {
  return shm::Counter(const_cast<shm::CounterLayout*>(&end.done)).Value();
}

bool IsComplete(const shm::PairLayout& end, uint64_t round) {
  return ValueOf(end) >= round;  // or failed
}

// Messages that are complete at this end; a failure does not undo them.
uint64_t MessagesOf(const shm::PairLayout& end) {
  const uint64_t value = ValueOf(end);
  return value >= shm::kCounterFailure ? value - shm::kCounterFailure : value;
}

// Returns true if that start of an end stands behind the queue's first wait that is not over.
bool IsHeld(const Queue& queue, const Place& end, uint64_t round) {
  return queue.wait != nullptr &&
         std::any_of(queue.steps.begin(), queue.steps.end(), [&](const QueueStep& step) {
           return step.kind == QueueStepKind::kStart && step.round == round &&
                  Place(step.end.region, step.end.address) == end &&
                  step.position > queue.wait->position;
         });
}

Queue ReadQueue(uint32_t rank, WhySteps* steps) {
  Queue queue;
  queue.steps = StepsOf(rank, steps);
  if (queue.steps.empty() || steps->job().matches == nullptr) {
    return queue;
  }
  for (PairBook::EndView& end : steps->job().matches->EndsOf(rank)) {
    queue.ends.emplace(PlaceOf(end.end), std::move(end));
  }
  for (const QueueStep& step : queue.steps) {
    const PairBook::EndView* const end =
        step.kind == QueueStepKind::kWait ? queue.EndOf(step) : nullptr;
    if (end != nullptr && !IsComplete(end->layout(), step.round)) {
      queue.wait = &step;
      break;
    }
  }
  return queue;
}

}  // namespace

std::optional<StreamWait> FindStreamWait(uint32_t rank, WhySteps* steps) {
  const Queue own = ReadQueue(rank, steps);
  if (own.wait == nullptr) {
    return std::nullopt;
  }
  const PairBook::EndView& end = *own.EndOf(*own.wait);
  StreamWait wait{end.peer, end.tag, end.is_send, false, end.other.region == nullptr};
  // The end of a ready send needs no start of the receive.
  const bool needs_other = !end.is_send || end.mode != shm::SendMode::kReady;
  if (end.other.region == nullptr || !needs_other) {
    return wait;
  }
  // Both ends are started equally often: the message needs the start of the same number.
  wait.is_peer_held = IsHeld(ReadQueue(end.peer, steps), PlaceOf(end.other), own.wait->round);
  return wait;
}

PairsTo FindPairsTo(uint32_t rank, uint32_t waiter, WhySteps* steps) {
  PairsTo found;
  if (steps->SessionOf(rank) == nullptr || steps->job().matches == nullptr) {
    return found;
  }
  const Queue queue = ReadQueue(rank, steps);
  size_t held = 0;
  size_t pairs = 0;
  for (const PairBook::EndView& end : steps->job().matches->EndsOf(rank)) {
    if (!end.is_send || end.peer != waiter) {
      continue;
    }
    ++pairs;
    const uint64_t messages = MessagesOf(end.layout());
    found.sent += messages;
    if (IsHeld(queue, PlaceOf(end.end), messages + 1)) {
      ++held;
    } else if (shm::LoadAcquire(end.layout().armed) > messages) {  // pairs with Queues::Start
      found.may_send = true;
    }
  }
  found.is_held = pairs != 0 && held == pairs;
  return found;
}

uint64_t PairsReceived(uint32_t rank, uint32_t peer, const WhySteps& steps) {
  uint64_t received = 0;
  if (steps.SessionOf(rank) != nullptr && steps.job().matches != nullptr) {
    for (const PairBook::EndView& end : steps.job().matches->EndsOf(rank)) {
      received += !end.is_send && end.peer == peer ? MessagesOf(end.layout()) : 0;
    }
  }
  return received;
}

std::string StreamWaitText(const StreamWait& wait) {
  return (wait.is_send ? "to send to " : "to receive from ") + RankName(wait.peer) + ", tag " +
         std::to_string(wait.tag);
}

}  // namespace ferry::daemon
