// The pairs of two nodes with two NICs each (endpoints of `sockets`), which move the messages:
// ranks only write doorbells and read done words in memory. The nodes tell each other by direct
// calls what daemons tell by packets.
#include "daemon/triggered/deferred_nics.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/faults/faults.h"
#include "daemon/faults/faulty_transport.h"
#include "daemon/registration/registrar.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/daemon/triggered/requests.h"
#include "transports/api/deferred_work.h"
#include "transports/ofi/ofi_transport.h"
#include "transports/rails/rails_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kPatienceNs = 60'000'000'000;  // before a test calls it a hang
constexpr DeferredPool::Job kJob = 9;

struct Settings {
  std::vector<std::string> further_nics = {"127.0.0.2"};
  uint32_t most_entries = UINT32_MAX;
  std::string fault = {};
  uint64_t timeout_ns = kPatienceNs;
};

class Node final : public NicChannelsOwner, public transport::CompletionSink {
 public:
  explicit Node(const Settings& settings) {
    transport::TransportOptions options;
    options.provider = "sockets";
    options.rails = settings.further_nics;
    auto rails = transport::CreateRailsTransport(options, transport::CreateOfiTransport);
    EXPECT_TRUE(rails.ok()) << rails.status().ToString();
    transport_ = std::move(*rails);
    if (!settings.fault.empty()) {
      faults_ = std::move(*Faults::Parse(settings.fault));
      transport_ = std::make_unique<FaultyTransport>(std::move(transport_), *faults_,
                                                     options.post_timeout_ns);
    }
    registrar_ = std::make_unique<Registrar>(*transport_, [] {});
    DeferredRules rules;
    rules.most_entries = settings.most_entries;
    nics = std::make_unique<DeferredNics>(*transport_, *registrar_, *this, settings.timeout_ns,
                                          std::move(rules));
  }
  ~Node() override {
    registrar_.reset();
    nics.reset();
  }

  Status Open(uint32_t nic, uint64_t number, const std::shared_ptr<Request>& request, bool is_send,
              bool is_ready) {
    return nics->Open(nic,
                      {.channel = number,
                       .job = kJob,
                       .is_send = is_send,
                       .is_ready = is_ready,
                       .peer = peer,
                       .bytes = request->data.size(),
                       .memory = request->data.data(),
                       .memory_owner = request,
                       .starts = &request->starts,
                       .done = &request->end.done,
                       .words_owner = request},
                      /*weight=*/1);
  }
  void Start(uint64_t number, Request& request, uint64_t round) const {
    request.Start(round);
    nics->Watch(number);
  }
  uint32_t Poll() {
    uint32_t events = registrar_->Collect();
    events += static_cast<uint32_t>(transport_->Poll(*this, 64, MonotonicNs()));
    return events + nics->Advance(MonotonicNs());
  }
  transport::DeferredStatistics WorkOf(size_t nic) {
    return transport_->Rails()[nic]->deferred_work()->statistics();
  }
  DeferredPool::Counts CountsOf(size_t nic) const { return nics->pool(nic)->counts(); }

  void OnNicOpen(uint64_t channel, NicPlace place) override {
    other->nics->Connect(channel, place);
  }
  void OnNicRounds(uint64_t channel, uint64_t its_rounds) override { rounds[channel] = its_rounds; }
  void OnNicFailed(uint64_t channel, ErrorCode error, bool /*was_open*/) override {
    failed[channel] = error;
    nics->Fail(channel, error);
    nics->Close(channel);
  }
  void OnComplete(uint64_t context, ErrorCode code) override { nics->OnWriteEnd(context, code); }
  void OnReceive(transport::PeerId, std::span<const std::byte>) override {}
  transport::Transport& transport() { return *transport_; }

  Node* other = nullptr;
  transport::PeerId peer{};
  std::map<uint64_t, uint64_t> rounds;
  std::map<uint64_t, ErrorCode> failed;

