// Pins memory for the NIC, and unpins it, on a thread of its own: gigabytes take seconds, and only
// the users of that memory should wait for them. Where the transport pins nothing
// (Capabilities::pins), memory is registered at once, by the caller; the thread starts when there
// is something for it to do.
//
// One thread does all. What is to be unpinned goes first: it makes room, and what is unpinned
// before it is asked for more is gone before more is pinned. Whoever pins much does not delay
// others: owners (PinRequest::owner) take turns, and what one of them asks for is done in order.
// Each task may hold the memory, so that it stays mapped until the NIC has let go of it. A pinning
// that has begun cannot be stopped; one that nobody wants any more is undone. What it has pinned
// belongs to a PinnedMemory (pinned_memory.h), whose end asks for the unpinning.
//
// Calling thread: the progress thread. Nothing blocks but the destructor, which first does all that
// was asked for, save pinnings that have not begun.
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
  std::shared_ptr<const void> memory = {};  // keeps it mapped; null if whoever asked sees to that
  uint64_t owner = 0;                       // for whom: each has turns of its own
  std::function<void()> prepare = {};       // first, by the registrar's thread; may be empty
  // Pins it, by that thread, if Transport::PrepareMemory is not to; may be empty.
  std::function<StatusOr<std::unique_ptr<transport::Registration>>()> pin = {};
  std::optional<transport::DeviceMemory> device = {};  // what it is, if no CPU's
  transport::Transport* nic = nullptr;                 // one of Transport::Rails; null: all of them
  // Called from Registrar::Collect when it is pinned, or is not, unless its PinnedMemory has gone.
  // May be empty.
  std::function<void()> on_end = {};
};

// Memory on its way to the NIC, and there.
struct Pinning : PinRequest {
  explicit Pinning(PinRequest request) : PinRequest(std::move(request)) {}

  std::atomic<bool> unwanted = false;

  // The registrar's thread's, until Collect hands it out.
  Status status;
  std::unique_ptr<transport::Registration> registration;  // null if it failed, or was unwanted

  // The progress thread's.
  std::shared_ptr<Registrar*> registrar;
  bool has_ended = false;          // `status` says how
  bool is_given_up = false;        // nobody is told any more
  transport::MemoryRegion region;  // pinned
};

// Becomes ready when the last of those who hold it has let go: the NIC has nothing of that memory.
struct UnpinSignal {
  ~UnpinSignal() { done.set_value(); }
  std::promise<void> done;
};

class Registrar {
 public:
  // The transport outlives this. `ring` (any thread) ends a sleep of the progress thread.
  Registrar(transport::Transport& transport, std::function<void()> ring);
  ~Registrar();
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  // Where nothing is pinned it has ended on return, and the next Collect tells of it.
  void Pin(std::shared_ptr<Pinning> pinning);
  // Lets go of the memory, then of the signal (either may be null), when the NIC has done so. A
  // null `registration`: when all that was asked for before is done.
  void Unpin(std::unique_ptr<transport::Registration> registration,
             std::shared_ptr<const void> memory, std::shared_ptr<UnpinSignal> signal);

  // Tells those who asked of all pinnings that have ended since the last call. Returns how many.
  uint32_t Collect();
  // The same of those that had ended when Pin returned, and of no others.
  uint32_t CollectAtOnce();
  // Whether the next Collect has something to tell for which nobody has rung.
  bool has_news() const { return !told_next_.empty(); }
  // Pinnings that have not been collected.
  uint32_t pending() const { return pending_; }
  // Releases what was given up (PinnedMemory::ReleaseAt), and when to call it next even if nothing
  // happens; UINT64_MAX: never.
  void Advance(uint64_t now_ns);
  uint64_t next_ns() const { return next_ns_; }

 private:
  friend class PinnedMemory;

  // One of the two.
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
