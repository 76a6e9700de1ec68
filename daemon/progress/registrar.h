// Pins ranks' memory for the NIC, and unpins it, on a thread of its own: gigabytes take seconds,
// for which nobody but the rank itself is to wait.
//
// One thread does all in the order it was asked for. Each task holds its Region, so the memory
// stays mapped, and counts against its user's quota, until the NIC has let go of it. A pinning that
// has begun cannot be stopped; one that nobody wants any more is undone.
//
// Calling thread: the progress thread. Nothing blocks but the destructor, which first does all that
// was asked for, save pinnings that have not begun.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/status.h"
#include "daemon/session/session.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

struct ServedRank;

// A region on its way to the NIC.
struct Pinning {
  Pinning(ServedRank* its_rank, std::shared_ptr<const Region> its_region)
      : rank(its_rank), region(std::move(its_region)) {}

  // The progress thread's.
  ServedRank* rank;              // null once nobody wants it any more
  std::promise<Status> outcome;  // for whoever asked

  std::atomic<bool> unwanted = false;

  // The registrar's thread's, until Collect hands it out.
  std::shared_ptr<const Region> region;  // null afterwards if it was unwanted
  Status status;
  std::unique_ptr<transport::Registration> registration;  // null if it failed, or was unwanted
};

class Registrar {
 public:
  // The transport outlives this. `ring` (any thread) ends a sleep of the progress thread.
  Registrar(transport::Transport& transport, std::function<void()> ring);
  ~Registrar();
  Registrar(const Registrar&) = delete;
  Registrar& operator=(const Registrar&) = delete;

  void Pin(std::shared_ptr<Pinning> pinning);
  // `done` becomes ready when the NIC has let go of the region; null: nobody asks.
  void Unpin(std::unique_ptr<transport::Registration> registration,
             std::shared_ptr<const Region> region, std::shared_ptr<std::promise<void>> done);

  // Calls visit(pinning) for each that has ended since the last call. Returns how many.
  template <typename Visitor>
  uint32_t Collect(Visitor&& visit) {
    if (!any_ended_.load(std::memory_order_acquire)) {  // Pairs with Do.
      return 0;
    }
    const std::vector<std::shared_ptr<Pinning>> ended = TakeEnded();
    for (const std::shared_ptr<Pinning>& pinning : ended) {
      visit(*pinning);
    }
    return static_cast<uint32_t>(ended.size());
  }

 private:
  // One of the two.
  struct Task {
    std::shared_ptr<Pinning> pin;

    std::shared_ptr<const Region> region;
    std::unique_ptr<transport::Registration> unpin;
    std::shared_ptr<std::promise<void>> done;
  };

  void Add(Task task);
  void Loop();
  void Do(Task task);
  std::vector<std::shared_ptr<Pinning>> TakeEnded();

  transport::Transport& transport_;
  const std::function<void()> ring_;
  std::atomic<bool> any_ended_ = false;
  std::mutex mutex_;
  std::condition_variable asked_;
  bool stop_ = false;
  std::deque<Task> tasks_;
  std::vector<std::shared_ptr<Pinning>> ended_;
  std::thread thread_;
};

}  // namespace ferry::daemon
