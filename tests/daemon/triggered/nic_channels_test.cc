// The pairs of two nodes whose NICs move the messages: ranks only write doorbells and read done
// words in memory. The nodes tell each other by direct calls what daemons tell by packets.
#include "daemon/triggered/nic_channels.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/registration/registrar.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/daemon/gate_transport.h"
#include "tests/daemon/triggered/requests.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;  // before a test calls it a hang
constexpr DeferredPool::Job kJob = 9;

class Node final : public NicChannelsOwner, public transport::CompletionSink {
 public:
  struct Failed {
    ErrorCode error;
    bool was_open;
  };

  explicit Node(uint32_t entries) : gate(std::make_shared<Gate>()) {
    transport::TransportOptions options;
    options.provider = "sockets";
    options.deferred_entries = entries;
    auto real = transport::CreateOfiTransport(options);
    EXPECT_TRUE(real.ok()) << real.status().ToString();
    transport_ = std::make_unique<GateTransport>(std::move(*real), gate, options.post_timeout_ns);
    registrar_ = std::make_unique<Registrar>(*transport_, [] {});
    auto created = NicChannels::Create(*transport_, *registrar_, *this,
                                       {.ahead = 2, .timeout_ns = kPatienceNs});
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    channels = std::move(*created);
    channels->pool().Join(kJob, 1);
  }
  ~Node() override {
    gate->PinAtOnce();
    registrar_.reset();
    channels.reset();
  }

  void Open(uint64_t number, const std::shared_ptr<Request>& request, bool is_send,
            bool is_ready = false) {
    const Status status = channels->Open({.channel = number,
                                          .job = kJob,
                                          .is_send = is_send,
                                          .is_ready = is_ready,
                                          .peer = peer,
                                          .bytes = request->data.size(),
                                          .memory = request->data.data(),
                                          .memory_owner = request,
                                          .starts = &request->starts,
                                          .done = &request->end.done,
                                          .words_owner = request});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  void Start(uint64_t number, Request& request, uint64_t round) const {
    request.Start(round);
    channels->Watch(number);
  }
  uint32_t Poll() {
    uint32_t events = registrar_->Collect();
    events += static_cast<uint32_t>(transport_->Poll(*this, 64, MonotonicNs()));
    return events + channels->Advance(MonotonicNs());
  }

  void OnNicOpen(uint64_t channel, NicPlace place) override {
    if (other != nullptr) {
      other->channels->Connect(channel, place);
    }
    opened++;
  }
  void OnNicRounds(uint64_t channel, uint64_t its_rounds) override { rounds[channel] = its_rounds; }
  void OnNicFailed(uint64_t channel, ErrorCode error, bool was_open) override {
    failed.insert({channel, {error, was_open}});
    channels->Close(channel);
  }
  void OnComplete(uint64_t context, ErrorCode code) override {
    channels->OnWriteEnd(context, code);
  }
  void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
  transport::Transport& transport() { return *transport_; }

  const std::shared_ptr<Gate> gate;
  Node* other = nullptr;
  transport::PeerId peer{};
  int opened = 0;
  std::map<uint64_t, uint64_t> rounds;
  std::map<uint64_t, Failed> failed;

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<Registrar> registrar_;

 public:
  std::unique_ptr<NicChannels> channels;
};

class NicChannelsTest : public testing::Test {
 protected:
  explicit NicChannelsTest(uint32_t entries = 504) : a_(entries), b_(entries) {
    a_.peer = *a_.transport().AddPeer(b_.transport().Address());
    b_.peer = *b_.transport().AddPeer(a_.transport().Address());
    a_.other = &b_;
    b_.other = &a_;
  }
  std::shared_ptr<Request> MakeRequest(size_t bytes) {
    return std::make_shared<Request>(heap_, requests_++, bytes);
  }
  [[nodiscard]] bool PollUntil(const std::function<bool()>& condition) {
    const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
    while (!condition()) {
      if (a_.Poll() + b_.Poll() == 0) {
        sched_yield();
      }
      if (MonotonicNs() > give_up_ns) {
        return false;
      }
    }
    return true;
  }

