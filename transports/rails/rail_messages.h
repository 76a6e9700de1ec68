// Messages between the rails of two nodes, and probes: which rails a peer answers on.
//
// A further rail carries nothing to a peer before it has answered a probe, nor after it has failed
// a stripe, until it answers again.
//
// Thread: the progress thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "transports/rails/rail_keys.h"
#include "transports/rails/rails_state.h"

namespace ferry::transport {

class RailMessages {
 public:
  // `state` outlives it.
  explicit RailMessages(RailsState& state) : state_(state) {}
  RailMessages(const RailMessages&) = delete;
  RailMessages& operator=(const RailMessages&) = delete;

  // Sends a message that tells the peer nothing if it is lost: the peer, or this node, asks again.
  ErrorCode Send(const RailPeer& peer, size_t rail, const RailMessage& message);
  // Sends a reply with SendReplies. Beyond a limit it is dropped.
  void Reply(size_t rail, const RailMessage& message);
  void SendReplies();
  bool has_replies() const { return !replies_.empty(); }

  // Probes the rails that are down to this peer, and goes on to do so until they are up.
  void Probe(RailPeer* peer);
  // Probes all peers that are used, if it is time.
  void ProbeAll();
  // Transport::Reaches, for a peer that may be used.
  ErrorCode Reaches(RailPeer* peer, size_t rail);
  // The rail carries nothing more to the peer until it answers a probe. The first rail stays up.
  void Doubt(RailPeer* peer, size_t rail);
  void OnProbe(size_t rail, const RailMessage& probe);
  void OnEcho(size_t rail, const RailMessage& echo);

 private:
  bool IsFirstAsked(const RailPeer& peer) const;
  void ProbeWithin(uint64_t interval_ns);

  RailsState& state_;
  std::vector<std::pair<size_t, RailMessage>> replies_;  // to be sent, each by its rail
  uint64_t next_probe_ns_ = UINT64_MAX;
};

}  // namespace ferry::transport
