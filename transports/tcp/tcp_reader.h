// The reading side of a TcpTransport: the meaning of the frames that come from peers.
//
// Peers are not trusted with more than they may ask for: a frame that no peer sends ends their
// connection. The memory that they can make the transport hold is bounded (TcpState::most_replies).
//
// Thread: the one that owns the transport, within Poll.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_state.h"
#include "transports/tcp/tcp_stream.h"

namespace ferry::transport {

class TcpConnections;
class TcpWriter;

class TcpReader final : private FrameReader {
 public:
  // The arguments outlive it.
  TcpReader(TcpState& state, TcpConnections& connections, TcpWriter& writer)
      : state_(state), connections_(connections), writer_(writer) {}
  TcpReader(const TcpReader&) = delete;
  TcpReader& operator=(const TcpReader&) = delete;

  // Reads the streams that have something, and at times asks epoll.
  void ReadStreams(int budget);
  void ReadStream(TcpStream* stream, uint32_t frames);
  // Returns true if a stream keeps bytes that it has received and not read.
  bool has_unread() const { return !unread_.empty(); }
  // The next ReadStreams asks epoll.
  void MustLook() { must_look_ = true; }
  // Reads a paused stream again.
  void ReadOn(TcpStream* stream);
  void Forget(TcpStream* stream);
  // Nothing tells of what lands now, and nothing of it goes to its place any more.
  static void CutLanding(TcpStream* stream);

 private:
  FrameData OnFrame(TcpStream& stream, const FrameHeader& frame, std::span<const std::byte> head,
                    std::span<const std::byte> behind) override;
  void OnFrameData(TcpStream& stream, bool spoilt, bool unplaced) override;
  void OnMisfit() override;
  FrameData OnMessageFrom(TcpStream& stream, const FrameHeader& frame,
                          std::span<const std::byte> head, std::span<const std::byte> behind);
  void OnRead(TcpStream& stream, const FrameHeader& frame, uint64_t key);
  FrameData OnData(TcpStream& stream, const FrameHeader& frame);
  void OnDataEnd(TcpOperation* op, uint64_t bytes, bool good);
  FrameData OnWrite(TcpStream& stream, const FrameHeader& frame, uint64_t key);
  void OnAnswer(TcpStream& stream, const FrameHeader& frame);
  void DeliverWhole(TcpStream& stream);
  void Receive(const TcpStream& stream, std::span<const std::byte> message);
  TcpOperation* Answered(const TcpStream& stream, uint64_t id);
  void CountReceived(uint64_t bytes);
  static PeerId NameOf(const TcpRemote& remote);
  void Look(bool reads);
  void Pause(TcpStream* stream);

  TcpState& state_;
  TcpConnections& connections_;
  TcpWriter& writer_;
  std::vector<TcpStream*> unread_;
  std::vector<TcpStream*> ready_;  // within ReadStreams
  ReadBuffer buffer_;
  uint32_t polls_since_look_ = 0;
  bool must_look_ = true;
};

}  // namespace ferry::transport
