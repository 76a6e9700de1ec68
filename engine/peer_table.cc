#include "engine/peer_table.h"

namespace ferry::engine {
namespace {

constexpr InboxView kNoInbox{};
constinit shm::WakeLayout nobody{};

}  // namespace

const InboxView& PeerTable::MappedInbox(uint32_t rank) const {
  return Refusal(rank) == ErrorCode::kOk ? by_rank[rank].inbox : kNoInbox;
}

shm::WakeLayout* PeerTable::Wake(uint32_t rank) const {
  const InboxView& inbox = Inbox(rank);
  return inbox.valid() ? inbox.wake() : &nobody;
}

ErrorCode PeerTable::Refusal(uint32_t rank) const {
  const Peer& peer = by_rank[rank];
  if (peer.is_mapped()) {
    return ErrorCode::kOk;
  }
  return peer.local && map ? map(rank) : ErrorCode::kInvalidRank;
}

}  // namespace ferry::engine
