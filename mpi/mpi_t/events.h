// Events of the tool interface (MPI 5.0, section 15.3.8): what tools have registered for, and how
// it reaches their callbacks.
//
// Events are noted where they happen, under locks, and callbacks run later: at places of a call
// where a callback may do what its level says. While no callback is registered and no variable is
// measured, nothing is watched, and calls cost what they always do.
//
// A place where the program's call holds nothing needs MPI_T_CB_REQUIRE_NONE, others need
// MPI_T_CB_REQUIRE_MPI_RESTRICTED; where several threads may call, all need
// MPI_T_CB_REQUIRE_THREAD_SAFE. The callback of the lowest level that suffices is called. An event
// waits for a place where its callback suffices, and those behind it wait, too; it is dropped where
// there is no such place, and if too many wait (kMostQueued).
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "mpi/base/tool_watch.h"
#include "mpi/mpi_t/event_types.h"
#include "shm/message_watch.h"

namespace ferry::mpi {

// The events that wait for their callbacks at most.
inline constexpr size_t kMostQueued = 4096;

// A tool's registration for a type of events.
class EventRegistration {
 public:
  explicit EventRegistration(EventKind kind) : kind(kind) {}
  EventRegistration(const EventRegistration&) = delete;
  EventRegistration& operator=(const EventRegistration&) = delete;

  MPI_T_event_registration handle() { return reinterpret_cast<MPI_T_event_registration>(this); }

  const EventKind kind;

 private:
  friend class EventHub;
  struct Callback {
    MPI_T_event_cb_function* function = nullptr;
    void* user_data = nullptr;
  };
  static constexpr int kLevels = 4;

  // The callback for a place that needs `required`; null: there is none.
  const Callback* For(MPI_T_cb_safety required) const;
  bool has_callback() const { return For(MPI_T_CB_REQUIRE_NONE) != nullptr; }

  std::array<Callback, kLevels> callbacks_;
  MPI_T_event_dropped_cb_function* dropped_handler_ = nullptr;
  uint64_t since_ns_ = 0;  // of its first callback: earlier events are not its own
  uint64_t dropped_ = 0;   // since the handler was last called
  bool is_freed_ = false;
  bool is_in_use_ = false;  // a callback of it runs
  MPI_T_event_free_cb_function* free_function_ = nullptr;
  void* free_data_ = nullptr;
};

// The only one of the process.
class EventHub final : public ToolWatch, public shm::MessageWatch {
 public:
  static EventHub& Instance();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // ---- For the calls of tools -------------------------------------------------------------------
  MPI_T_event_registration Allocate(EventKind kind);
  bool Exists(MPI_T_event_registration handle);
  // Each returns false if there is no such registration.
  bool Register(MPI_T_event_registration handle, MPI_T_cb_safety level,
                MPI_T_event_cb_function* function, void* user_data);
  bool SetDroppedHandler(MPI_T_event_registration handle, MPI_T_event_dropped_cb_function* handler);
  // `function` may be null. It is called once no callback of the registration runs any more: here,
  // or by the thread that runs one.
  bool Free(MPI_T_event_registration handle, MPI_T_event_free_cb_function* function,
            void* user_data);
  // At the last MPI_T_finalize. Calls no free function.
  void FreeAll();
  // The event that the calling thread's callback was called with; null: `instance` is none.
  static const EventData* Find(MPI_T_event_instance instance);

  // ---- For variables that are measured ----------------------------------------------------------
  // Watches until as many calls of Unwatch.
  void Watch();
  void Unwatch();
  // Sums since the process began, while a tool watched.
  uint64_t waited_ns() const { return waited_ns_.load(std::memory_order_relaxed); }
  uint64_t in_collectives_ns() const { return in_collectives_ns_.load(std::memory_order_relaxed); }
  // The most that there have been since BeginMark, while `mark` is among those that are watched.
  struct Mark {
    bool is_unexpected;  // else of posted receives
    uint64_t most = 0;
  };
  void BeginMark(Mark* mark);  // from what there are now
  void EndMark(Mark* mark);
  uint64_t Most(const Mark& mark);

  // ---- For what is watched ----------------------------------------------------------------------
  // Calls callbacks at a place that needs `required`. Nothing, if a callback runs.
  void Deliver(MPI_T_cb_safety required);
  void WaitBegun(const shm::CallDescription& call);
  void WaitEnded(const shm::CallDescription& call, uint64_t waited_ns);

  void Connected() override;
  void Disconnecting() override;
  void CollectiveEntered(const shm::CallDescription& call) override;
  void CollectiveLeft(const shm::CallDescription& call) override;

  void Arrived(const shm::MessageSeen& message, bool is_expected) override;
  void Matched(const shm::MessageSeen& message, bool was_expected) override;
  void QueuesAre(uint32_t posted, uint32_t unexpected) override;

 private:
  using Registrations = std::vector<std::shared_ptr<EventRegistration>>;

  EventHub() = default;
  ~EventHub() = default;

  Registrations::iterator Locate(MPI_T_event_registration handle);
  void Note(EventData event);
  void NoteLocked(const EventData& event);
  // Lets go of the connection's calls, or takes hold of them, as `watchers_` and the connection
  // want it.
  void Follow();
  void LookForMissed();
  Registrations OfEvent(const EventData& event) const;
  void Call(std::unique_lock<std::mutex>* lock, EventRegistration& registration,
            const EventData* event, MPI_T_cb_safety required);
  void DropFor(EventKind kind, uint64_t count);

  std::mutex mutex_;  // not held while callbacks run
  Registrations registrations_;
  std::deque<EventData> queue_;
  std::atomic<bool> has_work_{false};  // the queue is not empty, or something was dropped
  bool is_delivering_ = false;
  int watchers_ = 0;
  bool is_watching_ = false;
  std::vector<Mark*> marks_;
  uint32_t posted_ = 0;
  uint32_t unexpected_ = 0;
  // Messages that were kept, as this process saw it, and the rank's counters when it began to look.
  uint64_t seen_unexpected_ = 0;
  uint64_t first_unexpected_ = 0;
  uint64_t first_worker_matches_ = 0;
  uint64_t missed_unexpected_ = 0;
  uint64_t missed_matches_ = 0;
  std::atomic<uint64_t> waited_ns_{0};
  std::atomic<uint64_t> in_collectives_ns_{0};
};

// The level that a place of a call needs which holds nothing (`is_free`), or not.
MPI_T_cb_safety LevelOf(bool is_free);

}  // namespace ferry::mpi
