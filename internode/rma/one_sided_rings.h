// One-sided operations that the rings of devices of a rank ask for (daemon/device_rings/rings.h).
// They have numbers of their own, in a stream of their own, apart from those of the rank's lane
// (one_sided.h).
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error_code.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/rma/one_sided_memory.h"
#include "internode/rma/ring_calls.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/wire/wire.h"

namespace ferry::progress {

class OneSided;

class OneSidedRings final : public RingCalls {
 public:
  // All arguments outlive this object.
  OneSidedRings(OneSided& one_sided, OneSidedMemory& memory, Outbound& outbound,
                RndvGets& rndv_gets, StagedSends& staged_sends, Registrations& registrations)
      : one_sided_(one_sided),
        memory_(memory),
        outbound_(outbound),
        rndv_gets_(rndv_gets),
        staged_sends_(staged_sends),
        registrations_(registrations) {}
  OneSidedRings(const OneSidedRings&) = delete;
  OneSidedRings& operator=(const OneSidedRings&) = delete;

  ErrorCode BeginForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns, Claim* claim,
                         bool* is_long) override;
  ErrorCode CarryOutForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                            uint64_t* value) override;
  void ForgetRing(ServedRank& rank, uint64_t ring) override;

  // Take the peer daemon's reports, as OneSided does for the rank's lane. False: the operation is
  // none of a ring.
  void OnDone(ServedRank& rank, uint32_t peer, const WireOneSidedDone& done,
              std::span<const std::byte> data);
  bool OnResult(ServedRank& rank, uint32_t peer, const WireResult& result);
  bool OnRts(ServedRank& rank, const PacketHeader& header, const WireOneSidedRts& announced,
             std::span<const std::byte> data, uint64_t now_ns);
  // Ends a get whose bytes have come, or were on their way.
  void EndGet(ServedRank& rank, uint32_t request, ErrorCode error);
  // Ends the operations with a peer that is gone, or cut off.
  void FailWith(ServedRank& rank, uint32_t peer, ErrorCode error);

 private:
  ErrorCode BeginShort(ServedRank& rank, const RingCall& call, uint64_t now_ns);
  ErrorCode BeginLongPut(ServedRank& rank, const RingCall& call, uint64_t now_ns, Claim* claim);
  ErrorCode BeginLongGet(ServedRank& rank, const RingCall& call, uint64_t now_ns);

  OneSided& one_sided_;
  OneSidedMemory& memory_;
  Outbound& outbound_;
  RndvGets& rndv_gets_;
  StagedSends& staged_sends_;
  Registrations& registrations_;
};

}  // namespace ferry::progress
