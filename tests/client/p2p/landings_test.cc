// The host memory that a receive into device memory gets for a message by a direct link
// (Requests::TakeLanding): of a rank alone, whose core is played by the test.
#include <gtest/gtest.h>
#include <poll.h>

#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "client/p2p/progress.h"
#include "client/p2p/requests.h"
#include "gpu_backends/host/host_backend.h"
#include "tests/client/lonely_rank.h"
#include "tests/client/order_socket.h"

namespace ferry::client {
namespace {

using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

constexpr uint64_t kDeviceBytes = 256 << 10;
constexpr int kPeer = 1;  // on another node

// A daemon that says yes to every region.
class WillingDaemon {
 public:
  WillingDaemon() : thread_([this] { Serve(); }) {}
  ~WillingDaemon() {
    socket_.attach().GiveUp();
    thread_.join();
  }
  AttachConnection& attach() { return socket_.attach(); }

 private:
  void Serve() {
    pollfd daemon{socket_.daemon_end(), POLLIN, 0};
    for (;;) {
      (void)poll(&daemon, 1, -1);
      daemon::SocketPacket packet;
      const auto received = daemon::ReceivePacket(daemon.fd, &packet);
      if (!received.ok() || *received == daemon::Received::kHangUp) {
        return;
      }
      if (*received == daemon::Received::kPacket) {
        Answer(packet);
      }
    }
  }
  void Answer(const daemon::SocketPacket& packet) {
    if (const auto* region = packet.As<attach::RegionRequest>(); region != nullptr) {
      attach::Reply reply{};
      reply.header = region->header;
      reply.header.kind = static_cast<uint32_t>(attach::Kind::kReply);
      reply.flags = attach::kRegionStaged;
      EXPECT_TRUE(daemon::SendPacket(socket_.daemon_end(), reply).ok());
    } else if (const auto* end = packet.As<attach::RegionEndRequest>(); end != nullptr) {
      attach::CallReply reply{};
      reply.header = end->header;
      reply.header.kind = static_cast<uint32_t>(attach::Kind::kCallReply);
      EXPECT_TRUE(daemon::SendPacket(socket_.daemon_end(), reply).ok());
    }
  }

  OrderSocket socket_;
  std::thread thread_;
};

std::vector<std::byte> Bytes(uint64_t size_bytes, int seed) {
  std::vector<std::byte> bytes(size_bytes);
  for (uint64_t i = 0; i < size_bytes; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + static_cast<uint64_t>(seed) * 31 + (i >> 8));
  }
  return bytes;
}

class LandingsTest : public testing::Test {
 protected:
  void SetUp() override {
    gpu::HostBackendOptions options;
    options.link = {.h2d_mb_per_s = 10'000, .d2h_mb_per_s = 10'000};  // only streams reach it
    auto backend = gpu::CreateHostBackend(options);
    ASSERT_TRUE(backend.ok());
    ASSERT_TRUE(backends_.Add(std::move(*backend)).ok());
    memory_.emplace(uint64_t{8} << 20, &backends_, &daemon_.attach());
    offloads_.emplace(8192, &*memory_, &pool_, statistics_);
    requests_.emplace(Requests::Parts{.progress = &progress_,
                                      .pool = &pool_,
                                      .memory = &*memory_,
                                      .peer_memory = nullptr,  // this node has no other rank
                                      .offloads = &*offloads_,
                                      .statistics = statistics_,
                                      .map_inbox = [](uint32_t) { return Status(); },
                                      .private_reachable = true,
                                      .eager_max_bytes = 8192,
                                      .one_block_bytes = 256 << 10,
                                      .chunk_bytes = 128 << 10});
    const StatusOr<void*> device = memory_->Allocate(kDeviceBytes, MemoryKind::kDevice, 0);
    ASSERT_TRUE(device.ok()) << device.status().ToString();
    device_ = static_cast<std::byte*>(*device);
    ASSERT_TRUE(memory_->IsByStream(device_));
  }
  void TearDown() override {
    requests_.reset();
    if (device_ != nullptr) {
      EXPECT_TRUE(memory_->Free(device_).ok());
    }
  }

