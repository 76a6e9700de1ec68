#include "mpi/mpi_t/events.h"

#include <algorithm>
#include <utility>

#include "client/api/message_watch.h"
#include "common/clock.h"
#include "include/ferry/ferry.h"
#include "mpi/base/connection.h"
#include "mpi/mpi_t/watched_calls.h"
#include "shm/counters.h"

namespace ferry::mpi {
namespace {

// The event that a callback of the calling thread was called with.
constinit thread_local const EventData* current_event = nullptr;
// When the calling thread's collective began.
constinit thread_local uint64_t collective_begin_ns = 0;

// The place of a level among EventRegistration::callbacks_; -1: it is none.
int PlaceOf(MPI_T_cb_safety level) {
  switch (level) {
    case MPI_T_CB_REQUIRE_NONE:
      return 0;
    case MPI_T_CB_REQUIRE_MPI_RESTRICTED:
      return 1;
    case MPI_T_CB_REQUIRE_THREAD_SAFE:
      return 2;
    case MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE:
      return 3;
  }
  return -1;
}

uint64_t Counter(shm::Statistic statistic) {
  return ferry_counter_value(static_cast<int>(statistic));
}

}  // namespace

MPI_T_cb_safety LevelOf(bool is_free) {
  return Threads::AreAllowed() ? MPI_T_CB_REQUIRE_THREAD_SAFE
         : is_free             ? MPI_T_CB_REQUIRE_NONE
                               : MPI_T_CB_REQUIRE_MPI_RESTRICTED;
}

const EventRegistration::Callback* EventRegistration::For(MPI_T_cb_safety required) const {
  for (int place = PlaceOf(required); place < kLevels; ++place) {
    const Callback& callback = callbacks_[static_cast<size_t>(place)];
    if (callback.function != nullptr) {
      return &callback;
    }
  }
  return nullptr;
}

EventHub& EventHub::Instance() {
  static auto& hub = *new EventHub();
  return hub;
}

// ---- Registrations ------------------------------------------------------------------------------

EventHub::Registrations::iterator EventHub::Locate(MPI_T_event_registration handle) {
  return std::find_if(registrations_.begin(), registrations_.end(),
                      [handle](const auto& each) { return each->handle() == handle; });
}

MPI_T_event_registration EventHub::Allocate(EventKind kind) {
  std::lock_guard lock(mutex_);
  registrations_.push_back(std::make_shared<EventRegistration>(kind));
  return registrations_.back()->handle();
}

bool EventHub::Exists(MPI_T_event_registration handle) {
  std::lock_guard lock(mutex_);
  return Locate(handle) != registrations_.end();
}

bool EventHub::Register(MPI_T_event_registration handle, MPI_T_cb_safety level,
                        MPI_T_event_cb_function* function, void* user_data) {
  std::lock_guard lock(mutex_);
  const auto found = Locate(handle);
  if (found == registrations_.end()) {
    return false;
  }
  EventRegistration& registration = **found;
  if (!registration.has_callback()) {
    registration.since_ns_ = MonotonicNs();
    ++watchers_;
  }
  registration.callbacks_[static_cast<size_t>(PlaceOf(level))] = {function, user_data};
  Follow();
  return true;
}

bool EventHub::SetDroppedHandler(MPI_T_event_registration handle,
                                 MPI_T_event_dropped_cb_function* handler) {
  std::lock_guard lock(mutex_);
  const auto found = Locate(handle);
  if (found == registrations_.end()) {
    return false;
  }
  (*found)->dropped_handler_ = handler;
  return true;
}

bool EventHub::Free(MPI_T_event_registration handle, MPI_T_event_free_cb_function* function,
                    void* user_data) {
  std::unique_lock lock(mutex_);
  const auto found = Locate(handle);
  if (found == registrations_.end()) {
    return false;
  }
  const std::shared_ptr<EventRegistration> registration = *found;
  registrations_.erase(found);
  registration->is_freed_ = true;
  if (registration->has_callback()) {
    --watchers_;
    Follow();
  }
  if (registration->is_in_use_) {  // Call goes on with it
    registration->free_function_ = function;
    registration->free_data_ = user_data;
    return true;
  }
  lock.unlock();
  if (function != nullptr) {
    function(handle, MPI_T_CB_REQUIRE_NONE, user_data);
  }
  return true;
}

void EventHub::FreeAll() {
  std::lock_guard lock(mutex_);
  for (const auto& registration : registrations_) {
    registration->is_freed_ = true;
    watchers_ -= registration->has_callback() ? 1 : 0;
  }
  registrations_.clear();
  Follow();
}

const EventData* EventHub::Find(MPI_T_event_instance instance) {
  return instance != nullptr && reinterpret_cast<const EventData*>(instance) == current_event
             ? current_event
             : nullptr;
}

// ---- What is watched ----------------------------------------------------------------------------

void EventHub::Watch() {
  std::lock_guard lock(mutex_);
  ++watchers_;
  Follow();
}

void EventHub::Unwatch() {
  std::lock_guard lock(mutex_);
  --watchers_;
  Follow();
}

void EventHub::Follow() {
  if (watchers_ == 0) {
    queue_.clear();
  }
  // Pairs with CurrentToolWatch.
  tool_watch.store(watchers_ != 0 ? this : nullptr, std::memory_order_release);
  const bool is_wanted = watchers_ != 0 && front_end != nullptr;
  if (is_wanted == is_watching_) {
    return;
  }
  is_watching_ = is_wanted;
  if (is_wanted) {
    seen_unexpected_ = missed_unexpected_ = missed_matches_ = 0;
    first_unexpected_ = Counter(shm::Statistic::kUnexpectedMessages);
    first_worker_matches_ = Counter(shm::Statistic::kWorkerMatches);
    ferry_front_end_watch_messages(this);
    WatchCalls();
  } else {
    ferry_front_end_watch_messages(nullptr);
    UnwatchCalls();
  }
}

void EventHub::Connected() {
  std::lock_guard lock(mutex_);
  is_watching_ = false;  // not this connection yet
  Follow();
}

void EventHub::Disconnecting() {
  Deliver(LevelOf(true));
  std::lock_guard lock(mutex_);
  if (is_watching_) {
    is_watching_ = false;
    ferry_front_end_watch_messages(nullptr);
    UnwatchCalls();
  }
}

void EventHub::BeginMark(Mark* mark) {
  client::QueueLengths lengths;
  ferry_front_end_queue_lengths(&lengths);
  {
    std::lock_guard lock(mutex_);
    mark->most = mark->is_unexpected ? lengths.unexpected : lengths.posted;
    if (std::find(marks_.begin(), marks_.end(), mark) != marks_.end()) {
      return;
    }
    marks_.push_back(mark);
  }
  Watch();
}

void EventHub::EndMark(Mark* mark) {
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find(marks_.begin(), marks_.end(), mark);
    if (found == marks_.end()) {
      return;
    }
    marks_.erase(found);
  }
  Unwatch();
}

