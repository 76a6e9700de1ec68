// The page of the NIC's counter that starts the messages of one end of a matched pair, as its rank
// is told of it (shm::CounterPageWords): a store there by the rank's stream, or kernel, or by the
// rank itself, is an addition to the counter, with no CPU of this daemon in between.
//
// Whoever has the page may store to it at any time, also for a start whose message has failed. So
// the counter goes back to the NIC, which gives it to others, only once the rank has said that it
// does not store there any more, or has gone (ParkedCounters).
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
  // Tells the rank, if another process can map the page. `id` names it for good.
  void Offer(shm::PairLayout* end, const transport::CounterDoorbell& doorbell, uint64_t id,
             uint32_t nic);
  // Takes over what the rank has said before `armed` grew.
  void Refresh();
  // Whether the rank makes that start, and all later ones, by a store to the page.
  bool Counts(uint64_t start) const { return start >= first_; }
  bool is_offered() const { return id_ != 0; }
  uint64_t id() const { return id_; }
  // The rank is to map it no more. False: it has, and may still store there.
  bool TryTakeBack();

 private:
  shm::PairLayout* end_ = nullptr;
  uint64_t id_ = 0;
  uint64_t first_ = UINT64_MAX;
};

// Counters of one NIC that nothing of ours needs any more, but whose pages ranks may still store
// to.
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
  // Closes those whose ranks store there no more; all of that rank, which has gone.
  void Look();
  void CloseOf(const void* rank);
  bool empty() const { return counters_.empty(); }

 private:
  transport::DeferredWork& deferred_;
  std::vector<Counter> counters_;
};

}  // namespace ferry::daemon
