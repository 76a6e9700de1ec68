// Pushes: RTSs whose data is sent right behind them, without a wait for an answer.
//
// The rank's engine says which messages may be pushed (shm::kFlagPushed): it bounds how much is
// pushed and not matched. As with an eager message, the send is over once the transport has taken
// all of the data; the receiver's core has the data then, or will have it, and does not report the
// end. If the connection breaks meanwhile, the end of the peer, or of the link, ends the send.
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
  // `outbound` outlives this. Data longer than `most_bytes` is not pushed; 0: no data is.
  Pushes(Outbound& outbound, uint64_t most_bytes);

  // Returns true if the data of an RTS, whose memory is known, is to be sent right behind it.
  bool MayPush(const shm::Descriptor& command, const SentRts& rts) const;
  // Sends RTS and data; `rank.claim` holds the memory, if that is in a region. kOk: the message is
  // under way, and the rank hears of its end. Other errors as of Outbound::SendWith; *rts is
  // unchanged then.
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