// The daemon's worker may have kept messages since an engine of this process was last run.
uint64_t EventHub::Most(const Mark& mark) {
  client::QueueLengths lengths;
  ferry_front_end_queue_lengths(&lengths);
  QueuesAre(lengths.posted, lengths.unexpected);
  std::lock_guard lock(mutex_);
  return mark.most;
}

void EventHub::QueuesAre(uint32_t posted, uint32_t unexpected) {
  std::lock_guard lock(mutex_);
  for (Mark* const mark : marks_) {
    mark->most = std::max<uint64_t>(mark->most, mark->is_unexpected ? unexpected : posted);
  }
}

void EventHub::Arrived(const shm::MessageSeen& message, bool is_expected) {
  std::lock_guard lock(mutex_);
  seen_unexpected_ += is_expected ? 0 : 1;
  NoteLocked(MessageEvent(EventKind::kMessageArrived, message, is_expected));
}

void EventHub::Matched(const shm::MessageSeen& message, bool was_expected) {
  Note(MessageEvent(EventKind::kMessageMatched, message, was_expected));
}

void EventHub::WaitBegun(const shm::CallDescription& call) {
  Note(CallEvent(EventKind::kWaitBegun, call));
}

void EventHub::WaitEnded(const shm::CallDescription& call, uint64_t waited_ns) {
  waited_ns_.fetch_add(waited_ns, std::memory_order_relaxed);
  Note(CallEvent(EventKind::kWaitEnded, call));
}

void EventHub::CollectiveEntered(const shm::CallDescription& call) {
  if ((call.flags & shm::kCallNonblocking) == 0) {
    collective_begin_ns = MonotonicNs();
  }
  Note(CallEvent(EventKind::kCollectiveEntered, call));
  Deliver(LevelOf(false));
}

void EventHub::CollectiveLeft(const shm::CallDescription& call) {
  if ((call.flags & shm::kCallNonblocking) == 0 && collective_begin_ns != 0) {
    in_collectives_ns_.fetch_add(MonotonicNs() - collective_begin_ns, std::memory_order_relaxed);
    collective_begin_ns = 0;
  }
  Note(CallEvent(EventKind::kCollectiveLeft, call));
  Deliver(LevelOf((call.flags & shm::kCallNonblocking) == 0));
}

// ---- Noting -------------------------------------------------------------------------------------

void EventHub::Note(EventData event) {
  std::lock_guard lock(mutex_);
  NoteLocked(event);
}

// Times are taken under the lock, so that they grow along the queue.
void EventHub::NoteLocked(const EventData& event) {
  const bool is_wanted = std::any_of(
      registrations_.begin(), registrations_.end(),
      [&](const auto& each) { return each->kind == event.kind && each->has_callback(); });
  if (!is_wanted) {
    return;
  }
  if (queue_.size() >= kMostQueued) {
    DropFor(event.kind, 1);
  } else {
    queue_.push_back(event);
    queue_.back().time_ns = MonotonicNs();
  }
  has_work_.store(true, std::memory_order_release);
}

