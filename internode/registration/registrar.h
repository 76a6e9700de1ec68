// Pins memory for the NIC, and unpins it, on a thread of its own: gigabytes take seconds, and only
// the users of that memory should wait for them. Where the transport pins nothing
// (Capabilities::pins), memory is registered at once, by the caller; the thread starts when there
// is something for it to do.
//
// One thread does all of it. It unpins before it pins: unpinning makes room, and memory whose
// unpinning was asked for first is unpinned before more is pinned. An owner that pins much does not
// delay the others: owners (PinRequest::owner) take turns, and the requests of one owner are
// carried out in order. Each task may hold the memory, so that it stays mapped until the NIC has
// let go of it. A pinning that has begun cannot be stopped; one that is no longer wanted is undone.
// The pinned memory belongs to a PinnedMemory (pinned_memory.h), whose end asks for the unpinning.
//
// Calling thread: the progress thread. Only the destructor blocks: it first does all that was asked
// for, save pinnings that have not begun.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class PinnedMemory;
class Registrar;

// Memory to pin.
struct PinRequest {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  transport::Access access = transport::Access::kLocal;
  std::shared_ptr<const void> memory = {};  // keeps it mapped; null if the caller sees to that
  uint64_t owner = 0;                       // each owner has turns of its own
  std::function<void()> prepare = {};       // called first, by the registrar's thread; or empty
  // Pins the memory, on that thread, in place of Transport::PrepareMemory; may be empty.
  std::function<StatusOr<std::unique_ptr<transport::Registration>>()> pin = {};
  std::optional<transport::DeviceMemory> device = {};  // what it is, if no CPU's
  transport::Transport* nic = nullptr;                 // one of Transport::Rails; null: all of them
  // Called from Registrar::Collect when it is pinned, or could not be, unless its PinnedMemory has
  // gone. May be empty.
  std::function<void()> on_end = {};
};

// Memory on its way to the NIC, and there.
struct Pinning : PinRequest {
  explicit Pinning(PinRequest request) : PinRequest(std::move(request)) {}

  std::atomic<bool> unwanted = false;

  // Written by the registrar's thread, until Collect hands it out.
  Status status;
  std::unique_ptr<transport::Registration> registration;  // null if it failed, or was unwanted

  // Used by the progress thread.
  std::shared_ptr<Registrar*> registrar;
  bool has_ended = false;          // `status` says how
  bool is_given_up = false;        // on_end is not called any more
  transport::MemoryRegion region;  // pinned
};

// Becomes ready when its last holder has let go of it: then the NIC has nothing of that memory.
struct UnpinSignal {
  ~UnpinSignal() { done.set_value(); }
  std::promise<void> done;
};

class Registrar {
 public:
  // The transport outlives this. `ring` (called on any thread) ends a sleep of the progress thread.
  Registrar(transport::Transport& transport, std::function<void()> ring);
  ~Registrar();
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  // Pins the memory. Where the transport pins nothing, that has ended on return, and the next
  // Collect tells of it.
  void Pin(std::shared_ptr<Pinning> pinning);
  // Unpins the registration, then lets go of the memory, then of the signal (either may be null). A
  // null `registration`: lets go of them when all that was asked for before is done.
  void Unpin(std::unique_ptr<transport::Registration> registration,
             std::shared_ptr<const void> memory, std::shared_ptr<UnpinSignal> signal);

  // Calls PinRequest::on_end of all pinnings that have ended since the last call. Returns how many
  // have.
  uint32_t Collect();
  // Calls on_end of those pinnings only that had ended when Pin returned. Returns how many had.
  uint32_t CollectAtOnce();
  // Returns true if the next Collect has a pinning to tell of for which `ring` was not called.
  bool has_news() const { return !told_next_.empty(); }
  // Pinnings that have not been collected.
  uint32_t pending() const { return pending_; }
  // Releases memory that was given up (PinnedMemory::ReleaseAt) when its time has come. next_ns:
  // when Advance is due even if nothing happens; UINT64_MAX: never.
  void Advance(uint64_t now_ns);
  uint64_t next_ns() const { return next_ns_; }

 private:
  friend class PinnedMemory;

  // A pinning, or an unpinning.
  struct Task {
    std::shared_ptr<Pinning> pin = {};

    std::unique_ptr<transport::Registration> unpin = {};
    std::shared_ptr<const void> memory = {};
    std::shared_ptr<UnpinSignal> signal = {};

    uint64_t number = 0;  // in the order in which they were asked for
  };

  // Memory that was given up, but may be in use until then, or by the NIC.
  struct Leaving {
    std::shared_ptr<Pinning> pinning;
    uint64_t time_ns;
  };

  void Adopt(Pinning& pinning);
  void Tell(Pinning& pinning);
  bool TryRelease(Pinning& pinning, std::shared_ptr<UnpinSignal> unpinned);
  void ReleaseAt(uint64_t time_ns, std::shared_ptr<Pinning> pinning);
  void Add(Task task);
  std::optional<Task> TakeNext();
  void Loop();
  void Do(Task task);
  static void Prepare(Pinning& pinning);
  std::vector<std::shared_ptr<Pinning>> TakeEnded();

  transport::Transport& transport_;
  const std::function<void()> ring_;
  const bool pins_;
  const std::shared_ptr<Registrar*> self_;           // null inside: it has gone
  std::vector<std::shared_ptr<Pinning>> told_next_;  // by Collect; they have ended
  std::vector<Leaving> leaving_;
  uint64_t next_ns_ = UINT64_MAX;
  uint32_t pending_ = 0;
  std::atomic<bool> any_ended_ = false;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stop_ = false;
  uint64_t last_task_ = 0;
  std::deque<Task> unpin_tasks_;
  std::map<uint64_t, std::deque<Task>> pin_tasks_;  // by owner; none is empty
  std::deque<uint64_t> turns_;                      // the owners of these, whose turn is next first
  std::vector<std::shared_ptr<Pinning>> ended_;
  std::thread thread_;  // from its first task on
};

}  // namespace ferry::progress
