// One-sided operations of other nodes in memory of ranks here: finds the memory, carries the
// operation out, and reports its end to the node of its rank (one_sided.h).
//
// Relies on the record of the region only: its existence, its bounds, the right of CPUs to write to
// it. Atomic operations are those of this CPU, so they agree with those that the ranks of the node
// make by themselves; accumulates, too (shm/accumulate.h).
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "common/error_code.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/one_sided_state.h"
#include "internode/delivery/outbound.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/wire/wire.h"
#include "shm/element_lock.h"

namespace ferry::progress {

class OneSidedMemory {
 public:
  // All arguments outlive this object.
  OneSidedMemory(Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
                 Registrations& registrations, const PrivateMemory& private_memory)
      : outbound_(outbound),
        rndv_gets_(rndv_gets),
        staged_sends_(staged_sends),
        registrations_(registrations),
        private_memory_(private_memory) {}
  OneSidedMemory(const OneSidedMemory&) = delete;
  OneSidedMemory& operator=(const OneSidedMemory&) = delete;

  // Carries the operations of a kOneSided out. False: no daemon sends such a packet.
  bool OnPacket(Job& job, const Packet& packet, uint64_t now_ns);
  // Reports this turn's finished operations to the daemons of their ranks.
  void Report(uint64_t now_ns);
  // Go on with long gets whose memory was being registered: Advance after a change of the
  // registrations; RetryWaiting in any case, which is due when deadlines are checked, and after a
  // region is about to go.
  void Advance(uint64_t now_ns);
  void RetryWaiting(uint64_t now_ns);
  bool is_waiting() const { return !waiting_.empty(); }
  // Carries out held operations if the elements that they change are no longer locked by another
  // process. Called in each turn.
  void RetryHeld(uint64_t now_ns) {
    if (!held_.empty()) [[unlikely]] {
      CarryOutHeld(now_ns);
    }
  }
  bool holds_some() const { return !held_.empty(); }
  // Returns true if finished operations of that peer have not been reported to it yet.
  bool OwesNews(const Job* job, uint32_t peer) const {
    return std::any_of(untold_.begin(), untold_.end(), [&](const Untold& untold) {
      return untold.job == job && untold.source == peer;
    });
  }
  // Drops the state of a job that is about to go.
  void Drop(const Job* job);
  // Drops held operations between the two, whose ranks no longer wait for them.
  void DropHeldBetween(const ServedRank& rank, uint32_t peer);

  // Carries one operation out. `found`: what it has read, until the next call. Checks everything
  // before it changes anything. kWouldBlock: another process changes elements there.
  ErrorCode CarryOut(Job& job, const PacketHeader& header, const WireOneSided& wire,
                     std::span<const std::byte> data, uint64_t now_ns, uint64_t* value,
                     std::span<const std::byte>* found);
  // CarryOut for a rank of this node; `data`: what follows the words.
  ErrorCode CarryOutHere(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                         std::span<const std::byte> data, uint64_t now_ns, uint64_t* value,
                         std::span<const std::byte>* found);
  // Takes the end of the rendezvous get of a long put's bytes. Returns the put's error.
  ErrorCode OnPutFetched(ServedRank& rank, const OneSidedEnd& end, ErrorCode error);
  // Copies bytes that came along with their RTS to where the rank wants them, if a CPU reaches
  // that. False: they are to be fetched.
  bool Land(ServedRank& rank, shm::Location where, uint64_t size_bytes,
            std::span<const std::byte> data) const;
  // Ends an RTS that will not be fetched any more, or whose data have come whole.
  void EndRts(Job& job, const PacketHeader& header, const WireRts& announced, ErrorCode error,
              uint64_t now_ns);

 private:
  // The last finished operation of `source` on memory of `here` that has not been reported yet.
  struct Untold {
    Job* job;
    uint32_t here;
    uint32_t source;
    uint32_t stream;
    uint64_t number;
  };
  // A long get of `header.source` that waits until its bytes can be announced.
  struct Waiting {
    Job* job;
    PacketHeader header;
    WireOneSided wire;
    Claim claim;
    CountedUse use;  // of NodeUse::rts_lent
  };

  // Operations of `header.source`, of one packet, that wait until no other process changes elements
  // that the first of them changes; or that came behind such.
  struct Held {
    Job* job;
    PacketHeader header;
    std::vector<std::byte> body;
  };
  enum class Performed : uint8_t { kUntold, kTold, kHeld };

  // Bytes of a rank's memory, as other ranks name them.
  struct Memory {
    ServedRegion* region = nullptr;  // null: the home alone knows the rank's regions
    std::byte* bytes = nullptr;      // null: only streams reach them
  };

  ErrorCode FindMemory(ServedRank& rank, uint32_t region_id, uint64_t offset, uint64_t size_bytes,
                       bool is_write, Memory* found) const;
  ErrorCode FindBytes(ServedRank& rank, uint32_t region_id, uint64_t offset, uint64_t size_bytes,
                      bool is_write, std::byte** bytes) const;
  ErrorCode FindWord(ServedRank& rank, uint32_t region_id, uint64_t offset, uint64_t width,
                     std::byte** word) const;
  // Takes the lock of elements in that region, if they have one. False: another process has it.
  bool LockElements(const ServedRank& rank, uint32_t region_id,
                    std::unique_lock<shm::ElementLock>* lock) const;
  bool IsBehindHeld(const Job& job, const PacketHeader& header) const;
  void Hold(Job& job, const PacketHeader& header, std::span<const std::byte> body);
  void CarryOutHeld(uint64_t now_ns);
  bool CarryOutPacket(Job& job, const Packet& packet, uint64_t now_ns);
  bool OnLong(Job& job, const Packet& packet, uint64_t now_ns);
  Performed Perform(Job& job, const PacketHeader& header, const WireOneSided& wire,
                    std::span<const std::byte> data, uint64_t now_ns);
  void NoteUntold(Job& job, const PacketHeader& header, uint64_t number);
  ErrorCode Accumulate(ServedRank& rank, const PacketHeader& header, const WireOneSided& wire,
                       std::span<const std::byte> data, std::span<const std::byte>* found);
  ErrorCode CarryOutLong(ServedRank& rank, const PacketHeader& header, const WireOneSided& wire,
                         std::span<const std::byte> data, uint64_t now_ns);
  bool Lend(Waiting& get, uint64_t now_ns);
  bool CarryAlong(const Waiting& get, const WireOneSidedRts& wire, const shm::Location& where,
                  SentRts* announced, uint64_t now_ns);
  void TellOfLong(Job& job, const PacketHeader& header, const WireOneSided& wire,
                  std::span<const std::byte> data, ErrorCode error, uint64_t now_ns);
  void Tell(Job& job, const PacketHeader& header, const WireOneSidedDone& done,
            std::span<const std::byte> data, uint64_t now_ns);

  Outbound& outbound_;
  RndvGets& rndv_gets_;
  StagedSends& staged_sends_;
  Registrations& registrations_;
  const PrivateMemory& private_memory_;
  std::vector<Untold> untold_;
  std::vector<Waiting> waiting_;
  std::deque<Held> held_;  // in the order in which they came
  uint64_t held_bytes_ = 0;
  bool waits_for_locks_ = false;                        // there is no room to hold more
  uint64_t seen_changes_ = 0;                           // of the registrations
  std::array<std::byte, shm::kCellBytes> accumulated_;  // what the last accumulate has found
};

}  // namespace ferry::progress
