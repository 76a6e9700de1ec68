// What a home adds to its core: work that is turned with it, and packets that the core does not
// know. ferryd's are its matched pairs and rings of devices (daemon/progress/pairs_and_rings.h).
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "common/error_code.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/delivery/reports.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "internode/rma/ring_calls.h"
#include "internode/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class Extension {
 public:
  virtual ~Extension() = default;

  // Twice in a turn: before what this node has to say leaves, and after the network was polled.
  // Return how much was done.
  virtual uint32_t AdvanceBeforePoll(uint64_t now_ns) = 0;
  virtual uint32_t AdvanceAfterPoll(uint64_t now_ns) = 0;
  // The rank has rung its doorbell. Returns how much was done.
  virtual uint32_t Look(ServedRank& rank, uint64_t now_ns) = 0;
  // A packet from another node whose kind the core does not know. False: no correct node sends it.
  virtual bool OnPacket(Job& job, const Packet& packet) = 0;
  // An operation of the transport has ended whose context has kPairContext.
  virtual void OnComplete(uint64_t context, ErrorCode code) = 0;

  // Whether so much was asked for in the last turn that there is more by now.
  virtual bool is_asked() const = 0;
  // Before a sleep: orders itself with ranks that say something without the core's lane. False:
  // there is something to do.
  virtual bool MaySleep() const = 0;
  // As ProgressCore::HasTransfers, transfer_bytes and NextTurnNs.
  virtual bool HasTransfers(uint64_t now_ns) const = 0;
  virtual uint64_t transfer_bytes() const = 0;
  virtual uint64_t NextNs(uint64_t now_ns) const = 0;
  // Fills in what it knows of NIC `nic`.
  virtual void Report(size_t nic, NicStatistics* statistics) const = 0;

  // The way to that rank is gone.
  virtual void FailTo(const Job& job, uint32_t peer, ErrorCode error) = 0;
  // The rank goes, or is not listened to any more. What still touches its memory counts in
  // ServedRank::operations.
  virtual void CloseOf(ServedRank& rank, ErrorCode error) = 0;
  // The region is about to go. What still touches it counts in ServedRegion::users.
  virtual void CloseIn(ServedRank& rank, ServedRegion& region) = 0;
};

// The parts of a core that an extension may use. They outlive it.
struct ExtensionParts {
  transport::Transport& transport;
  Outbound& outbound;
  Registrar& registrar;
  Registrations& registrations;
  RingCalls& one_sided;
  uint64_t timeout_ns;
};
using MakeExtension = std::function<std::unique_ptr<Extension>(const ExtensionParts& parts)>;

}  // namespace ferry::progress
