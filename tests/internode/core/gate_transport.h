// A transport whose reads, writes and registrations the test can hold back, as a slow NIC would.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "transports/api/forwarding_transport.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// Shared by a GateTransport and the test.
struct Gate {
  std::atomic<bool> closed{false};
  std::atomic<uint32_t> held{0};  // accepted reads and writes that wait

  // While true, pinning and unpinning wait until the test lets them go.
  std::atomic<bool> pins_slowly{false};
  std::atomic<uint32_t> pinning{0};    // waiting
  std::atomic<uint32_t> unpinning{0};  // waiting
  std::atomic<uint32_t> pinned{0};     // present registrations
  std::atomic<uint32_t> begun{0};      // pinnings so far
  std::atomic<bool> refuses{false};    // refuses to pin
  void WaitToPin(std::atomic<uint32_t>& count) {
    count.fetch_add(1);
    count.notify_all();
    pins_slowly.wait(true);
    count.fetch_sub(1);
  }
  // While true, nothing moves in this node: its thread waits in Poll, as a stopped daemon would.
  std::atomic<bool> stands_still{false};
  void GoOn() {
    stands_still.store(false);
    stands_still.notify_all();
  }
  void PinAtOnce() {
    pins_slowly.store(false);
    pins_slowly.notify_all();
  }
};

// Posts to one of several NICs itself bypass the gate.
class GateTransport final : public transport::ForwardingTransport {
 public:
  GateTransport(std::unique_ptr<transport::Transport> real, std::shared_ptr<Gate> gate,
                uint64_t timeout_ns, bool pins = true)
      : ForwardingTransport(*real),
        real_(std::move(real)),
        gate_(std::move(gate)),
        timeout_ns_(timeout_ns),
        capabilities_(real_->capabilities()) {
    capabilities_.pins = pins;
  }

  const transport::Capabilities& capabilities() const override { return capabilities_; }

  Status RemovePeer(transport::PeerId peer) override {
    FailPeer(peer, ErrorCode::kCancelled);
    return real_->RemovePeer(peer);
  }
  // A held operation is reported, but the "NIC" keeps it until the gate opens.
  void FailPeer(transport::PeerId peer, ErrorCode code) override {
    for (Held& held : held_) {
      if (held.request.peer == peer && !held.reported) {
        held.reported = true;
        ended_.emplace_back(held.request.context, code);
      }
    }
    real_->FailPeer(peer, code);
  }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareMemory(
      void* base, uint64_t bytes, transport::Access access) override {
    return Prepare([&] { return real_->PrepareMemory(base, bytes, access); });
  }
  StatusOr<std::unique_ptr<transport::Registration>> PrepareDeviceMemory(
      const transport::DeviceMemory& memory, void* base, uint64_t bytes,
      transport::Access access) override {
    return Prepare([&] { return real_->PrepareDeviceMemory(memory, base, bytes, access); });
  }
  StatusOr<transport::MemoryRegion> AdoptMemory(
      std::unique_ptr<transport::Registration> registration) override {
    auto* pinned = dynamic_cast<Pinned*>(registration.get());
    if (pinned != nullptr) {
      return real_->AdoptMemory(std::move(pinned->real));
    }
    auto target = real_->AdoptMemory(std::move(registration));  // deferred work has no gate
    if (target.ok()) {
      targets_.insert(target->handle);
    }
    return target;
  }
  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle region) override {
    const bool used = std::any_of(held_.begin(), held_.end(), [region](const Held& held) {
      return held.request.region == region;
    });
    if (used) {
      return Status(ErrorCode::kWouldBlock, "held by the gate");
    }
    auto real = real_->ReleaseMemory(region);
    FERRY_RETURN_IF_ERROR(real.status());
    if (targets_.erase(region) != 0) {
      return real;
    }
    return std::unique_ptr<transport::Registration>(
        std::make_unique<Pinned>(gate_, std::move(*real)));
  }
  ErrorCode Write(const transport::RmaRequest& request, transport::Placement placement,
                  uint64_t now_ns) override {
    return PostOrHold({true, placement, request, now_ns + timeout_ns_, false}, now_ns);
  }
  ErrorCode Read(const transport::RmaRequest& request, uint64_t now_ns) override {
    return PostOrHold({false, {}, request, now_ns + timeout_ns_, false}, now_ns);
  }
  int Poll(transport::CompletionSink& sink, int budget, uint64_t now_ns) override {
    gate_->stands_still.wait(true);
    if (!gate_->closed.load() && !held_.empty()) {
      for (const Held& held : std::exchange(held_, {})) {
        if (held.reported) {
          continue;
        }
        if (const ErrorCode code = Post(held, now_ns); code != ErrorCode::kOk) {
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
  bool PrepareToSleep() override { return ended_.empty() && real_->PrepareToSleep(); }
  uint64_t NextPollNs(uint64_t now_ns) const override {
    return held_.empty() ? real_->NextPollNs(now_ns) : now_ns + 1'000'000;
  }

 private:
  // A husk once it is adopted.
  struct Pinned final : transport::Registration {
    Pinned(std::shared_ptr<Gate> its_gate, std::unique_ptr<transport::Registration> its_real)
        : gate(std::move(its_gate)), real(std::move(its_real)) {}
    ~Pinned() override {
      if (real != nullptr) {
        gate->WaitToPin(gate->unpinning);
        gate->pinned.fetch_sub(1);
      }
    }
    const std::shared_ptr<Gate> gate;
    std::unique_ptr<transport::Registration> real;
  };

  struct Held {
    bool write;
    transport::Placement placement;  // for a write
    transport::RmaRequest request;
    uint64_t deadline_ns;
    bool reported;
  };

  template <typename Real>
  StatusOr<std::unique_ptr<transport::Registration>> Prepare(const Real& prepare) {
    gate_->begun.fetch_add(1);
    gate_->WaitToPin(gate_->pinning);
    if (gate_->refuses) {
      return Status(ErrorCode::kOutOfMemory, "the gate has no room");
    }
    StatusOr<std::unique_ptr<transport::Registration>> real = prepare();
    FERRY_RETURN_IF_ERROR(real.status());
    gate_->pinned.fetch_add(1);
    return std::unique_ptr<transport::Registration>(
        std::make_unique<Pinned>(gate_, std::move(*real)));
  }

  ErrorCode Post(const Held& held, uint64_t now_ns) {
    return held.write ? real_->Write(held.request, held.placement, now_ns)
                      : real_->Read(held.request, now_ns);
  }
  ErrorCode PostOrHold(const Held& held, uint64_t now_ns) {
    if (!gate_->closed.load()) {
      return Post(held, now_ns);
    }
    held_.push_back(held);
    gate_->held.fetch_add(1);
    return ErrorCode::kOk;
  }

  const std::unique_ptr<transport::Transport> real_;
  const std::shared_ptr<Gate> gate_;
  const uint64_t timeout_ns_;
  transport::Capabilities capabilities_;
  std::set<transport::RegionHandle> targets_;
  std::vector<Held> held_;
  std::vector<std::pair<uint64_t, ErrorCode>> ended_;
};

}  // namespace ferry::daemon
