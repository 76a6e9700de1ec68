// An extension of a core by its home: work that the core's turns carry out, and packets that the
// core does not know. ferryd's extension serves its matched pairs and rings of devices
// (daemon/progress/pairs_and_rings.h).
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

  // Called in each turn: before this node's packets leave, and after the network was polled. Return
  // how much was done.
  virtual uint32_t AdvanceBeforePoll(uint64_t now_ns) = 0;
  virtual uint32_t AdvanceAfterPoll(uint64_t now_ns) = 0;
  // Called when the rank has rung its doorbell. Returns how much was done.
  virtual uint32_t Look(ServedRank& rank, uint64_t now_ns) = 0;
  // Takes a packet from another node whose kind the core does not know. False: no correct node
  // sends it.
  virtual bool OnPacket(Job& job, const Packet& packet) = 0;
  // Called when an operation of the transport whose context has kPairContext has ended.
  virtual void OnComplete(uint64_t context, ErrorCode code) = 0;

  // Returns true if the last turn found so many requests that more are waiting now.
  virtual bool is_asked() const = 0;
  // Called before a sleep: looks once more, by ordered loads, at words that ranks write outside the
  // core's lane. False: there is something to do.
  virtual bool MaySleep() const = 0;
  // The extension's parts of ProgressCore::HasTransfers, transfer_bytes and NextTurnNs.
  virtual bool HasTransfers(uint64_t now_ns) const = 0;
  virtual uint64_t transfer_bytes() const = 0;
  virtual uint64_t NextNs(uint64_t now_ns) const = 0;
  // Fills in the extension's statistics of NIC `nic`.
  virtual void Report(size_t nic, NicStatistics* statistics) const = 0;

  // Fails the operations with that rank, the way to which is gone.
  virtual void FailTo(const Job& job, uint32_t peer, ErrorCode error) = 0;
  // Ends the operations of a rank that goes, or whose commands are not read any more. Operations
  // that still touch its memory count in ServedRank::operations.
  virtual void CloseOf(ServedRank& rank, ErrorCode error) = 0;
  // Ends the operations on a region that is about to go. Operations that still touch it count in
  // ServedRegion::users.
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
