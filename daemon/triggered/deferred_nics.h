// The NICs of this node that have deferred work, each with its channels (nic_channels.h): which of
// them moves the messages of a pair, and with which jobs it shares its entries.
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
#include <unordered_map>
#include <vector>

#include "daemon/registration/registrar.h"
#include "daemon/triggered/deferred_pool.h"
#include "daemon/triggered/nic_channels.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class DeferredNics {
 public:
  // None, if the transport's NICs have no deferred work, or the rules leave them no entries. All
  // outlive this. An operation that takes longer than `timeout_ns` from the moment that its trigger
  // was seen reached fails.
  DeferredNics(transport::Transport& transport, Registrar& registrar, NicChannelsOwner& owner,
               uint64_t timeout_ns, DeferredRules rules);

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

  // As NicChannels::Open, on that NIC (whatever the other node says it is), with end.peer a peer of
  // the transport. A job's weight is that of its first channel. Errors: those of NicChannels::Open;
  // kNotFound (no such NIC here, or there; or it has no deferred work).
  Status Open(uint32_t nic, const NicEnd& end, uint32_t weight);
  // The NIC of a channel that is open.
  uint32_t NicOf(uint64_t channel) const { return places_.at(channel).nic; }

  // As NicChannels.
  void Connect(uint64_t channel, NicPlace other);
  void Watch(uint64_t channel);
  void Fail(uint64_t channel, ErrorCode error);
  void Close(uint64_t channel);
  void OnWriteEnd(uint64_t context, ErrorCode code);
  uint32_t Advance(uint64_t now_ns);
  bool is_armed() const;
  uint64_t NextNs(uint64_t now_ns) const;

 private:
  struct Nic {
    std::unique_ptr<NicChannels> channels;       // null: it has no deferred work
    std::map<DeferredPool::Job, uint32_t> jobs;  // how many channels are open, of each
    uint64_t load_bytes = 0;
  };
  struct Place {
    uint32_t nic = 0;
    transport::PeerId peer{};  // of the transport
    DeferredPool::Job job{};
    uint64_t load_bytes = 0;
  };
  // Null if the channel is open nowhere.
  NicChannels* ChannelsOf(uint64_t channel);

  transport::Transport& transport_;
  std::vector<Nic> nics_;                       // by rail
  std::unordered_map<uint64_t, Place> places_;  // by channel
};

}  // namespace ferry::daemon
