// A transport without a network: registers memory, and takes messages that go nowhere if it is told
// to.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transports/api/transport.h"

namespace ferry::daemon {

class FakeTransport final : public transport::Transport {
 public:
  // The "NIC" holds on to a region until LetGo.
  void Hold(transport::RegionHandle region) { held_ = region; }
  void LetGo() { held_.reset(); }
  size_t regions() const { return regions_.size(); }
  void TakeMessages(bool takes = true) { takes_messages_ = takes; }
  // Those taken, without what was attached.
  const std::vector<std::vector<std::byte>>& messages() const { return messages_; }
  // Before a registrar is made for it.
  void PinNothing() { capabilities_.pins = false; }
  void RefuseMemory(bool refuse = true) { refuse_ = refuse; }
  transport::Access AccessOf(transport::RegionHandle region) const { return regions_.at(region); }

  StatusOr<std::unique_ptr<transport::Registration>> PrepareMemory(
      void* /*base*/, uint64_t /*bytes*/, transport::Access access) override {
    if (refuse_) {
      return Status(ErrorCode::kLimitExceeded, "no more registrations");
    }
    return std::unique_ptr<transport::Registration>(std::make_unique<Prepared>(access));
  }
  StatusOr<transport::MemoryRegion> AdoptMemory(
      std::unique_ptr<transport::Registration> registration) override {
    transport::MemoryRegion region;
    region.handle = transport::RegionHandle{++next_};
    region.key = 1000 + next_;
    regions_[region.handle] = static_cast<const Prepared&>(*registration).access;
    return region;
  }
  StatusOr<std::unique_ptr<transport::Registration>> ReleaseMemory(
      transport::RegionHandle region) override {
    if (held_ == region) {
      return Status(ErrorCode::kWouldBlock, "held");
    }
    const auto found = regions_.extract(region);
    if (found.empty()) {
      return Status(ErrorCode::kNotFound, "no such region");
    }
    return std::unique_ptr<transport::Registration>(std::make_unique<Prepared>(found.mapped()));
  }

  const transport::Capabilities& capabilities() const override { return capabilities_; }
  const transport::Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const transport::Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return {}; }
  StatusOr<transport::PeerId> AddPeer(std::span<const std::byte>, uint64_t) override {
    return transport::PeerId{};
  }
  Status RemovePeer(transport::PeerId) override { return {}; }
  void FailPeer(transport::PeerId, ErrorCode) override {}
  ErrorCode SendMessage(transport::PeerId, std::span<const std::byte> head,
                        std::span<const std::byte> body, uint64_t, uint64_t) override {
    if (!takes_messages_) {
      return ErrorCode::kWouldBlock;
    }
    messages_.emplace_back(head.begin(), head.end());
    messages_.back().insert(messages_.back().end(), body.begin(), body.end());
    return ErrorCode::kOk;
  }
  ErrorCode SendMessageFrom(transport::PeerId, std::span<const std::byte>,
                            const transport::Attachment&, uint64_t, uint64_t) override {
    return ErrorCode::kWouldBlock;
  }
  ErrorCode Write(const transport::RmaRequest&, transport::Placement, uint64_t) override {
    return ErrorCode::kWouldBlock;
  }
  ErrorCode Read(const transport::RmaRequest&, uint64_t) override { return ErrorCode::kWouldBlock; }
  int Poll(transport::CompletionSink&, int, uint64_t) override { return 0; }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }

 private:
  struct Prepared final : transport::Registration {
    explicit Prepared(transport::Access its_access) : access(its_access) {}
    const transport::Access access;
  };

  transport::Capabilities capabilities_;
  transport::Description description_;
  transport::Statistics statistics_;
  std::vector<std::byte> address_;
  std::map<transport::RegionHandle, transport::Access> regions_;
  std::optional<transport::RegionHandle> held_;
  std::atomic<bool> refuse_ = false;
  bool takes_messages_ = false;
  std::vector<std::vector<std::byte>> messages_;
  uint64_t next_ = 0;
};

}  // namespace ferry::daemon
