// Where the other ranks of the job are.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/session_view.h"

namespace ferry::engine {

struct Peer {
  bool local = false;        // on this node
  uint32_t local_index = 0;  // its lane on its own node
  InboxView inbox;           // valid for local peers that are mapped
};

struct PeerTable {
  std::vector<Peer> by_rank;
  std::vector<uint32_t> rank_of_local;  // by local index, for this node
};

}  // namespace ferry::engine
