// The writing side of a TcpTransport: the frames of operations, and answers to peers.
//
// The first post to a peer in a round (from one Poll or Flush to the next) is sent at once, if
// nothing waits; the next ones are gathered until the round ends, or until there is enough. A
// message ends when the kernel has it; reads, and writes that are to be placed, end when the peer
// answers. None is ever abandoned: a deadline that passes while half of a frame is sent takes the
// connection along.
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/error_code.h"
#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_state.h"
#include "transports/tcp/tcp_stream.h"

namespace ferry::transport {

// The data of an answer goes in frames of so many bytes, so that messages need not wait for all of
// it. Only the last one has less.
inline constexpr uint64_t kAnswerBytes = 1 << 20;

class TcpConnections;
class TcpReader;

class TcpWriter {
 public:
  // The arguments outlive it.
  TcpWriter(TcpState& state, TcpConnections& connections, TcpReader& reader)
      : state_(state), connections_(connections), reader_(reader) {}
  TcpWriter(const TcpWriter&) = delete;
  TcpWriter& operator=(const TcpWriter&) = delete;

  // Makes the frame of the next fragment of a read or a write.
  void PrepareFragment(TcpOperation* op);
  // Sends the operation's frame, or queues it; `header` and `payload` are those of a message.
  ErrorCode Submit(TcpOperation* op, std::span<const std::byte> header,
                   std::span<const std::byte> payload);
  // Ends the fragment, and queues the next one if there is one.
  void EndFragment(TcpOperation* op);

  // Queues an answer without data to the peer's operation `id`.
  void Reply(TcpStream* stream, FrameKind kind, uint64_t id);
  // Queues the next [data, data + bytes) of what the read `id` of the peer wants; `region` counts
  // it.
  void ReplyData(TcpStream* stream, uint64_t id, TcpRegion* region, const std::byte* data,
                 uint64_t bytes);

  // Adds the stream to those that have something to write.
  void MarkDirty(TcpStream* stream);
  void WriteDirty();
  bool has_dirty() const { return !dirty_.empty(); }
  // Before a sleep: epoll tells when the streams that have something to write take more.
  void WatchDirty();
  // Breaks connections to peers that take no whole frame for as long as operations may take:
  // answers have no deadline of their own.
  void CloseStalled();
  void Forget(TcpStream* stream);

 private:
  struct Batch;

  static constexpr uint64_t kUnreadable = UINT64_MAX;
  uint64_t WriteAtOnce(TcpStream* stream, TcpOperation* op, bool copied,
                       std::span<const std::byte> header, std::span<const std::byte> payload);
  void NoteBlocked(TcpStream* stream);
  static bool MayWrite(const TcpStream& stream);
  static bool HasOutput(const TcpStream& stream);
  void WriteOut(TcpStream* stream);
  static void Gather(TcpStream* stream, size_t most, Batch* batch);
  void OnSent(TcpStream* stream, const Batch& batch, uint64_t bytes);
  void OnUnreadable(TcpStream* stream, const Batch& batch);
  void OnWritten(TcpOperation* op);
  void OnReplySent(TcpStream* stream);

  TcpState& state_;
  TcpConnections& connections_;
  TcpReader& reader_;
  std::vector<TcpStream*> dirty_;
};

}  // namespace ferry::transport
