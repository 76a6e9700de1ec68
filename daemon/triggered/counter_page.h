// Offers a rank the page of the NIC's counter that starts the messages of one end of its matched
// pair (shm::CounterPageWords). A store to the page by the rank, its stream or its kernel is an
// addition to the counter, with no CPU of this daemon in between.
//
// A rank that has the page may store to it at any time, also for a start whose message has failed.
// So the counter goes back to the NIC, which gives it to others, only once the rank has said that
// it does not store there any more, or has gone (ParkedCounters).
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/plane/data_plane.h"
#include "shm/layout/pair_layout.h"
#include "transports/api/deferred_work.h"

namespace ferry::daemon {

class CounterPage {
 public:
  // Tells the rank of the page, if another process can map it. `id` names the page for good.
  void Offer(shm::PairLayout* end, const transport::CounterDoorbell& doorbell, uint64_t id,
             uint32_t nic);
  // Takes over the rank's answer: the first start that it makes by the page. Call it after `armed`
  // has grown.
  void Refresh();
  // Returns true if the rank makes that start, and all later ones, by a store to the page.
  bool Counts(uint64_t start) const { return start >= first_; }
  bool is_offered() const { return id_ != 0; }
  uint64_t id() const { return id_; }
  // Keeps the rank from mapping the page from now on. Returns false if the rank has taken the page
  // already, and may still store there.
  bool TryTakeBack();

 private:
  shm::PairLayout* end_ = nullptr;
  uint64_t id_ = 0;
  uint64_t first_ = UINT64_MAX;
};

// Counters of one NIC that this daemon needs no more, but to whose pages ranks may still store.
class ParkedCounters {
 public:
  struct Counter {
    transport::NicCounter counter{};
    std::shared_ptr<const Region> memory;  // keeps `end` mapped
    const shm::PairLayout* end = nullptr;
    uint64_t page = 0;
    const void* rank = nullptr;  // whose page it was
  };

  // `deferred` outlives it.
  explicit ParkedCounters(transport::DeferredWork& deferred) : deferred_(deferred) {}
  ~ParkedCounters();
  ParkedCounters(const ParkedCounters&) = delete;
  ParkedCounters& operator=(const ParkedCounters&) = delete;

  void Park(Counter counter) { counters_.push_back(std::move(counter)); }
  // Look closes the counters whose ranks store there no more; CloseOf closes those of a rank that
  // has gone.
  void Look();
  void CloseOf(const void* rank);
  bool empty() const { return counters_.empty(); }

 private:
  transport::DeferredWork& deferred_;
  std::vector<Counter> counters_;
};

}  // namespace ferry::daemon
