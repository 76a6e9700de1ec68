#include "client/bootstrap/node_ranks.h"

#include <fstream>
#include <string>

#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr char kHostName[] = "ferry.host";  // of every rank: its machine, and its name there

// Returns a name that the ranks of one node share with no other rank: the running kernel's, and the
// host's name in their namespace (of a container).
std::string NodeName() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return boot + "@" + config::HostName();
}

}  // namespace

StatusOr<std::vector<uint32_t>> FindRanksOfNode(Exchange* exchange) {
  const std::string here = NodeName();
  FERRY_RETURN_IF_ERROR(exchange->Put(kHostName, here));
  FERRY_RETURN_IF_ERROR(exchange->Fence());
  std::vector<uint32_t> ranks;
  for (uint32_t other = 0; other < exchange->size(); ++other) {
    const StatusOr<std::string> there = exchange->Get(other, kHostName);
    FERRY_RETURN_IF_ERROR(there.status());
    if (*there == here) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

}  // namespace ferry::client
