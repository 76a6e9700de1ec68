// A core's reports for administrators: on its network, its transfers, and its ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ferry::progress {

struct NicStatistics {
  std::string provider, fabric, domain, address, version;
  std::string source_address;  // as transport::TransportOptions has it
  uint64_t messages_sent = 0, messages_received = 0, bytes_sent = 0, bytes_received = 0;
  uint64_t reads = 0, writes = 0, errors = 0;
  uint32_t outstanding = 0;
  // The place of the NIC (numa_node is -1 if unknown), and the things that were put near it: the
  // CPUs of the progress thread (empty: any) and the node of staging memory (-1: any).
  std::string pci, cpus, progress_cpus;
  int32_t numa_node = -1, staging_node = -1;
  // Staging memory: blocks now and at most, those in use, and transfers that wait for one; blocks
  // that pools got in addition, and let go again.
  uint32_t staging_blocks = 0, staging_most_blocks = 0, staging_busy = 0, staging_waits = 0;
  uint64_t staging_grown = 0, staging_shrunk = 0;
  // How the NIC reaches device memory, in words, its last refusal of some, and true if it takes
  // memory by dma-buf; ends of messages in device memory that it reached itself, and that went by
  // staging memory.
  std::string device_memory, device_refusal;
  bool takes_dmabufs = false;
  uint64_t device_direct = 0, device_staged = 0;
  // Deferred operations: entries of the NIC at most and now; operations that the NIC was given, and
  // that the daemon did for want of entries; counters that the NIC has for them now, and how often
  // the daemon has added to one.
  uint32_t deferred_entries = 0, deferred_busy = 0;
  uint64_t deferred_operations = 0, deferred_overflows = 0;
  uint64_t deferred_counters = 0, deferred_rings = 0;
};

// The messages that a job's ranks here and those of one other node have sent to each other through
// the daemons, counted when they are announced, with the payload that they have or will have.
struct NodeTraffic {
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
};

// The progress of a large message to or from another node.
struct TransferReport {
  bool receiving = false;
  uint32_t request = 0;  // of the rank asked about
  uint32_t peer = 0;     // rank
  uint64_t done_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t silent_ns = 0;       // since the last step of the transfer
  const char* wants = nullptr;  // the resource of this node that it waits for; null: none
  std::string way = {};         // how device memory here and the network meet; empty: it is none
};

// The facts about a rank here that the data plane knows and its shared memory does not tell.
struct RankReport {
  std::vector<TransferReport> transfers;
  uint64_t held_ns = 0;  // how long its next command has waited; 0: it does not
  const char* held_for = "the network";
  uint64_t arrivals_waiting = 0;  // messages for it that found no room in its lane
};

}  // namespace ferry::progress
