// The transport that CreateOfiTransport makes (ofi_transport.h): its state, and the life of its
// operations.
//
// An operation is accepted and posted, or queued where the provider puts it off; it ends, and is
// reported, in Poll.
//
// Thread: the one that owns the transport.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/slot_map.h"
#include "common/status.h"
#include "transports/api/operation_table.h"
#include "transports/api/transport.h"
#include "transports/ofi/endpoint.h"
#include "transports/ofi/memory.h"
#include "transports/ofi/ofi_deferred.h"
#include "transports/ofi/operation.h"

namespace ferry::transport {

struct ReceiveBuffer : PostContext {
  std::byte* data = nullptr;
};

class OfiTransport final : public Transport, private DeferredPeers {
 public:
  OfiTransport(const TransportOptions& options, std::unique_ptr<Endpoint> endpoint,
               std::unique_ptr<Arena> arena);
  ~OfiTransport() override;
  Status PostAllReceives();
  Status OpenDeferredWork();

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return endpoint_->description; }
  const std::vector<std::byte>& Address() const override { return endpoint_->name; }
  const Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override;

  StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest) override;
  Status RemovePeer(PeerId id) override;
  void FailPeer(PeerId id, ErrorCode code) override;

  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                        Access access) override {
    return regions_.Prepare(base, bytes, access, /*counter=*/nullptr);
  }
  StatusOr<std::unique_ptr<Registration>> PrepareDeviceMemory(const DeviceMemory& memory,
                                                              void* base, uint64_t bytes,
                                                              Access access) override {
    return regions_.PrepareDevice(memory, base, bytes, access);
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) override {
    return regions_.Adopt(std::move(registration));
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    return regions_.Release(region);
  }

  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override;
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override;
  ErrorCode Write(const RmaRequest& request, Placement placement, uint64_t now_ns) override {
    return StartRma(Operation::Kind::kWrite, request, placement, now_ns);
  }
  ErrorCode Read(const RmaRequest& request, uint64_t now_ns) override {
    return StartRma(Operation::Kind::kRead, request, Placement::kLocal, now_ns);
  }

  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override;
  int WaitFd() const override { return endpoint_->wait_fd; }
  bool PrepareToSleep() override;
  uint64_t NextPollNs(uint64_t now_ns) const override;
  DeferredWork* deferred_work() override { return deferred_.get(); }

 private:
  ErrorCode StartMessage(PeerId peer, std::span<const std::byte> header,
                         std::span<const std::byte> payload, const Attachment* attachment,
                         uint64_t context, uint64_t now_ns);
  ErrorCode StartRma(Operation::Kind kind, const RmaRequest& request, Placement placement,
                     uint64_t now_ns);
  Peer* Usable(PeerId id, ErrorCode* code) override;
  ErrorCode Start(Operation* op);
  ssize_t PostFragment(Operation* op);
  ssize_t PostMessage(Operation* op);
  ssize_t Post(Operation* op);
  ErrorCode PostOrQueue(Operation* op);
  void ForgetIfIdle(Peer* peer) override;

  // Parts of Poll. Those that return a number have handed that many events to the sink.
  int ReadCompletions(CompletionSink& sink, int budget, uint64_t now_ns);
  bool IsDeferred(const void* op_context) const {
    return deferred_ != nullptr && deferred_->Owns(op_context);
  }
  int ReadError(CompletionSink& sink, uint64_t now_ns);
  int OnOperation(Operation* op, ErrorCode code, CompletionSink& sink, uint64_t now_ns);
  void OnMessage(ReceiveBuffer* buffer, size_t bytes, fi_addr_t source, CompletionSink& sink);
  int ReportEnded(CompletionSink& sink, int budget);

  void RetryQueues();
  void RetryReceives();
  ssize_t PostReceive(ReceiveBuffer* buffer);
  void PostReceiveOrDefer(ReceiveBuffer* buffer);

  const TransportOptions options_;
  const uint64_t fragment_bytes_;
  const size_t cell_bytes_;
  std::unique_ptr<Arena> arena_;  // outlives the endpoint
  std::unique_ptr<Endpoint> endpoint_;
  fid_ep* const ep_;
  Capabilities capabilities_;
  Statistics statistics_;
  bool queue_empty_ = false;     // nothing was posted since it was seen empty
  int last_error_ = 0;           // libfabric's, positive
  int last_provider_error_ = 0;  // the provider's own

  RegionTable regions_;
  SlotMap<PeerId, Peer> peers_;
  std::vector<PeerId> peer_by_address_;  // by fi_addr_t, which FI_AV_TABLE keeps small

  std::unique_ptr<OfiDeferred> deferred_;  // null if the provider has none
  OperationTable<Operation> operations_;
  std::vector<ReceiveBuffer> receives_;
  std::vector<ReceiveBuffer*> deferred_receives_;  // the provider had no room for them yet
};

}  // namespace ferry::transport