 private:
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<Registrar> registrar_;

 public:
  std::unique_ptr<DeferredNics> nics;
};

// A matched pair: `number` at both nodes.
struct Pair {
  uint64_t number = 0;
  uint32_t nic = 0;
  std::shared_ptr<Request> send;
  std::shared_ptr<Request> receive;
};

class DeferredNicsTest : public testing::Test {
 protected:
  // a sends, b receives.
  void Connect(const Settings& of_a = {}, const Settings& of_b = {}) {
    a_ = std::make_unique<Node>(of_a);
    b_ = std::make_unique<Node>(of_b);
    a_->peer = *a_->transport().AddPeer(b_->transport().Address());
    b_->peer = *b_->transport().AddPeer(a_->transport().Address());
    a_->other = b_.get();
    b_->other = a_.get();
  }
  [[nodiscard]] bool PollUntil(const std::function<bool()>& condition) {
    const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
    while (!condition()) {
      if (a_->Poll() + b_->Poll() == 0) {
        sched_yield();
      }
      if (MonotonicNs() > give_up_ns) {
        return false;
      }
    }
    return true;
  }
  // Chooses as the receiver's daemon does, once the other node's NICs have answered.
  uint32_t Choose(uint32_t nearest) {
    uint32_t nic = 0;
    ErrorCode code = ErrorCode::kWouldBlock;
    EXPECT_TRUE(PollUntil([&] {
      code = b_->nics->Choose(b_->peer, nearest, &nic);
      return code != ErrorCode::kWouldBlock;
    }));
    EXPECT_EQ(code, ErrorCode::kOk);
    return nic;
  }
  Pair& OpenPair(size_t bytes, uint32_t nearest = 0, bool is_ready = false) {
    Pair& pair = pairs_.emplace_back();
    pair.number = pairs_.size();
    pair.nic = Choose(nearest);
    pair.send = std::make_shared<Request>(heap_, 2 * pairs_.size() - 2, bytes);
    pair.receive = std::make_shared<Request>(heap_, 2 * pairs_.size() - 1, bytes);
    EXPECT_TRUE(b_->Open(pair.nic, pair.number, pair.receive, /*is_send=*/false, is_ready).ok());
    EXPECT_TRUE(a_->Open(pair.nic, pair.number, pair.send, /*is_send=*/true, is_ready).ok());
    EXPECT_EQ(a_->nics->NicOf(pair.number), pair.nic);
    return pair;
  }
  void Start(const Pair& pair, uint64_t round) {
    std::fill(pair.send->data.begin(), pair.send->data.end(),
              static_cast<std::byte>(round * 16 + pair.number));
    b_->Start(pair.number, *pair.receive, round);
    a_->Start(pair.number, *pair.send, round);
  }
  void ExpectArrives(const Pair& pair, uint64_t round) {
    ASSERT_TRUE(PollUntil([&] {
      return pair.send->Done() >= round && pair.receive->Done() >= round;
    })) << "pair "
        << pair.number << " round " << round;
    EXPECT_EQ(pair.send->data, pair.receive->data);
    EXPECT_EQ(pair.send->Done(), round);
    EXPECT_EQ(pair.receive->Done(), round);
  }
  std::vector<uint32_t> Nics() const {
    std::vector<uint32_t> nics;
    for (const Pair& pair : pairs_) {
      nics.push_back(pair.nic);
    }
    return nics;
  }

  const std::shared_ptr<Heap> heap_ = std::make_shared<Heap>();
  std::vector<Pair> pairs_;
  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
};

