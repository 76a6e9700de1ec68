// The state of one link. Private to PeerLinks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/control/node_links.h"
#include "daemon/control/peer_links.h"
#include "proto/control.grpc.pb.h"

namespace ferry::daemon {

struct PeerLinks::Link {
  std::string address;
  std::string host;     // of the address
  uint32_t wanted = 0;  // by how many jobs
  std::shared_ptr<control::Peer::Stub> stub;
  uint64_t tls_generation = 0;  // of the certificates that the stub uses
  bool up = false;
  bool asking = false;       // a Hello or heartbeat is under way
  bool greet_again = false;  // once it is answered: the peer knows us since
  uint32_t early_greetings = 0;
  std::string token_hash;  // of the peer's token for us, from its answer
  std::vector<std::function<void(bool refused)>> probes;  // that wait for the one under way
  uint64_t life = 0;
  NodeContact contact;  // who answers there, once somebody has
  uint64_t last_heard_ns = 0;
  uint64_t asked_ns = 0;             // when the last heartbeat was sent
  uint64_t unanswered_since_ns = 0;  // when the first heartbeat without answer was sent; 0: none
  std::string trouble;               // why the last question had no answer
};

}  // namespace ferry::daemon