  const std::shared_ptr<Heap> heap_ = std::make_shared<Heap>();
  size_t requests_ = 0;
  Node a_;
  Node b_;
};

TEST_F(NicChannelsTest, RanksOnlyWriteDoorbells) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 10;
  std::vector<std::shared_ptr<Request>> sends;
  std::vector<std::shared_ptr<Request>> receives;
  for (size_t i = 0; i < kPairs; ++i) {
    const size_t bytes = i * 1000;
    sends.push_back(MakeRequest(bytes));
    receives.push_back(MakeRequest(bytes));
    a_.Open(i + 1, sends[i], /*is_send=*/true, /*is_ready=*/i % 2 == 1);
    b_.Open(i + 1, receives[i], /*is_send=*/false, /*is_ready=*/i % 2 == 1);
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      std::fill(sends[i]->data.begin(), sends[i]->data.end(),
                static_cast<std::byte>(round * 16 + i));
      b_.Start(i + 1, *receives[i], round);
      a_.Start(i + 1, *sends[i], round);  // in the first round before anything is connected
    }
    for (size_t i = 0; i < kPairs; ++i) {
      ASSERT_TRUE(PollUntil([&] {
        return sends[i]->Done() >= round && receives[i]->Done() >= round;
      })) << "pair "
          << i << " round " << round;
      EXPECT_EQ(sends[i]->data, receives[i]->data);
    }
  }
  EXPECT_EQ(a_.opened, static_cast<int>(kPairs));
  ASSERT_TRUE(PollUntil([&] { return !a_.channels->is_armed() && !b_.channels->is_armed(); }));
  EXPECT_EQ(a_.rounds[1], kRounds);
  EXPECT_EQ(b_.rounds[kPairs], kRounds);
  EXPECT_EQ(a_.channels->pool().counts().in_software, 0U);
  EXPECT_TRUE(a_.failed.empty());
  sends[0]->Announce(kRounds + 1);
  a_.channels->Watch(1);
  EXPECT_TRUE(a_.channels->is_armed());
}

// A stream stores once, the daemon adds once, and the NIC has one counter for all of them.
TEST_F(NicChannelsTest, ReadySendsOfOneDoorbellHaveOneTrigger) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 10;
  std::vector<std::shared_ptr<Request>> sends;
  std::vector<std::shared_ptr<Request>> receives;
  for (size_t i = 0; i < kPairs; ++i) {
    sends.push_back(MakeRequest(3000));
    receives.push_back(MakeRequest(3000));
    sends[i]->Share();
    a_.Open(i + 1, sends[i], /*is_send=*/true, /*is_ready=*/true);
    b_.Open(i + 1, receives[i], /*is_send=*/false, /*is_ready=*/true);
  }
  const auto& work = a_.transport().deferred_work()->statistics();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      std::fill(sends[i]->data.begin(), sends[i]->data.end(),
                static_cast<std::byte>(round * 16 + i));
      b_.Start(i + 1, *receives[i], round);
      sends[i]->Announce(round);
      a_.channels->Watch(i + 1);
    }
    shm::StoreRelease(heap_->doorbell.value, round);  // in the first round before all are open
    for (size_t i = 0; i < kPairs; ++i) {
      ASSERT_TRUE(PollUntil([&] {
        return sends[i]->Done() >= round && receives[i]->Done() >= round;
      })) << "pair "
          << i << " round " << round;
      EXPECT_EQ(sends[i]->data, receives[i]->data);
    }
  }
  EXPECT_EQ(work.rings, kRounds);
  EXPECT_EQ(work.counters, 2 * kPairs + 1) << "two for the ends of each, and the trigger";
  EXPECT_EQ(a_.channels->pool().counts().in_software, 0U);
  for (size_t i = 0; i < kPairs; ++i) {
    a_.channels->Close(kPairs - i);
  }
  ASSERT_TRUE(PollUntil([&] { return a_.channels->size() == 0 && work.counters == 0; }));
}

