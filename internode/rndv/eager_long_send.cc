#include "internode/rndv/eager_long_send.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {

Pushes::Pushes(Outbound& outbound, uint64_t most_bytes)
    : outbound_(outbound), most_bytes_(std::min(most_bytes, outbound.max_attachment_bytes())) {}

bool Pushes::MayPush(const shm::Descriptor& command, const Offer& offer) const {
  return (command.flags & shm::kFlagPushed) != 0 && (command.flags & shm::kFlagSynchronous) == 0 &&
         offer.state == Offer::State::kHeap && offer.size_bytes != 0 &&
         offer.size_bytes <= most_bytes_;
}

ErrorCode Pushes::Send(ServedRank& rank, const PacketHeader& header, uint32_t send_request,
                       const transport::Attachment& data, Offer* offer, uint64_t now_ns) {
  PacketHeader pushed = header;
  pushed.flags |= kFlagDataPushed;
  const WireRts wire{send_request, offer->generation, 0, 0};
  const PushId id = pushes_.Insert();
  Push& push = *pushes_.Find(id);
  const ErrorCode code = outbound_.SendWith(*rank.job, pushed, BytesOf(wire), data, now_ns,
                                            reinterpret_cast<uint64_t>(&push) | kPushContext);
  if (code != ErrorCode::kOk) {
    pushes_.Erase(id);
    return code;
  }
  push.self = id;
  push.link = rank.job->RouteTo(header.destination).link;
  push.rank = &rank;
  push.request = send_request;
  push.offer = std::move(*offer);
  push.offer.claim = std::move(rank.claim);
  ++rank.operations;
  if (push.offer.region != nullptr) {
    ++push.offer.region->users;
  }
  return code;
}

void Pushes::OnComplete(uint64_t context, ErrorCode code) {
  Push& push = *reinterpret_cast<Push*>(context & ~kPushContext);
  outbound_.OnComplete(push.link, code);
  ServedRank& rank = *push.rank;
  --rank.operations;
  if (push.offer.region != nullptr) {
    --push.offer.region->users;
  }
  if (code == ErrorCode::kOk && !rank.ended) {
    rank.Answer(shm::DescriptorKind::kSendDone, push.offer.destination, push.request,
                push.offer.generation, ErrorCode::kOk);
  }
  pushes_.Erase(push.self);
}

bool Pushes::IsIdleWith(const Job* job, uint32_t peer) {
  bool any = false;
  pushes_.ForEach([&](PushId, const Push& push) {
    any |= push.rank->job == job && push.offer.destination == peer;
  });
  return !any;
}

}  // namespace ferry::progress
