// RTSs whose data is sent right behind them, without a wait for an answer.
//
// The rank's engine says which may be (shm::kFlagPushed): it bounds how much is pushed and not
// matched. The send is over once the transport has taken all of it, as that of an eager message;
// the receiver's core has all of it then, or will, and says nothing of its end. If the connection
// breaks meanwhile, the peer's end, or the cut, ends the send.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <span>

#include "common/slot_map.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class Pushes {
 public:
  // `outbound` outlives this. Longer data is not pushed; 0: none is.
  Pushes(Outbound& outbound, uint64_t most_bytes);

  // Whether the data of an RTS, whose memory is known, is to follow it.
  bool MayPush(const shm::Descriptor& command, const SentRts& rts) const;
  // Sends RTS and data; `rank.claim` is on its memory, if that is in a region. kOk: under way;
  // the rank hears of its end. Everything else: as Outbound::SendWith; the RTS is as before then.
  ErrorCode Send(ServedRank& rank, const PacketHeader& header, uint32_t send_request,
                 const transport::Attachment& data, SentRts* rts, uint64_t now_ns);
  // Takes the transport's report on a message whose context has kPushContext.
  void OnComplete(uint64_t context, ErrorCode code);

  bool empty() const { return pushes_.empty(); }
  bool IsIdleWith(const Job* job, uint32_t peer);

 private:
  enum class PushId : uint64_t {};
  struct Push {
    PushId self{};
    Link* link = nullptr;
    ServedRank* rank = nullptr;  // counts it in `operations`
    uint32_t request = 0;
    SentRts rts;  // keeps its memory registered
  };

  Outbound& outbound_;
  const uint64_t most_bytes_;
  SlotMap<PushId, Push> pushes_;
};

}  // namespace ferry::progress