TEST_F(NicChannelsTest, DoorbellThatIsNoneFailsTheEnd) {
  std::shared_ptr<Request> send = MakeRequest(100);
  send->Share();
  send->end.shared_start = sizeof(Heap);
  a_.Open(3, send, /*is_send=*/true, /*is_ready=*/true);
  a_.Start(3, *send, 1);
  ASSERT_TRUE(PollUntil([&] { return a_.failed.contains(3); }));
  EXPECT_EQ(a_.failed.at(3).error, ErrorCode::kCorrupt);
}

TEST_F(NicChannelsTest, ClosedEndsGiveTheirMemoryBack) {
  std::shared_ptr<Request> send = MakeRequest(5000);
  std::shared_ptr<Request> receive = MakeRequest(5000);
  a_.Open(7, send, /*is_send=*/true);
  b_.Open(7, receive, /*is_send=*/false);
  a_.Start(7, *send, 1);
  b_.Start(7, *receive, 1);
  ASSERT_TRUE(PollUntil([&] { return send->Done() == 1 && receive->Done() == 1; }));
  ASSERT_TRUE(PollUntil([&] { return a_.rounds[7] == 1 && b_.rounds[7] == 1; }));
  EXPECT_EQ(a_.channels->Open({.channel = 7}).code(), ErrorCode::kAlreadyExists);
  a_.Start(7, *send, 2);
  a_.Poll();  // armed, and waits for its receiver
  EXPECT_GT(a_.channels->pool().in_use(), 0U);
  a_.channels->Close(7);
  b_.channels->Close(7);
  ASSERT_TRUE(PollUntil([&] {
    return a_.channels->size() + b_.channels->size() == 0 && send.use_count() == 1 &&
           receive.use_count() == 1;
  }));
  EXPECT_EQ(a_.channels->pool().in_use(), 0U);
  EXPECT_EQ(a_.transport().deferred_work()->in_use(), 0U);
  EXPECT_EQ(a_.gate->pinned.load(), 1U) << "but for the eight bytes of NicChannels itself";
  EXPECT_EQ(send->Done(), 1U);
}

TEST_F(NicChannelsTest, EndMayBeClosedWhileItsMemoryIsPinned) {
  a_.gate->pins_slowly = true;
  std::shared_ptr<Request> send = MakeRequest(100);
  a_.Open(3, send, /*is_send=*/true);
  a_.gate->pinning.wait(0);
  a_.channels->Close(3);
  a_.Poll();
  EXPECT_EQ(a_.channels->size(), 1U);
  a_.gate->PinAtOnce();
  ASSERT_TRUE(PollUntil([&] { return a_.channels->size() == 0 && send.use_count() == 1; }));
  EXPECT_EQ(a_.opened, 0);
}

TEST_F(NicChannelsTest, MemoryThatTheNicDoesNotTakeFailsTheEndBeforeItIsOpen) {
  a_.gate->refuses = true;
  std::shared_ptr<Request> send = MakeRequest(100);
  a_.Open(3, send, /*is_send=*/true);
  a_.Start(3, *send, 1);
  ASSERT_TRUE(PollUntil([&] { return a_.failed.contains(3); }));
  EXPECT_EQ(a_.failed.at(3).error, ErrorCode::kOutOfMemory);
  EXPECT_FALSE(a_.failed.at(3).was_open);
  EXPECT_EQ(send->Done(), 0U) << "its messages may still be moved otherwise";
}

TEST_F(NicChannelsTest, FailureIsToldOnceAndInTheDoneWord) {
  std::shared_ptr<Request> send = MakeRequest(100);
  a_.other = nullptr;
  a_.Open(3, send, /*is_send=*/true, /*is_ready=*/true);
  a_.channels->Connect(3, {0, 12345});  // there is no such key
  a_.Start(3, *send, 1);
  ASSERT_TRUE(PollUntil([&] { return a_.failed.contains(3); }));
  EXPECT_TRUE(a_.failed.at(3).was_open);
  EXPECT_GE(send->Done(), shm::kCounterFailure);
  EXPECT_EQ(shm::Counter(&send->end.done).error(), a_.failed.at(3).error);
  ASSERT_TRUE(PollUntil([&] { return a_.channels->size() == 0; }));
}

}  // namespace
}  // namespace ferry::daemon
