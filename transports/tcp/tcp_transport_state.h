// The transport that CreateTcpTransport makes (tcp_transport.h): its state, and the life of its
// connections and operations.
//
// Connections. The first post to a peer connects, if Connect has not; the peer's posts take the
// same connection. If both connect at once, that of the one with the smaller address stays: the
// other one's is answered by kUseOther before anything has gone by it. A connection that ends takes
// the operations with it that were to go, or have gone, by it (tcp_transport.cc).
//
// Operations. The first post to a peer in a round (from one Poll or Flush to the next) is sent at
// once, if nothing waits; the next ones are gathered until the round ends, or until there is enough
// (tcp_transport_post.cc, tcp_transport_write.cc). A message ends when the kernel has it; reads,
// and writes that are to be placed, end when the peer answers (tcp_transport_read.cc). None is ever
// abandoned: a deadline that passes while half of a frame is sent takes the connection along.
//
// Peers are not trusted with more than they may ask for: a frame that no peer sends ends their
// connection. The memory that they can make this transport hold is bounded (kMostUnnamed,
// kMostReplies).
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/accounting.h"
#include "transports/api/operation_table.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_acceptor.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_memory.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_stream.h"

namespace ferry::transport {

// The most connections of peers that AddPeer has not named.
inline constexpr size_t kMostUnnamed = 1024;
// A connection for which so many answers wait, or twice as many as we ask of one peer ourselves, is
// not read on until it has taken half of them. Peers with the same options do not get there: so two
// that ask each other do not both stop.
inline constexpr size_t kMostReplies = 1024;
// The data of an answer goes in frames of so many bytes, so that messages need not wait for all of
// it. Only the last one has less.
inline constexpr uint64_t kAnswerBytes = 1 << 20;

// See CompletionSink::OnPeerLost.
struct LostPeer {
  PeerId peer{};
  bool lossless = false;
};

// Memory for the frames of messages that have to wait.
class TcpCells {
 public:
  static StatusOr<std::unique_ptr<TcpCells>> Create(size_t bytes);
  ~TcpCells();
  TcpCells(const TcpCells&) = delete;
  TcpCells& operator=(const TcpCells&) = delete;
  std::byte* base() const { return base_; }

 private:
  TcpCells(std::byte* base, size_t bytes) : base_(base), bytes_(bytes) {}
  std::byte* const base_;
  const size_t bytes_;
};

class TcpTransport final : public Transport, private FrameReader {
 public:
  TcpTransport(const TransportOptions& options, UniqueFd epoll,
               std::unique_ptr<TcpAcceptor> acceptor, std::unique_ptr<TcpCells> cells,
               const LocalAddress& local);

