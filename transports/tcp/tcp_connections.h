// The connections of a TcpTransport: how they are made, taken, watched and ended.
//
// The first post to a peer connects, if Connect has not; the peer's posts take the same connection.
// If both connect at once, that of the one with the smaller address stays: the other one's is
// answered by kUseOther before anything has gone by it. A connection that ends takes the operations
// with it that were to go, or have gone, by it.
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/unique_fd.h"
#include "transports/tcp/tcp_acceptor.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_state.h"
#include "transports/tcp/tcp_stream.h"

namespace ferry::transport {

class TcpReader;
class TcpWriter;

class TcpConnections {
 public:
  // `state`, `reader` and `writer` outlive it.
  TcpConnections(TcpState& state, UniqueFd epoll, std::unique_ptr<TcpAcceptor> acceptor,
                 TcpReader& reader, TcpWriter& writer);
  TcpConnections(const TcpConnections&) = delete;
  TcpConnections& operator=(const TcpConnections&) = delete;

  int epoll() const { return epoll_.get(); }
  TcpAcceptor& acceptor() const { return *acceptor_; }

  // ---- Remotes, which may have several names, or none
  TcpRemote* RemoteOf(const TcpIdentity& identity, const TcpEndpoint& endpoint);
  void AddName(TcpRemote* remote, TcpPeer* name);
  void RemoveName(TcpRemote* remote, TcpPeer* name);
  void ForgetIfUnused(TcpRemote* remote);

  // ---- Beginnings
  void Call(TcpRemote* remote);
  void OnConnected(TcpStream* stream);
  void OnWelcome(TcpStream* stream);
  // Takes a peer that has connected.
  void Take(TcpAcceptor::Proved proved);
  void ReconnectWaiting();
  // Returns true if a stream is not up yet.
  bool is_setting_up() const { return setting_up_ != 0; }

  // ---- What epoll tells of a stream
  void WatchOutput(TcpStream* stream, bool watched);
  void WatchAgain(TcpStream* stream);

  // ---- Ends
  // Notes that the connection is over; EndBroken ends it.
  void Break(TcpStream* stream, int error);
  bool any_broken() const { return !broken_.empty(); }
  void EndBroken();
  // Closes the stream. The caller has seen to the operations.
  void CloseStream(TcpStream* stream);
  // Frees the closed streams: none of their calls is running.
  void FreeClosed() { closed_.clear(); }
  // An operation is about to end, or has ended, before its time: nothing may touch its memory any
  // more.
  void LetGo(TcpOperation* op);
  void EndOverdue();
  void CloseSilent();

  // Returns the next time at which silence is looked for, or a peer is called again.
  uint64_t NextNs(uint64_t now_ns) const;

 private:
  bool MayTake(TcpRemote* remote);
  void ReadRest(TcpStream* stream);
  TcpStream* AddStream(UniqueFd fd, TcpRemote* remote, bool called);
  void Watch(TcpStream* stream, uint32_t events, int operation);
  void EndStream(TcpStream* stream);
  bool MayWaitForAnswer() const;
  bool IsSelf(const TcpRemote& remote) const {
    return remote.identity == TcpIdentity::Of(0, acceptor_->endpoint());
  }

  TcpState& state_;
  const UniqueFd epoll_;
  const std::unique_ptr<TcpAcceptor> acceptor_;
  TcpReader& reader_;
  TcpWriter& writer_;
  std::map<TcpIdentity, std::unique_ptr<TcpRemote>> remotes_;
  size_t unnamed_ = 0;                              // remotes without a name
  TcpRemote* keeps_remote_ = nullptr;               // is not forgotten, even unused
  std::vector<std::unique_ptr<TcpStream>> closed_;  // one of their calls may still be running
  std::vector<TcpStream*> broken_;
  size_t setting_up_ = 0;     // streams that are not up yet
  uint64_t silence_ns_ = 0;   // when CloseSilent looks next
  uint64_t asked_round_ = 0;  // in which it last looked: what was written before then was seen
  bool any_waits_ = false;    // it found a stream whose data were not acknowledged
};

}  // namespace ferry::transport
