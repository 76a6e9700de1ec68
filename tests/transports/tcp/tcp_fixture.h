// Nodes with a TcpTransport each, for the tests of transports/tcp. Time is what a test says.
#pragma once

#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "transports/api/transport.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::transport {

// Keeps all that Poll reports; `head` says where attachments go.
class TcpRecorder : public CompletionSink {
 public:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    senders.push_back(sender);
    messages.emplace_back(message.begin(), message.end());
  }
  Landing OnHead(PeerId sender, std::span<const std::byte> header, uint64_t bytes) override {
    heads.emplace_back(sender, header.size(), bytes);
    return head ? head(bytes) : Landing{};
  }
  void OnLanded(uint64_t context, ErrorCode code) override { landed.emplace_back(context, code); }
  void OnConnectionEnded(PeerId peer, bool lossless) override { lost.emplace_back(peer, lossless); }
  void OnComplete(uint64_t context, ErrorCode code) override {
    EXPECT_TRUE(results.emplace(context, code).second) << "context " << context << " ended twice";
  }

  std::vector<PeerId> senders;
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::tuple<PeerId, size_t, uint64_t>> heads;
  std::vector<std::pair<uint64_t, ErrorCode>> landed;
  std::vector<std::pair<PeerId, bool>> lost;
  std::map<uint64_t, ErrorCode> results;
  std::function<Landing(uint64_t bytes)> head;
};

struct TcpNode {
  explicit TcpNode(const TransportOptions& options = {}, size_t memory_bytes = 4096)
      : memory(memory_bytes) {
    StatusOr<std::unique_ptr<Transport>> created = CreateTcpTransport(options);
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    transport = std::move(*created);
    region = *transport->RegisterMemory(memory.data(), memory.size(),
                                        Access::kRemoteRead | Access::kRemoteWrite);
  }

  int Poll(int budget = 64) { return transport->Poll(recorder, budget, now_ns); }
  ErrorCode Send(PeerId peer, std::span<const std::byte> message, uint64_t context) {
    return transport->SendMessage(peer, message, {}, context, now_ns);
  }
  ErrorCode SendFrom(PeerId peer, const void* data, uint64_t bytes, RegionHandle of,
                     uint64_t context) {
    const std::vector<std::byte> header(40, std::byte{7});
    return transport->SendMessageFrom(peer, header, {data, bytes, of}, context, now_ns);
  }
  ErrorCode ResultOf(uint64_t context) const {
    const auto found = recorder.results.find(context);
    return found == recorder.results.end() ? ErrorCode::kWouldBlock : found->second;
  }

  std::vector<std::byte> memory;
  TcpRecorder recorder;
  std::unique_ptr<Transport> transport;
  MemoryRegion region;
  uint64_t now_ns = 1'000'000'000;
};

// Polls them until `done`. False: nothing came of it.
inline bool PollUntil(std::span<TcpNode* const> nodes, const std::function<bool()>& done) {
  const uint64_t give_up_ns = MonotonicNs() + 30'000'000'000;
  while (!done()) {
    int events = 0;
    for (TcpNode* node : nodes) {
      events += node->Poll();
    }
    if (events == 0) {
      sched_yield();
    }
    if (MonotonicNs() > give_up_ns) {
      return false;
    }
  }
  return true;
}

class TcpTransportTest : public testing::Test {
 protected:
  void Connect(const TransportOptions& options = {}, size_t memory_bytes = 4096) {
    a_ = std::make_unique<TcpNode>(options, memory_bytes);
    b_ = std::make_unique<TcpNode>(options, memory_bytes);
    b_of_a_ = *a_->transport->AddPeer(b_->transport->Address());
    a_of_b_ = *b_->transport->AddPeer(a_->transport->Address());
  }
  // The connection stands.
  void Greet() {
    ASSERT_EQ(a_->Send(b_of_a_, std::vector<std::byte>(1), 999), ErrorCode::kOk);
    ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1 && Ended(999); }));
    b_->recorder.messages.clear();
  }
  bool Until(const std::function<bool()>& done) {
    TcpNode* const both[] = {a_.get(), b_.get()};
    return PollUntil(std::span(both).first(b_ != nullptr ? 2 : 1), done);
  }
  bool Ended(uint64_t context) const { return a_->recorder.results.contains(context); }

  RmaRequest Request(uint64_t bytes, uint64_t context, uint64_t offset = 0) const {
    return {.peer = b_of_a_,
            .local = a_->memory.data() + offset,
            .region = a_->region.handle,
            .remote_address = b_->region.remote_base + offset,
            .key = b_->region.key,
            .bytes = bytes,
            .context = context};
  }

  std::unique_ptr<TcpNode> a_;
  std::unique_ptr<TcpNode> b_;
  PeerId b_of_a_{};
  PeerId a_of_b_{};
};

// Descriptors of this process that are connected TCP sockets.
inline std::vector<int> ConnectedSockets() {
  constexpr int kEstablished =
      1;  // TCP_ESTABLISHED of <netinet/tcp.h>, beside which <linux/tcp.h> cannot be
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::stoi(entry.path().filename());
    tcp_info info{};
    socklen_t bytes = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
        info.tcpi_state == kEstablished) {
      found.push_back(fd);
    }
  }
  return found;
}

inline std::vector<std::byte> TcpPattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::byte& value : data) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<std::byte>(seed >> 24);
  }
  return data;
}

inline std::vector<std::byte> Numbered(uint64_t number, size_t bytes = sizeof(uint64_t)) {
  std::vector<std::byte> message(std::max(bytes, sizeof(number)));
  std::memcpy(message.data(), &number, sizeof(number));
  return message;
}

inline uint64_t NumberOf(std::span<const std::byte> message) {
  uint64_t number = 0;
  std::memcpy(&number, message.data(), sizeof(number));
  return number;
}

// Pages of which the last ones are not there.
struct HalfMapped {
  HalfMapped(size_t mapped_bytes, size_t all_bytes) : bytes(all_bytes) {
    base = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + mapped_bytes, bytes - mapped_bytes, PROT_NONE);
  }
  ~HalfMapped() { munmap(base, bytes); }
  std::byte* base;
  const size_t bytes;
};

}  // namespace ferry::transport