  static size_t CellBytes(const TransportOptions& options);
  static uint32_t OperationSlots(const TransportOptions& options) {
    return options.max_outstanding + OperationReserve(options);
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  std::vector<std::byte> AddressFor(uint64_t guest) const override;
  const Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override;

  StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest) override;
  Status RemovePeer(PeerId id) override;
  void FailPeer(PeerId id, ErrorCode code) override;
  void Connect(PeerId id, uint64_t now_ns) override;
  ErrorCode ConnectionTo(PeerId id, std::string* why) override;

  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    return TcpMemory::Prepare(base, bytes, access);
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return memory_.Adopt(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override;

  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override;
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override;
  ErrorCode Write(const RmaRequest& request, Placement placement, uint64_t now_ns) override {
    return StartRma(OperationKind::kWrite, request, placement, now_ns);
  }
  ErrorCode Read(const RmaRequest& request, uint64_t now_ns) override {
    return StartRma(OperationKind::kRead, request, Placement::kLocal, now_ns);
  }

  void DropLanding(uint64_t context) override;
  void Flush(uint64_t now_ns) override;
  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override;
  int WaitFd() const override { return epoll_.get(); }
  bool PrepareToSleep() override;
  uint64_t NextPollNs(uint64_t now_ns) const override;

 private:
  struct Batch;

  void OnCall(uint64_t now_ns);

  // ---- Connections (tcp_transport.cc)
  TcpRemote* RemoteOf(const TcpIdentity& identity, const TcpEndpoint& endpoint);
  void ForgetIfUnused(TcpRemote* remote);
  void Call(TcpRemote* remote);
  void OnConnected(TcpStream* stream);
  void OnWelcome(TcpStream* stream);
  void Take(TcpAcceptor::Proved proved);
  bool MayTake(TcpRemote* remote);
  void ReadRest(TcpStream* stream);
  TcpStream* AddStream(UniqueFd fd, TcpRemote* remote, bool called);
  void Watch(TcpStream* stream, uint32_t events, int operation);
  void WatchOutput(TcpStream* stream, bool watched);
  void WatchAgain(TcpStream* stream);
  void Pause(TcpStream* stream);
  void ReadOn(TcpStream* stream);
  void Break(TcpStream* stream, int error);
  void EndBroken();
  void EndStream(TcpStream* stream);
  void CloseStream(TcpStream* stream);
  void LetGo(TcpOperation* op);
  void EndOverdue();
  void CloseStalled();
  static bool MayWaitForAnswer(const TcpStream& stream);
  void CloseSilent();
  void ReconnectWaiting();
  bool IsSelf(const TcpRemote& remote) const {
    return remote.identity == TcpIdentity::Of(0, acceptor_->endpoint());
  }

  // ---- Posting (tcp_transport_post.cc)
  TcpPeer* Usable(PeerId id, ErrorCode* code);
  ErrorCode StartMessage(PeerId id, std::span<const std::byte> header,
                         std::span<const std::byte> payload, const Attachment* attachment,
                         uint64_t context, uint64_t now_ns);
  ErrorCode StartRma(OperationKind kind, const RmaRequest& request, Placement placement,
                     uint64_t now_ns);
  void PrepareFragment(TcpOperation* op);
  ErrorCode Submit(TcpOperation* op, std::span<const std::byte> header,
                   std::span<const std::byte> payload);
  static constexpr uint64_t kUnreadable = UINT64_MAX;
  uint64_t WriteAtOnce(TcpStream* stream, TcpOperation* op, bool copied,
                       std::span<const std::byte> header, std::span<const std::byte> payload);

  // ---- Writing (tcp_transport_write.cc)
  void NoteBlocked(TcpStream* stream);
  static bool MayWrite(const TcpStream& stream);
  static bool HasOutput(const TcpStream& stream);
  void MarkDirty(TcpStream* stream);
  void WriteDirty();
  void WriteOut(TcpStream* stream);
  static void Gather(TcpStream* stream, size_t most, Batch* batch);
  void OnSent(TcpStream* stream, const Batch& batch, uint64_t bytes);
  void OnUnreadable(TcpStream* stream, const Batch& batch);
  void OnWritten(TcpOperation* op);
  void OnReplySent(TcpStream* stream);
  void EndFragment(TcpOperation* op);
  void Reply(TcpStream* stream, FrameKind kind, uint64_t id);
  void ReplyData(TcpStream* stream, uint64_t id, TcpRegion* region, const std::byte* data,
                 uint64_t bytes);

  // ---- Reading (tcp_transport_read.cc)
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
  static void CutLanding(TcpStream* stream);

  void ReadStreams(int budget);
  void ReadStream(TcpStream* stream, uint32_t frames);
  void Look(bool reads);
  void ReportEnded(int budget);

  const TransportOptions options_;
  const size_t cell_bytes_;
  const size_t most_replies_;
  const UniqueFd epoll_;
  const std::unique_ptr<TcpAcceptor> acceptor_;
  const std::unique_ptr<TcpCells> cells_;
  std::vector<std::byte> address_;
  Capabilities capabilities_;
  Description description_;
  Statistics statistics_;
  std::string last_error_;

  TcpMemory memory_;
  SlotMap<PeerId, TcpPeer> peers_;
  std::map<TcpIdentity, std::unique_ptr<TcpRemote>> remotes_;
  size_t unnamed_ = 0;                 // remotes without a name
  TcpRemote* keeps_remote_ = nullptr;  // is not forgotten, even unused
  OperationTable<TcpOperation> operations_;
  intrusive::List<TcpOperation, intrusive::Queue> written_;  // see TcpOperation::written

  std::vector<std::unique_ptr<TcpStream>> streams_;
  std::vector<std::unique_ptr<TcpStream>> closed_;  // one of their calls may still be running
  std::vector<TcpStream*> dirty_;
  std::vector<TcpStream*> unread_;
  std::vector<TcpStream*> broken_;
  std::vector<LostPeer> lost_;     // of which the sink is to be told
  size_t setting_up_ = 0;          // streams that are not up yet
  std::vector<TcpStream*> ready_;  // within ReadStreams
  ReadBuffer buffer_;

  uint64_t now_ns_ = 0;
  uint64_t round_ = 1;
  uint64_t silence_ns_ = 0;  // when CloseSilent looks next
  uint32_t polls_since_look_ = 0;
  bool must_look_ = true;
  CompletionSink* sink_ = nullptr;  // within Poll
  int events_ = 0;                  // how many sink_ has got in this Poll
  bool has_moved_ = false;          // this Poll has moved a part of something long
};

}  // namespace ferry::transport
