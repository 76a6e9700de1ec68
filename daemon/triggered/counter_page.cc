#include "daemon/triggered/counter_page.h"

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::daemon {

// ---- CounterPage ----

void CounterPage::Offer(shm::PairLayout* end, const transport::CounterDoorbell& doorbell,
                        uint64_t id, uint32_t nic) {
  if (doorbell.descriptor < 0) {
    return;
  }
  end_ = end;
  id_ = id;
  shm::CounterPageWords& words = end->page;
  shm::StoreRelaxed(words.offset, doorbell.offset);
  shm::StoreRelaxed(words.size_bytes, doorbell.page_bytes);
  shm::StoreRelaxed(words.add,
                    static_cast<uint32_t>(reinterpret_cast<const std::byte*>(doorbell.add) -
                                          static_cast<const std::byte*>(doorbell.page)));
  shm::StoreRelaxed(words.nic, nic);
  shm::StoreRelease(words.id, id);  // Pairs with client::CounterPages::Take.
}

void CounterPage::Refresh() {
  if (id_ != 0 && first_ == UINT64_MAX && shm::LoadAcquire(end_->page.used) == id_) {
    first_ = shm::LoadRelaxed(end_->page.first);
  }
}

// Either the rank sees that there is none any more, or we see that it has taken it.
bool CounterPage::TryTakeBack() {
  if (id_ == 0) {
    return true;
  }
  (void)shm::Exchange(end_->page.id, uint64_t{0}, std::memory_order_seq_cst);
  return shm::Load(end_->page.used, std::memory_order_seq_cst) != id_;
}

// ---- ParkedCounters ----

ParkedCounters::~ParkedCounters() {
  for (const Counter& parked : counters_) {
    deferred_.CloseCounter(parked.counter);
  }
}

void ParkedCounters::Look() {
  std::erase_if(counters_, [this](const Counter& parked) {
    // Pairs with client::CounterPages::Drop. The block may serve another pair since.
    const bool is_over = shm::LoadAcquire(parked.end->page.used) != parked.page;
    if (is_over) {
      deferred_.CloseCounter(parked.counter);
    }
    return is_over;
  });
}

void ParkedCounters::CloseOf(const void* rank) {
  std::erase_if(counters_, [this, rank](const Counter& parked) {
    if (parked.rank == rank) {
      deferred_.CloseCounter(parked.counter);
    }
    return parked.rank == rank;
  });
}

}  // namespace ferry::daemon