TEST_F(DeferredNicsTest, PairsAreSharedOutAmongTheNics) {
  constexpr uint64_t kRounds = 8;
  Connect();
  for (size_t i = 0; i < 6; ++i) {
    OpenPair(3000);
  }
  EXPECT_EQ(Nics(), (std::vector<uint32_t>{0, 1, 0, 1, 0, 1}));
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (const Pair& pair : pairs_) {
      Start(pair, round);
    }
    for (const Pair& pair : pairs_) {
      ASSERT_NO_FATAL_FAILURE(ExpectArrives(pair, round));
    }
  }
  for (size_t nic = 0; nic < 2; ++nic) {
    // A round of a send is two operations, and so is one of a receive: it clears to send.
    EXPECT_EQ(a_->CountsOf(nic).on_nic, 3 * 2 * kRounds);
    EXPECT_EQ(b_->CountsOf(nic).on_nic, 3 * 2 * kRounds);
    EXPECT_EQ(a_->CountsOf(nic).in_software, 0U);
    EXPECT_EQ(a_->WorkOf(nic).armed, 3 * 2 * kRounds);
  }
  ASSERT_TRUE(PollUntil([&] { return a_->rounds[6] == kRounds && b_->rounds[1] == kRounds; }));
  EXPECT_TRUE(a_->failed.empty());
  for (const Pair& pair : pairs_) {
    a_->nics->Close(pair.number);
    b_->nics->Close(pair.number);
  }
  ASSERT_TRUE(PollUntil([&] {
    return std::ranges::all_of(pairs_, [](const Pair& pair) {
      return pair.send.use_count() == 1 && pair.receive.use_count() == 1;
    });
  })) << "each NIC gives the memory back that it had pinned";
}

TEST_F(DeferredNicsTest, ALongMessageHasItsNicAlone) {
  Connect();
  OpenPair(1 << 20, /*nearest=*/1);
  for (size_t i = 0; i < 3; ++i) {
    OpenPair(1000, /*nearest=*/1);
  }
  EXPECT_EQ(Nics(), (std::vector<uint32_t>{1, 0, 0, 0}));
  for (const Pair& pair : pairs_) {
    Start(pair, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectArrives(pair, 1));
  }
  a_->nics->Close(1);
  b_->nics->Close(1);
  EXPECT_EQ(Choose(/*nearest=*/0), 1U) << "what is closed is no load";
}

// Both NICs count what one doorbell does.
TEST_F(DeferredNicsTest, ReadySendsOfOneDoorbellHaveOneTriggerOnEachNic) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 5;
  Connect();
  for (size_t i = 0; i < kPairs; ++i) {
    OpenPair(2000, /*nearest=*/0, /*is_ready=*/true).send->Share();
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (const Pair& pair : pairs_) {
      b_->Start(pair.number, *pair.receive, round);
      std::fill(pair.send->data.begin(), pair.send->data.end(),
                static_cast<std::byte>(round * 16 + pair.number));
      pair.send->Announce(round);
      a_->nics->Watch(pair.number);
    }
    shm::StoreRelease(heap_->doorbell.value, round);
    for (const Pair& pair : pairs_) {
      ASSERT_NO_FATAL_FAILURE(ExpectArrives(pair, round));
    }
  }
  for (size_t nic = 0; nic < 2; ++nic) {
    EXPECT_EQ(a_->WorkOf(nic).rings, kRounds);
    EXPECT_EQ(a_->WorkOf(nic).counters, kPairs / 2 * 2 + 1);
  }
}

TEST_F(DeferredNicsTest, EachNicHasItsEntries) {
  const Settings few{.most_entries = 3};
  Connect(few, few);
  for (size_t i = 0; i < 6; ++i) {
    OpenPair(1000);
  }
  for (uint64_t round = 1; round <= 4; ++round) {
    for (const Pair& pair : pairs_) {
      Start(pair, round);
    }
    a_->Poll();
    b_->Poll();
    for (size_t nic = 0; nic < 2; ++nic) {
      EXPECT_EQ(a_->nics->pool(nic)->entries(), 3U);
      EXPECT_LE(a_->nics->pool(nic)->in_use(), 3U);
    }
    for (const Pair& pair : pairs_) {
      ASSERT_NO_FATAL_FAILURE(ExpectArrives(pair, round));
    }
  }
  for (size_t nic = 0; nic < 2; ++nic) {
    EXPECT_GT(a_->CountsOf(nic).on_nic, 0U);
    EXPECT_GT(a_->CountsOf(nic).in_software, 0U);
    EXPECT_EQ(a_->CountsOf(nic).on_nic + a_->CountsOf(nic).in_software, 3U * 2 * 4);
  }
}

