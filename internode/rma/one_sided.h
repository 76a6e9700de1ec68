// One-sided operations between nodes (client/api/one_sided.h): the daemon of the origin rank sends
// the operation, the daemon of the rank whose memory it is carries it out. By a direct link the
// ranks' own cores do so; the comments about daemons here hold for them.
//
// Each rank's operations with one peer are numbered as they leave, travel in one stream and are
// carried out in its order, at once: so those that leave together share a packet, a single number
// says which of them are over, and the peer's daemon answers many with one packet. Only those whose
// result is wanted, and those that fail, have answers of their own.
//
// The daemon that has the bytes of a long put or get announces them. They go along with the RTS if
// they are not many; else the other daemon fetches them, as it does a large message (rndv_staged.h,
// rndv_get.h), from and to memory of every kind. So a long operation has no number, but an answer;
// and the end of a long put is reported as that of a send.
//
// Operations from a rank's rings of devices (daemon/device_rings/rings.h) have numbers of their
// own, in a stream of their own, apart from those of the rank's lane.
//
// The peer's daemon relies on its own record of the region only: its existence, its bounds, the
// right of CPUs to write to it. Atomic operations are those of its CPU, so they agree with those
// that the ranks of its node make by themselves; accumulates, too (shm/accumulate.h).
//
// Calling thread: the progress thread. Does not block; allocates for a rank's first operation only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/rma/ring_calls.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/wire/wire.h"
#include "shm/element_lock.h"

namespace ferry::progress {

class OneSided final : public RingCalls {
 public:
  // All arguments outlive this object.
  OneSided(Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
           Registrations& registrations, const PrivateMemory& private_memory);

  // ---- At the rank that wants it
  // Returns true for a command that may name a rank of this node: an accumulate, which a rank
  // leaves to ferryd where no CPU operation changes the elements atomically.
  static bool MayStayHere(const ServedRank& rank, const shm::Descriptor& command);
  // Returns an error text for a command that no correct rank writes. The destination must be a rank
  // of another node, unless the command may stay here.
  static std::optional<std::string> Check(const ServedRank& rank, const shm::Descriptor& command);
  static bool IsLongPut(const shm::Descriptor& command);
  // Returns the location of a long operation's bytes, read or to be written, in this rank's memory.
  static shm::Location PlaceHere(const ServedRank& rank, const shm::Descriptor& command);
  // Send a checked command. False: it cannot leave yet; try again.
  bool Start(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  // Sends a long put with the RTS of its bytes, which may go along; `flags` as of kRemoteRts.
  bool StartLongPut(ServedRank& rank, const shm::Descriptor& command, uint8_t flags,
                    const WireRts& announced, const transport::Attachment& data, uint64_t now_ns);
  // Ends an impossible command with that error. Returns true: the command is done.
  bool Refuse(ServedRank& rank, const shm::Descriptor& command, ErrorCode error);
  // Take the peer daemon's reports: the operations that are over, the end of a long operation, or
  // the RTS of a long get's bytes, which may be along. False: no daemon sends such a packet.
  bool OnDone(const Job& job, const PacketHeader& header, const WireOneSidedDone& done,
              std::span<const std::byte> data);
  void OnResult(ServedRank& rank, uint32_t peer, const WireResult& result);
  void OnRts(Job& job, const PacketHeader& header, const WireOneSidedRts& announced,
             std::span<const std::byte> data, uint64_t now_ns);
  // End the operations with a peer that is gone, or cut off.
  void FailWith(const Job& job, uint32_t peer, ErrorCode error);
  void FailBetween(ServedRank& rank, uint32_t peer, ErrorCode error);
  // Returns true if the rank has no operation with that peer under way.
  static bool IsIdleWith(const ServedRank& rank, uint32_t peer);

  // ---- The same for its rings: documented there
  ErrorCode BeginForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns, Claim* claim,
                         bool* is_long) override;
  ErrorCode CarryOutForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                            uint64_t* value) override;
  void ForgetRing(ServedRank& rank, uint64_t ring) override;

  // ---- Where the memory is
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

  void EndRts(Job& job, const PacketHeader& header, const WireRts& announced, ErrorCode error,
              uint64_t now_ns);
  static OneSidedCounts& CountsWith(ServedRank& rank, uint32_t peer);
  static bool MayAsk(ServedRank& rank, const shm::Descriptor& command);
  static bool MayAskLong(ServedRank& rank, uint32_t peer);
  static void Await(ServedRank& rank, const shm::Descriptor& command, uint64_t number);
  static void End(ServedRank& rank, uint32_t peer, uint64_t number, ErrorCode error);
  static void Answer(ServedRank& rank, const AwaitedAnswer& awaited, uint64_t value,
                     ErrorCode error, std::span<const std::byte> data);
  bool Land(ServedRank& rank, shm::Location where, uint64_t size_bytes,
            std::span<const std::byte> data) const;
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
  void DropHeld(const std::function<bool(const Held&)>& is_over);
  bool CarryOutPacket(Job& job, const Packet& packet, uint64_t now_ns);
  bool OnLong(Job& job, const Packet& packet, uint64_t now_ns);
  Performed Perform(Job& job, const PacketHeader& header, const WireOneSided& wire,
                    std::span<const std::byte> data, uint64_t now_ns);
  void CarryOutHere(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                    std::span<const std::byte> data, uint64_t now_ns);
  void NoteUntold(Job& job, const PacketHeader& header, uint64_t number);
  ErrorCode CarryOut(Job& job, const PacketHeader& header, const WireOneSided& wire,
                     std::span<const std::byte> data, uint64_t now_ns, uint64_t* value,
                     std::span<const std::byte>* found);
  ErrorCode Accumulate(ServedRank& rank, const PacketHeader& header, const WireOneSided& wire,
                       std::span<const std::byte> data, std::span<const std::byte>* found);
  ErrorCode CarryOutLong(ServedRank& rank, const PacketHeader& header, const WireOneSided& wire,
                         std::span<const std::byte> data, uint64_t now_ns);
  bool Lend(Waiting& get, uint64_t now_ns);
  bool CarryAlong(const Waiting& get, const WireOneSidedRts& wire, const shm::Location& where,
                  SentRts* announced, uint64_t now_ns);
  ErrorCode OnRndvGetEnd(const RndvGet& rndv_get, ServedRank& rank);
  void OnRingDone(ServedRank& rank, uint32_t peer, const WireOneSidedDone& done,
                  std::span<const std::byte> data);
  bool OnRingResult(ServedRank& rank, uint32_t peer, const WireResult& result);
  bool OnRingRts(ServedRank& rank, const PacketHeader& header, const WireOneSidedRts& announced,
                 std::span<const std::byte> data, uint64_t now_ns);
  void EndRingGet(ServedRank& rank, uint32_t request, ErrorCode error);
  void FailRingsWith(ServedRank& rank, uint32_t peer, ErrorCode error);
  ErrorCode BeginShort(ServedRank& rank, const RingCall& call, uint64_t now_ns);
  ErrorCode BeginLongPut(ServedRank& rank, const RingCall& call, uint64_t now_ns, Claim* claim);
  ErrorCode BeginLongGet(ServedRank& rank, const RingCall& call, uint64_t now_ns);
  ErrorCode SendLongPut(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                        const WireRts& announced, const transport::Attachment& data,
                        uint64_t now_ns);
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
