// This transport's records of each accepted operation and each peer
// (transports/api/operation_table.h).
#pragma once

#include <rdma/fabric.h>

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>

#include "common/error_code.h"
#include "transports/api/operation_table.h"
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

struct Operation : PostContext, OperationRecord<Peer, Region> {
  Kind kind = Kind::kMessage;
  Placement placement = Placement::kLocal;

  std::byte* local = nullptr;  // the current fragment's memory, or a message's cell
  void* descriptor = nullptr;
  const std::byte* attachment = nullptr;
  uint64_t attachment_bytes = 0;
  uint64_t remote_address = 0;
  uint64_t key = 0;
  uint64_t bytes = 0;      // in all
  uint64_t remaining = 0;  // the current fragment and those after it
};

struct Peer : OperationPeer<Operation> {
  PeerId id{};
  fi_addr_t address = FI_ADDR_UNSPEC;
  ErrorCode failure = ErrorCode::kOk;
  bool removed = false;
  uint32_t held = 0;  // operations held by the NIC, abandoned ones included
};

}  // namespace ferry::transport
