// The policy of this node for direct links (docs/direct_links.md): if ranks may have them, when
// they ask for them, and which network these use.
//
// Thread: made once, when the daemon starts; then it does not change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "daemon/links/link_ends.h"
#include "daemon/plane/data_plane.h"

namespace ferry::config {
struct Options;
}

namespace ferry::daemon {

struct LinkPolicy {
  Status allowed{ErrorCode::kConfiguration, "the option direct_links is off"};
  // The most ranks of a job here that may have links; 0: any number.
  uint32_t max_local_ranks = 0;
  LinkLimits limits = {};
  uint64_t min_messages = 0;  // as in attach::LinkRules
  uint64_t min_bytes = 0;
  uint64_t idle_ms = 0;
  uint64_t operation_timeout_ms = 0;
  uint64_t peer_timeout_ms = 0;
  // The ranks' endpoints, as in transport::TransportOptions; several NICs are those of the data
  // plane, in its order.
  struct Nic {
    std::string source_address;
    std::string domain;
  };
  std::string provider;
  std::vector<Nic> nics;
};

// `nics`: the data plane's, at least one. `cores`: of this node.
LinkPolicy LinkPolicyFrom(const config::Options& options, const std::vector<NicStatistics>& nics,
                          uint32_t cores);

// Ok if so many ranks of one job here may have links; else the error says why not.
Status MayHaveLinks(const LinkPolicy& policy, uint32_t local_ranks);

}  // namespace ferry::daemon