// No operation of the second NIC is armed before the lost one, which is the send's first.
TEST_F(DeferredNicsTest, AnOperationThatANicLosesFailsItsPairOnly) {
  Connect({.fault = "nic.arm:1:lose", .timeout_ns = 300'000'000});
  OpenPair(1000);
  OpenPair(1000);
  ASSERT_EQ(Nics(), (std::vector<uint32_t>{0, 1}));
  Start(pairs_[1], 1);
  ASSERT_TRUE(PollUntil([&] { return a_->failed.contains(2); }));
  EXPECT_EQ(a_->failed.at(2), ErrorCode::kTimeout);
  EXPECT_EQ(shm::Counter(&pairs_[1].send->end.done).error(), ErrorCode::kTimeout);
  for (uint64_t round = 1; round <= 3; ++round) {
    Start(pairs_[0], round);
    ASSERT_NO_FATAL_FAILURE(ExpectArrives(pairs_[0], round));
  }
  EXPECT_EQ(a_->failed.size(), 1U);

  // The receiver's daemon hears of it, and avoids the NIC until the other node has answered there.
  b_->nics->Fail(2, ErrorCode::kTimeout);
  b_->nics->Close(2);
  EXPECT_NE(b_->transport().Reaches(b_->peer, 1), ErrorCode::kOk);
  ASSERT_TRUE(PollUntil([&] { return b_->transport().Reaches(b_->peer, 1) == ErrorCode::kOk; }));
  EXPECT_EQ(Choose(/*nearest=*/0), 1U);
}

// What the other node says is checked.
TEST_F(DeferredNicsTest, ANicThatIsNotThereIsRefused) {
  Connect({.further_nics = {}});
  EXPECT_EQ(a_->nics->size(), 1U);
  EXPECT_EQ(b_->nics->size(), 2U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(OpenPair(1000, /*nearest=*/1).nic, 0U);
  }
  const auto request = std::make_shared<Request>(heap_, 12, 100);
  for (const uint32_t nic : {1U, 2U, 8U, UINT32_MAX}) {
    const Status status = a_->Open(nic, 20, request, /*is_send=*/true, /*is_ready=*/false);
    EXPECT_EQ(status.code(), ErrorCode::kNotFound) << nic;
  }
  EXPECT_EQ(b_->Open(1, 20, request, /*is_send=*/true, /*is_ready=*/false).code(),
            ErrorCode::kNotFound)
      << "the other node has no such NIC";
  b_->nics->Close(20);  // nothing is open
  b_->nics->Watch(20);
  for (const Pair& pair : pairs_) {
    Start(pair, 1);
    ASSERT_NO_FATAL_FAILURE(ExpectArrives(pair, 1));
  }
}

TEST_F(DeferredNicsTest, WithoutEntriesThereIsNone) {
  Connect({.most_entries = 0});
  EXPECT_FALSE(a_->nics->any());
  EXPECT_EQ(a_->nics->size(), 2U);
  EXPECT_EQ(a_->nics->pool(1), nullptr);
  uint32_t nic = 0;
  EXPECT_EQ(a_->nics->Choose(a_->peer, 0, &nic), ErrorCode::kNotFound);
  EXPECT_EQ(a_->nics->Advance(1), 0U);
  EXPECT_EQ(a_->nics->NextNs(1), UINT64_MAX);
}

}  // namespace
}  // namespace ferry::daemon
