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
// Parts: OneSidedMemory, for the memory of ranks here, and OneSidedRings, for operations from a
// rank's rings of devices.
//
// Calling thread: the progress thread. Does not block; allocates for a rank's first operation only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/rma/one_sided_memory.h"
#include "internode/rma/one_sided_rings.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/wire/wire.h"

namespace ferry::progress {

class OneSided {
 public:
  // All arguments outlive this object.
  OneSided(Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
           Registrations& registrations, const PrivateMemory& private_memory);
  OneSided(const OneSided&) = delete;
  OneSided& operator=(const OneSided&) = delete;

  OneSidedMemory& memory() { return memory_; }
  const OneSidedMemory& memory() const { return memory_; }
  OneSidedRings& rings() { return rings_; }

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

  // ---- For OneSidedRings
  // Returns true if the other daemon may be sent one more long operation.
  static bool MayAskLong(ServedRank& rank, uint32_t peer);
  ErrorCode SendLongPut(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                        const WireRts& announced, const transport::Attachment& data,
                        uint64_t now_ns);

 private:
  static OneSidedCounts& CountsWith(ServedRank& rank, uint32_t peer);
  static bool MayAsk(ServedRank& rank, const shm::Descriptor& command);
  static void Await(ServedRank& rank, const shm::Descriptor& command, uint64_t number);
  static void End(ServedRank& rank, uint32_t peer, uint64_t number, ErrorCode error);
  static void Answer(ServedRank& rank, const AwaitedAnswer& awaited, uint64_t value,
                     ErrorCode error, std::span<const std::byte> data);
  void CarryOutHere(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                    std::span<const std::byte> data, uint64_t now_ns);
  ErrorCode OnRndvGetEnd(const RndvGet& rndv_get, ServedRank& rank);

  Outbound& outbound_;
  RndvGets& rndv_gets_;
  OneSidedMemory memory_;
  OneSidedRings rings_;
};

}  // namespace ferry::progress
