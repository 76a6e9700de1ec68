// The exchange by which ranks that do not use Ferry learn of each other: ferryrun's machine and
// each agent serve the ranks that they start (rank_servers.h), and ferryrun joins what they gather.
//
// A *fence* is complete once every machine with ranks that take part has sent its part; then all of
// them get all parts. Words that only one rank has are asked for by a message that ferryrun passes
// on.
//
// Pure data; main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/ferryrun/agent_protocol.h"

namespace ferry::tools {

class ExchangeHub {
 public:
  // By rank: the number of its machine.
  explicit ExchangeHub(std::vector<uint32_t> machine_of_rank);

  struct Outgoing {
    uint32_t machine;
    ExchangeMessage message;
  };
  // Takes a message of a machine, and returns what is to be sent. Messages that no machine should
  // send, and parts that a machine has sent before, are passed over.
  std::vector<Outgoing> Take(uint32_t machine, const ExchangeMessage& message);

 private:
  struct Fence {
    std::map<uint32_t, ExchangeMessage> parts;  // by machine
    std::string why_not;                        // it will never be complete
  };

  std::vector<Outgoing> TakePart(uint32_t machine, const ExchangeMessage& message);
  size_t MachinesOf(const std::vector<uint32_t>& ranks) const;

  const std::vector<uint32_t> machine_of_rank_;
  const size_t machines_;
  std::map<std::string, Fence> fences_;
};

}  // namespace ferry::tools