  RequestLayout& Slot(uint32_t request) { return pool_.Slot(request); }
  // A persistent receive whose message the engine has matched.
  uint32_t Matched(uint64_t size_bytes) {
    uint32_t request = 0;
    EXPECT_EQ(requests_->Take({device_, size_bytes, kPeer, 7}, RequestKind::kReceive, &request),
              ErrorCode::kOk);
    Slot(request).flags |= shm::kRequestPersistent;
    Requests::SetState(Slot(request), RequestState::kRemoteWait);
    return request;
  }
  // The core brings a message there.
  void Land(uint32_t request, const std::vector<std::byte>& bytes, ErrorCode end) {
    shm::Location where{};
    ASSERT_EQ(requests_->TakeLanding(request, bytes.size(), &where), ErrorCode::kOk);
    ASSERT_NE(where.region, 0U);
    Slot(request).message_bytes = bytes.size();
    Slot(request).descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
    std::memcpy(memory_->regions().ById(where.region).base + where.address, bytes.data(),
                bytes.size());
    Requests::Complete(Slot(request), end);
  }
  Completion Collect(uint32_t request) {
    Completion completion;
    requests_->Collect(request, &completion);
    return completion;
  }
  std::vector<std::byte> InDevice(uint64_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    EXPECT_TRUE(memory_->Copy(bytes.data(), device_, size_bytes).ok());
    return bytes;
  }

  WillingDaemon daemon_;
  gpu::BackendRegistry backends_;
  LonelyRank rank_;
  const shm::Statistics statistics_{rank_.view().layout->counters};
  Progress progress_{Progress::Parts{.view = rank_.view(),
                                     .peers = &rank_.peers(),
                                     .engine = {},
                                     .own_lane = 0,
                                     .doorbell = -1,
                                     .wait_policy = {},
                                     .threads = false}};
  RequestPool pool_{rank_.view(), false};
  std::optional<Memory> memory_;
  std::optional<Offloads> offloads_;
  std::optional<Requests> requests_;
  std::byte* device_ = nullptr;
};

TEST_F(LandingsTest, TheDataGoesIntoTheDeviceWhenTheReceiveIsCollected) {
  const uint32_t receive = Matched(60'000);
  const shm::Location own = Slot(receive).buffer;
  Land(receive, Bytes(50'000, 1), ErrorCode::kOk);
  const Completion completion = Collect(receive);
  EXPECT_EQ(completion.error, ErrorCode::kOk);
  EXPECT_EQ(completion.size_bytes, 50'000U);
  EXPECT_EQ(InDevice(50'000), Bytes(50'000, 1));
  EXPECT_EQ(Slot(receive).buffer.region, own.region);
  EXPECT_TRUE(requests_->HasState(Slot(receive), RequestState::kInactive));
}

TEST_F(LandingsTest, AMessageThatIsLongerThanItsReceiveGetsNone) {
  const uint32_t receive = Matched(1000);
  shm::Location where{};
  EXPECT_EQ(requests_->TakeLanding(receive, 1001, &where), ErrorCode::kInvalidBuffer);
}

// To that landing the rank's core may still write; and the next message may be longer.
TEST_F(LandingsTest, APersistentReceiveThatHasFailedLeavesItsLanding) {
  const uint32_t receive = Matched(200'000);
  const shm::Location own = Slot(receive).buffer;
  Land(receive, Bytes(100, 1), ErrorCode::kLinkDown);
  const shm::Location landing = Slot(receive).buffer;
  EXPECT_EQ(Collect(receive).error, ErrorCode::kLinkDown);
  EXPECT_EQ(Slot(receive).buffer.region, own.region);
  EXPECT_EQ(Slot(receive).buffer.address, own.address);
  EXPECT_EQ(Slot(receive).flags & shm::kRequestBounceBuffer, 0U);
  ASSERT_TRUE(pool_.Renew(receive));
  Requests::SetState(Slot(receive), RequestState::kRemoteWait);
  Land(receive, Bytes(200'000, 2), ErrorCode::kOk);
  EXPECT_NE(Slot(receive).buffer.address, landing.address);
  EXPECT_EQ(Collect(receive).error, ErrorCode::kOk);
  EXPECT_EQ(InDevice(200'000), Bytes(200'000, 2));
}

}  // namespace
}  // namespace ferry::client
