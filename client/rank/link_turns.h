// How whoever holds the rank's lease turns its direct links (client/rank/link_keeper.h).
#pragma once

#include <cstdint>

#include "engine/effects.h"
#include "shm/atomic.h"

namespace ferry::client {

class LinkTurns {
 public:
  // Whether there are links. Any thread; a hint without the lease.
  bool has_links() const {
    return shm::LoadAcquire(connected_) != 0;  // Pairs with SetLinks: what the links need is there.
  }
  // Whether there is something that turns carry on, perhaps of links that have ended. The same.
  bool HasWork() const { return shm::LoadRelaxed(has_work_) != 0; }
  // Whether turns are due without the engine's asking for one. The same.
  bool NeedsTurns() const { return has_links() || HasWork(); }
  // One round: sends what the engine has for the links, takes what has come, and may let the engine
  // take it, whose effects are added. Returns how much was done. Calling thread: the holder of the
  // lease.
  virtual uint32_t Turn(engine::Effects& effects) = 0;

 protected:
  ~LinkTurns() = default;
  // Under the lease.
  uint32_t links() const { return connected_; }
  void SetLinks(uint32_t links) { shm::StoreRelease(connected_, links); }
  void SetWork(bool has_work) { shm::StoreRelaxed(has_work_, has_work ? 1U : 0U); }

 private:
  uint32_t connected_ = 0;
  uint32_t has_work_ = 0;
};

}  // namespace ferry::client
