// The NICs of this node that have deferred work: which of them moves the messages of a pair
// (nic_mover.h), and with which jobs it shares its entries.
//
// A pair has one NIC of each node, for life: NIC i of a node reaches NIC i of the others. The
// receive's node chooses, for it is the first that knows of both ends' being there: of the NICs
// that reach the other node the one with the least to move, the nearest to the rank among equals.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/status.h"
#include "daemon/pairs/deferred_pool.h"
#include "daemon/pairs/shared_trigger.h"
#include "daemon/registration/registrar.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// One of them: what its movers share.
struct DeferredNic {
  // `its_transport` is one of whole.Rails(), the index-th, and has deferred work.
  DeferredNic(transport::Transport& its_whole, transport::Transport& its_transport,
              uint32_t its_index, Registrar& its_registrar, uint64_t its_timeout_ns,
              uint32_t most_entries);
  ~DeferredNic();
  // Errors: those of RegisterMemory and AddPeer.
  Status SetUp();

  // A pair comes, and goes once its operations have ended. The job's weight is that of its first
  // pair.
  void Join(DeferredPool::Job job, uint32_t weight, uint64_t size_bytes);
  void Leave(DeferredPool::Job job, uint64_t size_bytes);

  transport::Transport& whole;
  transport::Transport& transport;
  const uint32_t index;
  transport::DeferredWork& deferred;
  Registrar& registrar;
  const uint64_t timeout_ns;  // of an operation, from when its trigger was seen reached
  SharedTriggers triggers;
  DeferredPool pool;
  std::map<DeferredPool::Job, uint32_t> pairs;  // how many there are of each
  uint64_t load_bytes = 0;                      // of all
  transport::PeerId self{};                     // this node, as a peer
  alignas(8) uint64_t scratch = 0;  // whatever it holds: what clears to send in software
  transport::MemoryRegion scratch_region;
};

class DeferredNics {
 public:
  // None, if the transport's NICs have no deferred work, or the rules leave them no entries. All
  // outlive this, after which nobody collects from the registrar.
  DeferredNics(transport::Transport& transport, Registrar& registrar, uint64_t timeout_ns,
               const DeferredRules& rules);

  // The number of the transport's NICs, used or not.
  size_t size() const { return nics_.size(); }
  bool any() const;
  // Null: the NIC has no deferred work.
  const DeferredPool* pool(size_t nic) const;

  // There will be receives from that peer: asks which NICs reach it, which takes a moment.
  void Expect(transport::PeerId peer);
  // For a receive from that peer, of a rank whose nearest NIC is `nearest`. Errors: kWouldBlock
  // (not all have answered, but may yet), kNotFound (none of them reaches it).
  ErrorCode Choose(transport::PeerId peer, uint32_t nearest, uint32_t* nic);
  // The NIC that moves messages to and from that peer of the transport, whatever the other node
  // says it is. Null: there is no such NIC here, or there, or it has no deferred work.
  DeferredNic* Find(uint32_t nic, transport::PeerId peer);

  // Once in a turn. Returns how much was done.
  uint32_t Poll(transport::DeferredSink& sink, uint64_t now_ns);
  uint64_t NextNs(uint64_t now_ns) const;

 private:
  transport::Transport& transport_;
  std::vector<std::unique_ptr<DeferredNic>> nics_;  // by rail; null: it has no deferred work
};

}  // namespace ferry::daemon
