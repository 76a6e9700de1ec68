// Brings messages and answers from other nodes into one rank's inbox, through the daemon's lane.
//
// What finds no room waits in daemon memory, in order; remote senders' credits bound how much that
// can be. A medium message that finds no cell although the rank has drained all that hold one (they
// are unexpected: their cells stay taken until they are received) is parked: its bytes stay here,
// and the rank gets a request-to-send for them, so that cells cannot run out for good.
//
// Calling thread: the progress thread. Does not block; allocates only for what waits or is parked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "common/slot_map.h"
#include "shm/lane.h"
#include "shm/layout/inbox_layout.h"
#include "shm/wake.h"

namespace ferry::daemon {

// A descriptor with the data that will be inline or in a cell (kEager only).
struct Message {
  shm::Descriptor descriptor{};
  std::vector<std::byte> data;
};

enum class ParkedId : uint64_t {};

class Delivery {
 public:
  enum class Result {
    kTaken,     // delivered, or waiting for its turn
    kOverflow,  // more waits than correct senders can cause
    kQuota,     // more is parked than the quota allows
  };

  // `inbox` outlives this. Opens the lane (touches its pages). At most `max_waiting` messages of
  // remote ranks may wait, and `max_parked_bytes` be parked.
  Delivery(shm::InboxLayout* inbox, uint32_t local_size, uint64_t max_waiting,
           uint64_t max_parked_bytes);

  // `descriptor`: as the rank will see it, but for where the data of a kEager lies.
  Result Deliver(const shm::Descriptor& descriptor, std::span<const std::byte> data = {});
  // Moves on what waits. Only kTaken or kQuota.
  Result Flush();

  // Wakes the rank if there is something new. True: nobody is inside the rank, and what is new
  // cannot wait for it.
  bool Announce();

  bool empty() const { return waiting_.empty(); }
  bool has_news() const { return news_; }
  shm::Wake& wake() { return wake_; }

  // The bytes of a parked message; null when `id` names none. Unpark frees them.
  const std::vector<std::byte>* Parked(ParkedId id);
  void Unpark(ParkedId id);

 private:
  bool TryPush(const shm::Descriptor& descriptor, std::span<const std::byte> data);
  bool TryPushInCell(const shm::Descriptor& descriptor, std::span<const std::byte> data);
  bool RankHoldsAllCells() const;
  bool ShouldPark(const Message& message);
  Result Park(Message& message);
  void NotePushed(const shm::Descriptor& descriptor);

  shm::LaneLayout* layout_;
  uint32_t lane_index_;
  shm::LaneProducer lane_;
  shm::Wake wake_;
  const uint64_t max_waiting_;
  const uint64_t max_parked_bytes_;
  std::deque<Message> waiting_;
  uint64_t waiting_messages_ = 0;  // of these, messages of remote ranks
  SlotMap<ParkedId, std::vector<std::byte>> parked_;
  uint64_t parked_bytes_ = 0;
  uint64_t after_last_cell_;  // number of the descriptor behind the last one that took a cell
  bool news_ = false;
  bool urgent_ = false;
};

}  // namespace ferry::daemon
