// The transport's record of each accepted operation and each peer. The life of an operation:
//
//   kFree -> kPosted <-> kQueued         a queued one waits in its peer's queue to be posted
//   kPosted -> kFree                     done, or refused by the NIC: reported at once
//   kPosted or kQueued -> kEnding        failed by us: the next Poll reports it
//   kEnding -> kFree                     reported, and the NIC does not hold it
//   kEnding -> kAbandoned -> kFree       reported, and the NIC let go of it later
//
// A slot is free again only when its end has been reported *and* the NIC has let go, so a late
// completion always finds the operation that it belongs to.
#pragma once

#include <rdma/fabric.h>

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "common/error_code.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"

namespace ferry::transport {

struct Region;
struct Peer;

// op_context points here; the provider writes in the first member (FI_CONTEXT2).
struct PostContext {
  fi_context2 scratch{};
  bool is_receive = false;
};

using ListLink =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>>;

struct Operation : PostContext {
  using Kind = OperationKind;
  enum class State : uint8_t { kFree, kQueued, kPosted, kEnding, kAbandoned };

  Kind kind = Kind::kMessage;
  State state = State::kFree;
  bool held = false;  // by the NIC: a completion will come
  Placement placement = Placement::kLocal;
  ErrorCode result = ErrorCode::kOk;
  Peer* peer = nullptr;
  uint64_t context = 0;
  uint64_t deadline_ns = 0;

  std::byte* local = nullptr;  // the current fragment's memory, or a message's cell
  void* descriptor = nullptr;
  Region* region = nullptr;  // null for a message without attachment
  const std::byte* attachment = nullptr;
  uint64_t attachment_bytes = 0;
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t bytes = 0;      // in all
  uint64_t remaining = 0;  // the current fragment and those after it

  ListLink life_link;   // free list, deadlines or ending, by state
  ListLink queue_link;  // the peer's queue, if kQueued
};

using LifeList = boost::intrusive::list<
    Operation, boost::intrusive::member_hook<Operation, ListLink, &Operation::life_link>,
    boost::intrusive::constant_time_size<false>>;
using QueueList = boost::intrusive::list<
    Operation, boost::intrusive::member_hook<Operation, ListLink, &Operation::queue_link>,
    boost::intrusive::constant_time_size<false>>;

struct Peer {
  PeerId id{};
  fi_addr_t address = FI_ADDR_UNSPEC;
  ErrorCode failure = ErrorCode::kOk;
  bool removed = false;
  uint32_t outstanding = 0;  // accepted, not ended
  uint32_t held = 0;         // held by the NIC, abandoned ones included
  QueueList queue;           // operations put off by the provider, in order of acceptance
  ListLink waiting_link;     // in the transport's list if `queue` is not empty
};

using PeerList =
    boost::intrusive::list<Peer, boost::intrusive::member_hook<Peer, ListLink, &Peer::waiting_link>,
                           boost::intrusive::constant_time_size<false>>;

}  // namespace ferry::transport