void EventHub::DropFor(EventKind kind, uint64_t count) {
  for (const auto& each : registrations_) {
    if (each->kind == kind && each->has_callback()) {
      each->dropped_ += count;
      has_work_.store(true, std::memory_order_release);
    }
  }
}

// Drops what the daemon's worker has done for this rank. The engines of this process say that they
// keep a message before they count it, so that none is taken for missed.
void EventHub::LookForMissed() {
  if (!is_watching_) {
    return;
  }
  const uint64_t matches = Counter(shm::Statistic::kWorkerMatches) - first_worker_matches_;
  const uint64_t kept = Counter(shm::Statistic::kUnexpectedMessages) - first_unexpected_;
  const uint64_t missed = kept > seen_unexpected_ ? kept - seen_unexpected_ : 0;
  const uint64_t new_matches = matches > missed_matches_ ? matches - missed_matches_ : 0;
  const uint64_t new_kept = missed > missed_unexpected_ ? missed - missed_unexpected_ : 0;
  missed_matches_ += new_matches;
  missed_unexpected_ += new_kept;
  if (new_matches + new_kept != 0) {
    DropFor(EventKind::kMessageArrived, new_matches + new_kept);
  }
  if (new_matches != 0) {
    DropFor(EventKind::kMessageMatched, new_matches);
  }
}

// ---- Delivery -----------------------------------------------------------------------------------

EventHub::Registrations EventHub::OfEvent(const EventData& event) const {
  Registrations found;
  for (const auto& each : registrations_) {
    if (each->kind == event.kind && each->has_callback() && each->since_ns_ <= event.time_ns) {
      found.push_back(each);
    }
  }
  return found;
}

// Calls the registration's handler, if it has missed events, then its callback with the event, if
// that is not null. Without the lock meanwhile.
void EventHub::Call(std::unique_lock<std::mutex>* lock, EventRegistration& registration,
                    const EventData* event, MPI_T_cb_safety required) {
  const EventRegistration::Callback* const chosen = registration.For(required);
  if (registration.is_freed_ || (event != nullptr && chosen == nullptr)) {
    registration.dropped_ += 1;
    return;
  }
  const EventRegistration::Callback callback =
      chosen != nullptr ? *chosen : *registration.For(MPI_T_CB_REQUIRE_NONE);
  MPI_T_event_dropped_cb_function* const handler = registration.dropped_handler_;
  const uint64_t dropped = std::exchange(registration.dropped_, 0);
  registration.is_in_use_ = true;
  lock->unlock();
  if (dropped != 0 && handler != nullptr) {
    handler(static_cast<MPI_Count>(dropped), registration.handle(), 0, required,
            callback.user_data);
  }
  lock->lock();
  if (event != nullptr && !registration.is_freed_) {
    lock->unlock();
    current_event = event;
    callback.function(reinterpret_cast<MPI_T_event_instance>(const_cast<EventData*>(event)),
                      registration.handle(), required, callback.user_data);
    current_event = nullptr;
    lock->lock();
  }
  registration.is_in_use_ = false;
  if (registration.free_function_ != nullptr) {
    MPI_T_event_free_cb_function* const function =
        std::exchange(registration.free_function_, nullptr);
    lock->unlock();
    function(registration.handle(), required, registration.free_data_);
    lock->lock();
  }
}

void EventHub::Deliver(MPI_T_cb_safety required) {
  std::unique_lock lock(mutex_);
  LookForMissed();
  if (is_delivering_ || !has_work_.load(std::memory_order_acquire)) {
    return;
  }
  is_delivering_ = true;
  bool has_stopped = false;
  // Events that callbacks cause meanwhile wait for the next place.
  for (size_t left = queue_.size(); left != 0 && !queue_.empty() && !has_stopped; --left) {
    const EventData event = queue_.front();
    const Registrations takers = OfEvent(event);
    // A place that needs less comes soon, unless several threads may call.
    has_stopped = required == MPI_T_CB_REQUIRE_MPI_RESTRICTED &&
                  std::any_of(takers.begin(), takers.end(),
                              [required](const auto& each) { return !each->For(required); });
    if (!has_stopped) {
      queue_.pop_front();
      for (const auto& taker : takers) {
        Call(&lock, *taker, &event, required);
      }
    }
  }
  for (const auto& each : Registrations(registrations_)) {
    if (each->dropped_ != 0 && each->dropped_handler_ != nullptr) {
      Call(&lock, *each, nullptr, required);
    }
  }
  has_work_.store(!queue_.empty(), std::memory_order_release);
  is_delivering_ = false;
}

}  // namespace ferry::mpi
