// The rank's direct links (client/links/link_keeper.h), as the holder of the rank's lease turns
// them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/zeroed_array.h"
#include "engine/effects.h"
#include "shm/atomic.h"
#include "shm/element_lock.h"
#include "shm/fence.h"

namespace ferry::client {

class LinkTurns {
 public:
  // Returns true if the rank has direct links. Any thread; a hint without the lease.
  bool has_links() const {
    return shm::LoadAcquire(connected_) != 0;  // Pairs with SetLinks: acquires the links' data.
  }
  // Returns true if turns have something to carry on, perhaps of links that have ended. Any thread;
  // a hint without the lease.
  bool HasWork() const { return shm::LoadRelaxed(has_work_) != 0; }
  // Returns true if turns are due even if the engine asks for none. Any thread; a hint without the
  // lease.
  bool NeedsTurns() const { return has_links() || HasWork(); }
  // Returns true if messages of device memory that only streams reach take the links like others,
  // by way of host memory of this rank; false after GiveUpLinks. Any thread; a hint without the
  // lease.
  bool CarryDeviceMemory() const { return shm::LoadRelaxed(carry_device_memory_) != 0; }
  // One round: sends what the engine has for the links, takes what has come, and may let the engine
  // take that, whose effects are added. Returns how much was done. Calling thread: the holder of
  // the lease.
  virtual uint32_t Turn(engine::Effects& effects) = 0;
  // Called after the engine has put a message into to_link for which no thread waits yet. True: the
  // message may lie there until the next turn, or the link thread's, because messages to this peer
  // follow each other closely, and no thread turns the links between them; one write then takes
  // many of them. The link thread is armed for it. False: the caller turns the links. Calling
  // thread: the holder of the lease.
  bool Gathers(uint32_t peer, uint64_t size_bytes, uint64_t now_ns);

  // A one-sided operation holds the link to its peer from before it checks if messages take that
  // link until its last command is in to_link. So a thread that changes the path, and then checks
  // if the link is held, knows of all operations that take it. Any thread.
  void Hold(uint32_t peer) {
    shm::FetchAdd(holds_[peer], 1U, std::memory_order_seq_cst);  // Pairs with IsHeld.
    shm::FenceAfterUpdate();                                     // before the look at the path
  }
  void LetGo(uint32_t peer) {
    shm::FetchAdd(holds_[peer], ~0U, std::memory_order_release);  // Pairs with IsHeld.
  }
  bool IsHeld(uint32_t peer) const {
    return shm::Load(holds_[peer], std::memory_order_seq_cst) != 0;
  }
  // From now on the link thread turns the links while this rank does not: for a thread that leaves
  // the library with work under way. It may be half a millisecond late. Any thread; cheap.
  virtual void Arm() = 0;
  // Operations in memory of other ranks are under way by links, or this rank's memory is known to
  // others: from now on the link thread turns the links whenever the rank's threads do not. Any
  // thread; cheap.
  virtual void Serve() = 0;
  // Lets links reach memory of the program's own until Unexpose; returns the number of its segment.
  // `lock` outlives that. Any thread; waits for the lease.
  virtual uint32_t Expose(std::byte* base, uint64_t size_bytes, shm::ElementLock* lock) = 0;
  virtual void Unexpose(uint32_t segment) = 0;
  // Gives up the rank's links, because messages are about to leave, or come into, device memory
  // that only streams reach, and that the daemons carry better: from now on this rank's messages
  // take the daemons, its links end, and it gets none any more. Any thread; cheap but for the first
  // time, which may wait for the lease.
  virtual void GiveUpLinks() = 0;

 protected:
  explicit LinkTurns(uint32_t job_size) : holds_(job_size) {}
  ~LinkTurns() = default;
  // Under the lease.
  uint32_t links() const { return connected_; }
  // Begins a turn. True: it is for a message that Gathers did not take.
  bool BeginTurn() {
    gathered_bytes_ = 0;
    CountTurn();
    if (!std::exchange(awaits_turn_, false)) {
      burst_messages_ = 0;  // the rank looks for what comes, or waits
      return false;
    }
    return true;
  }
  // Ends such a turn: the time that it took is no pause between this message and the next one.
  void EndTurnOfBurst(uint64_t now_ns) { burst_ns_ = now_ns; }
  // Returns how often the rank has turned its links, or will in a moment. Any thread.
  uint32_t turns() const { return shm::LoadRelaxed(turns_); }
  void SetLinks(uint32_t links) { shm::StoreRelease(connected_, links); }
  void SetCarryDeviceMemory(bool carry) {
    shm::StoreRelaxed(carry_device_memory_, carry ? 1U : 0U);
  }
  void SetWork(bool has_work) { shm::StoreRelaxed(has_work_, has_work ? 1U : 0U); }

 private:
  void CountTurn() { shm::StoreRelaxed(turns_, turns_ + 1); }

  uint32_t connected_ = 0;
  uint32_t has_work_ = 0;
  uint32_t turns_ = 0;  // only grows
  uint32_t carry_device_memory_ = 0;
  // Under the lease.
  uint32_t burst_peer_ = UINT32_MAX;
  uint32_t burst_messages_ = 0;
  uint64_t burst_ns_ = 0;  // when the last message of the burst was sent, with its turn
  bool awaits_turn_ = false;
  uint64_t gathered_bytes_ = 0;
  ZeroedArray<uint32_t> holds_;  // by rank
};

}  // namespace ferry::client
