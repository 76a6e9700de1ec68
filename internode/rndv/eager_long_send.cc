#include "internode/rndv/eager_long_send.h"

#include <algorithm>
#include <utility>

namespace ferry::progress {

Pushes::Pushes(Outbound& outbound, uint64_t most_bytes)
    : outbound_(outbound), most_bytes_(std::min(most_bytes, outbound.max_attachment_bytes())) {}

bool Pushes::MayPush(const shm::Descriptor& command, const SentRts& rts) const {
  return (command.flags & shm::kFlagPushed) != 0 && (command.flags & shm::kFlagSynchronous) == 0 &&
         rts.state == SentRts::State::kHeap && rts.size_bytes != 0 && rts.size_bytes <= most_bytes_;
}

ErrorCode Pushes::Send(ServedRank& rank, const PacketHeader& header, uint32_t send_request,
                       const transport::Attachment& data, SentRts* rts, uint64_t now_ns) {
  PacketHeader pushed = header;
  pushed.flags |= kFlagDataPushed;
  const WireRts wire{send_request, rts->generation, 0, 0};
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
  push.rts = std::move(*rts);
  push.rts.claim = std::move(rank.claim);
  ++rank.operations;
  if (push.rts.region != nullptr) {
    ++push.rts.region->users;
  }
  return code;
}

void Pushes::OnComplete(uint64_t context, ErrorCode code) {
  Push& push = *reinterpret_cast<Push*>(context & ~kPushContext);
  outbound_.OnComplete(push.link, code);
  ServedRank& rank = *push.rank;
  --rank.operations;
  if (push.rts.region != nullptr) {
    --push.rts.region->users;
  }
  if (code == ErrorCode::kOk && !rank.ended) {
    rank.Answer(shm::DescriptorKind::kSendDone, push.rts.destination, push.request,
                push.rts.generation, ErrorCode::kOk);
  }
  pushes_.Erase(push.self);
}

bool Pushes::IsIdleWith(const Job* job, uint32_t peer) {
  bool any = false;
  pushes_.ForEach([&](PushId, const Push& push) {
    any |= push.rank->job == job && push.rts.destination == peer;
  });
  return !any;
}

}  // namespace ferry::progress
