// A NIC whose operations end when, and as, a test says.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transports/api/transport.h"

namespace ferry::transport {

class ScriptedRail final : public Transport {
 public:
  struct Posted {
    bool read;
    RmaRequest request;
  };

  explicit ScriptedRail(const std::string& name) {
    description_.provider = "scripted";
    description_.domain = name;
    address_.resize(name.size());
    std::memcpy(address_.data(), name.data(), name.size());
    capabilities_.max_message_bytes = 4096;
    capabilities_.max_attachment_bytes = 4096;
  }

  // ---- The test's side

  // Reads and writes that were posted and have not ended, oldest first.
  std::deque<Posted> posted;
  // Messages that were sent, with their peers; each completes in the next Poll.
  std::deque<std::pair<PeerId, std::vector<std::byte>>> sent;
  int room = 1 << 20;  // for so many reads and writes more
  bool messages_fit = true;
  bool holds_memory = false;  // releases nothing

  void End(ErrorCode code) {
    ended_.emplace_back(posted.front().request.context, code);
    posted.pop_front();
  }
  void Deliver(PeerId sender, std::vector<std::byte> message) {
    inbox_.push_back({sender, std::move(message), {}});
  }
  // A message with an attachment, which goes where OnHead says.
  void DeliverWith(PeerId sender, std::vector<std::byte> header,
                   std::vector<std::byte> attachment) {
    inbox_.push_back({sender, std::move(header), std::move(attachment)});
  }
  size_t regions() const { return regions_.size(); }

  // ---- Transport

  const Capabilities& capabilities() const override { return capabilities_; }
  const Description& Describe() const override { return description_; }
  const std::vector<std::byte>& Address() const override { return address_; }
  const Statistics& statistics() const override { return statistics_; }
  std::string LastError() const override { return "scripted"; }
  StatusOr<PeerId> AddPeer(std::span<const std::byte>, uint64_t) override {
    return PeerId{next_peer_++};
  }
  Status RemovePeer(PeerId peer) override {
    FailPeer(peer, ErrorCode::kCancelled);
    return Status();
  }
  void FailPeer(PeerId peer, ErrorCode code) override {
    failed_[peer] = code;
    std::erase_if(posted, [&](const Posted& post) {
      if (post.request.peer == peer) {
        ended_.emplace_back(post.request.context, code);
      }
      return post.request.peer == peer;
    });
  }
  StatusOr<std::unique_ptr<Registration>> PrepareMemory(void*, uint64_t, Access) override {
    return std::unique_ptr<Registration>(std::make_unique<Nothing>());
  }
  StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration>) override {
    const RegionHandle handle{next_region_++};
    regions_[handle] = true;
    return MemoryRegion{handle, static_cast<uint64_t>(handle) * 1000, /*remote_base=*/0x10000};
  }
  StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) override {
    if (holds_memory) {
      return Status(ErrorCode::kWouldBlock, "held");
    }
    return regions_.erase(region) == 0
               ? StatusOr<std::unique_ptr<Registration>>(Status(ErrorCode::kNotFound, "gone"))
               : std::unique_ptr<Registration>(std::make_unique<Nothing>());
  }
  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context, uint64_t) override {
    if (failed_.contains(peer)) {
      return failed_[peer];
    }
    if (!messages_fit) {
      return ErrorCode::kWouldBlock;
    }
    std::vector<std::byte> message(header.begin(), header.end());
    message.insert(message.end(), payload.begin(), payload.end());
    sent.emplace_back(peer, std::move(message));
    ended_.emplace_back(context, ErrorCode::kOk);
    return ErrorCode::kOk;
  }
  ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                            const Attachment& attachment, uint64_t context,
                            uint64_t now_ns) override {
    const auto* data = static_cast<const std::byte*>(attachment.data);
    return SendMessage(peer, header, {data, attachment.bytes}, context, now_ns);
  }
  ErrorCode Write(const RmaRequest& request, Placement, uint64_t) override {
    return Post(/*read=*/false, request);
  }
  ErrorCode Read(const RmaRequest& request, uint64_t) override {
    return Post(/*read=*/true, request);
  }
  int Poll(CompletionSink& sink, int budget, uint64_t) override {
    int events = 0;
    for (; events < budget && !inbox_.empty(); events++) {
      Arrival arrival = std::move(inbox_.front());
      inbox_.pop_front();
      Receive(&arrival, sink);
    }
    for (; events < budget && !ended_.empty(); events++) {
      const auto [context, code] = ended_.front();
      ended_.pop_front();
      sink.OnComplete(context, code);
    }
    return events;
  }
  int WaitFd() const override { return -1; }
  bool PrepareToSleep() override { return false; }
  uint64_t NextPollNs(uint64_t) const override { return UINT64_MAX; }

 private:
  struct Nothing final : Registration {};
  struct Arrival {
    PeerId sender;
    std::vector<std::byte> header;
    std::vector<std::byte> attachment;
  };

  static void Receive(Arrival* arrival, CompletionSink& sink) {
    std::vector<std::byte>& attachment = arrival->attachment;
    if (!attachment.empty()) {
      const Landing landing = sink.OnHead(arrival->sender, arrival->header, attachment.size());
      if (landing.to != nullptr) {
        std::memcpy(landing.to, attachment.data(), std::min(landing.bytes, attachment.size()));
        return sink.OnLanded(landing.context, ErrorCode::kOk);
      }
    }
    arrival->header.insert(arrival->header.end(), attachment.begin(), attachment.end());
    sink.OnReceive(arrival->sender, arrival->header);
  }

  ErrorCode Post(bool read, const RmaRequest& request) {
    if (failed_.contains(request.peer)) {
      return failed_[request.peer];
    }
    if (room == 0) {
      return ErrorCode::kWouldBlock;
    }
    room--;
    posted.push_back({read, request});
    return ErrorCode::kOk;
  }

  Description description_;
  Capabilities capabilities_;
  Statistics statistics_;
  std::vector<std::byte> address_;
  std::deque<Arrival> inbox_;
  std::deque<std::pair<uint64_t, ErrorCode>> ended_;
  std::map<RegionHandle, bool> regions_;
  std::map<PeerId, ErrorCode> failed_;
  uint64_t next_peer_ = 1;
  uint64_t next_region_ = 1;
};

}  // namespace ferry::transport
