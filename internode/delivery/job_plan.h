// Jobs, and the ways to their nodes, as a home describes them to its core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::progress {

// A job as every node of it knows it.
struct JobPlan {
  std::string job_id;
  uint64_t key = 0;                    // names the job in packets between daemons
  uint32_t owner = 0;                  // uid
  uint32_t node = 0;                   // this node's index
  std::vector<uint32_t> node_of_rank;  // by rank
  std::vector<uint32_t> local_index;   // by rank: its lane on its own node
  // Ranks of the job on this node, if the core serves one of them and the plan has the others on
  // nodes of their own; 0: as many as the plan says.
  uint32_t local_size = 0;
  uint32_t size() const { return static_cast<uint32_t>(node_of_rank.size()); }
};

// The way to another node.
struct NodeRoute {
  std::vector<std::byte> fabric_address;
  uint64_t send_key = 0;     // goes into every packet to it
  uint64_t receive_key = 0;  // must be in every packet from it
  uint64_t link = 0;         // names the daemon: the same for all jobs
  uint64_t life = 0;         // of the link to it: each cut begins another
  // Packets are taken from it at once, but none is sent to it before NodeReturned, or before one
  // has come from there: until then it may not take any.
  bool awaits_answer = false;
  uint64_t guest = 0;  // transport::Transport::AddressFor of the address that it was given
};

}  // namespace ferry::progress
