// A transport whose reads the test can hold back, as a slow NIC would.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "transports/api/transport.h"

namespace ferry::daemon {

// Shared by a GateTransport and the test.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<uint32_t> held{0};  // reads that were accepted and wait
};

class GateTransport final : public transport::Transport {
 public:
  GateTransport(std::unique_ptr<transport::Transport> real, std::shared_ptr<Gate> gate,
                uint64_t timeout_ns)
      : real_(std::move(real)), gate_(std::move(gate)), timeout_ns_(timeout_ns) {}

  const transport::Capabilities& capabilities() const override { return real_->capabilities(); }
  const transport::Description& Describe() const override { return real_->Describe(); }
  const std::vector<std::byte>& Address() const override { return real_->Address(); }
  const transport::Statistics& statistics() const override { return real_->statistics(); }
  std::string LastError() const override { return real_->LastError(); }
  StatusOr<transport::PeerId> AddPeer(std::span<const std::byte> address) override {
    return real_->AddPeer(address);
  }
  Status RemovePeer(transport::PeerId peer) override {
    FailPeer(peer, ErrorCode::kCancelled);
    return real_->RemovePeer(peer);
  }
  // What is held is reported, but the "NIC" keeps it until the gate opens.
  void FailPeer(transport::PeerId peer, ErrorCode code) override {
    for (Held& held : held_) {
      if (held.request.peer == peer && !held.reported) {
        held.reported = true;
        ended_.emplace_back(held.request.context, code);
      }
    }
    real_->FailPeer(peer, code);
  }
  StatusOr<transport::MemoryRegion> RegisterMemory(void* base, uint64_t bytes,
                                                   transport::Access access) override {
    return real_->RegisterMemory(base, bytes, access);
  }
  Status DeregisterMemory(transport::RegionHandle region) override {
    const bool used = std::any_of(held_.begin(), held_.end(), [region](const Held& held) {
      return held.request.region == region;
    });
    return used ? Status(ErrorCode::kWouldBlock, "held by the gate")
                : real_->DeregisterMemory(region);
  }
  ErrorCode SendMessage(transport::PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override {
    return real_->SendMessage(peer, header, payload, context, now_ns);
  }
  ErrorCode SendMessageFrom(transport::PeerId peer, std::span<const std::byte> header,
                            const transport::Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override {
    return real_->SendMessageFrom(peer, header, attachment, context, now_ns);
  }
  ErrorCode Write(const transport::RmaRequest& request, transport::Placement placement,
                  uint64_t now_ns) override {
    return real_->Write(request, placement, now_ns);
  }
  ErrorCode Read(const transport::RmaRequest& request, uint64_t now_ns) override {
    if (!gate_->closed.load()) {
      return real_->Read(request, now_ns);
    }
    held_.push_back({request, now_ns + timeout_ns_, false});
    gate_->held.fetch_add(1);
    return ErrorCode::kOk;
  }
  int Poll(transport::CompletionSink& sink, int budget, uint64_t now_ns) override {
    if (!gate_->closed.load() && !held_.empty()) {
      for (const Held& held : std::exchange(held_, {})) {
        if (held.reported) {
          continue;
        }
        if (const ErrorCode code = real_->Read(held.request, now_ns); code != ErrorCode::kOk) {
          ended_.emplace_back(held.request.context, code);
        }
      }
      gate_->held.store(0);
    }
    for (Held& held : held_) {
      if (!held.reported && now_ns >= held.deadline_ns) {
        held.reported = true;
        ended_.emplace_back(held.request.context, ErrorCode::kTimeout);
      }
    }
    int events = real_->Poll(sink, budget, now_ns);
    for (const auto& [context, code] : std::exchange(ended_, {})) {
      sink.OnComplete(context, code);
      ++events;
    }
    return events;
  }
  int WaitFd() const override { return real_->WaitFd(); }
  bool PrepareToSleep() override { return ended_.empty() && real_->PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override {
    return held_.empty() ? real_->NextPollNs(now_ns) : now_ns + 1'000'000;
  }

 private:
  struct Held {
    transport::RmaRequest request;
    uint64_t deadline_ns;
    bool reported;
  };

  const std::unique_ptr<transport::Transport> real_;
  const std::shared_ptr<Gate> gate_;
  const uint64_t timeout_ns_;
  std::vector<Held> held_;
  std::vector<std::pair<uint64_t, ErrorCode>> ended_;
};

}  // namespace ferry::daemon
