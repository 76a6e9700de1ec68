// The places of the other ranks of the job, and those of their inboxes that are mapped here.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/error_code.h"
#include "common/zeroed_array.h"
#include "engine/session_view.h"
#include "shm/atomic.h"

namespace ferry::engine {

struct Peer {
  bool local = false;        // on this node
  uint32_t local_index = 0;  // its lane there

  bool is_mapped() const { return shm::LoadAcquire(mapped) != 0; }
  // Once, from then on for all threads.
  void SetInbox(const InboxView& view) {
    inbox = view;
    shm::StoreRelease(mapped, 1);  // Pairs with is_mapped: publishes the view.
  }

  InboxView inbox;  // if it is mapped
  uint32_t mapped = 0;
};

struct PeerTable {
  ZeroedArray<Peer> by_rank;            // ranks of other nodes have no entries
  std::vector<uint32_t> rank_of_local;  // by local index, for this node
  // Maps the inbox of a peer of this node. An error: it cannot be mapped; if the peer has ended,
  // the peer's end. Blocks; any thread. Empty: all inboxes are mapped that ever will be.
  std::function<ErrorCode(uint32_t rank)> map;

  // The inbox of a peer, mapped at first use: peers that never talk to each other map nothing. Not
  // valid for peers of other nodes, and where mapping fails.
  const InboxView& Inbox(uint32_t rank) const {
    const Peer& peer = by_rank[rank];
    return peer.is_mapped() ? peer.inbox : MappedInbox(rank);
  }
  // The peer's wake words; if it has no inbox, words on which no thread sleeps.
  shm::WakeLayout* Wake(uint32_t rank) const;
  // The reason why the peer has no inbox here; kOk: it has one.
  ErrorCode Refusal(uint32_t rank) const;

 private:
  const InboxView& MappedInbox(uint32_t rank) const;
};

}  // namespace ferry::engine
