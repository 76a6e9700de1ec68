// The transport that CreateTcpTransport makes (tcp_transport.h): peers, memory, and the beginning
// and the report of each operation. Its parts: TcpConnections, TcpWriter and TcpReader.
//
// Thread: the one that owns the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/accounting.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_acceptor.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_connections.h"
#include "transports/tcp/tcp_operation.h"
#include "transports/tcp/tcp_reader.h"
#include "transports/tcp/tcp_state.h"
#include "transports/tcp/tcp_writer.h"

namespace ferry::transport {

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TransportOptions& options, UniqueFd epoll,
               std::unique_ptr<TcpAcceptor> acceptor, std::unique_ptr<TcpCells> cells,
               const LocalAddress& local);

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  std::vector<std::byte> AddressFor(uint64_t guest) const override;
  const Statistics& statistics() const override { return state_.statistics; }
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
    return state_.memory.Adopt(std::move(registration));
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
  int WaitFd() const override { return connections_.epoll(); }
  bool PrepareToSleep() override;
  uint64_t NextPollNs(uint64_t now_ns) const override;

 private:
  void OnCall(uint64_t now_ns);
  TcpPeer* Usable(PeerId id, ErrorCode* code);
  ErrorCode StartMessage(PeerId id, std::span<const std::byte> header,
                         std::span<const std::byte> payload, const Attachment* attachment,
                         uint64_t context, uint64_t now_ns);
  ErrorCode StartRma(OperationKind kind, const RmaRequest& request, Placement placement,
                     uint64_t now_ns);
  void ReportEnded(int budget);
  bool HasNews() const;

  TcpState state_;
  TcpConnections connections_;
  TcpWriter writer_;
  TcpReader reader_;
  std::vector<std::byte> address_;
  Capabilities capabilities_;
  Description description_;
};

}  // namespace ferry::transport
