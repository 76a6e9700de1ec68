// Streams that ring the NIC's counters themselves, in pages that the rank has mapped: matched pairs
// whose ends are both on one Slingshot NIC, a fake (fake_cxi.h), which counts who adds to its
// counters. The rank's side is libferry's own (CounterPages), its device the emulated one.
#include "daemon/triggered/counter_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/triggered/counter_pages.h"
#include "common/clock.h"
#include "daemon/triggered/nic_mover.h"
#include "gpu_backends/host/host_backend.h"
#include "internode/registration/registrar.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/support/patience.h"
#include "tests/transports/ofi/fake_cxi.h"
#include "tests/transports/ofi/fake_cxi_transport.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kSend = 1;  // numbers of the two ends
constexpr uint64_t kReceive = 2;
constexpr uint64_t kBytes = 4096;
const int kRank = 0;  // its address stands for the rank

std::shared_ptr<Region> MakeRegion(uint64_t bytes) {
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(base, MAP_FAILED);
  auto region = std::make_shared<Region>();
  region->mapping = shm::Mapping(static_cast<std::byte*>(base), bytes);
  return region;
}

// ferryd's side: a NIC, and the two ends of one pair.
class CxiNode final : private PairKeeper, private transport::DeferredSink {
 public:
  explicit CxiNode(bool keeps_pages = false, bool gives_pages = true)
      : nic(keeps_pages), transport(nic), registrar_(transport, [] {}) {
    DeferredRules rules;
    rules.gives_pages = gives_pages;
    nics = std::make_unique<DeferredNics>(transport, registrar_, /*timeout_ns=*/tests::kPatienceNs,
                                          rules);
  }
  ~CxiNode() override {
    pairs.clear();
    while (!leaving_.empty()) {
      Turn();
    }
    nics.reset();
  }

  void Open(bool is_ready) {
    for (const uint64_t number : {kSend, kReceive}) {
      PairPlan plan;
      plan.name.number = number;
      plan.is_send = number == kSend;
      plan.mode = is_ready ? shm::SendMode::kReady : shm::SendMode::kSynchronous;
      plan.size_bytes = kBytes;
      plan.end = {heap, number * sizeof(shm::PairLayout)};
      plan.window = {message[number - 1], 0};
      auto pair = std::make_unique<Pair>(
          std::move(plan), reinterpret_cast<progress::ServedRank*>(const_cast<int*>(&kRank)));
      pair->mover = std::make_unique<NicMover>(*pair, static_cast<PairKeeper&>(*this),
                                               *nics->Find(0, kSelf), kSelf, /*job=*/9,
                                               /*weight=*/1);
      pairs[number] = std::move(pair);
    }
    ASSERT_TRUE(TurnUntil([this] { return opened_.size() == 2; }));
    for (const uint64_t number : {kSend, kReceive}) {
      static_cast<NicMover*>(pairs.at(number)->mover.get())->Connect(opened_.at(3 - number));
    }
  }
  void Fail(ErrorCode error) {
    for (const uint64_t number : {kSend, kReceive}) {
      OnBroken(*pairs.at(number), error);
    }
  }
  // As when their rank takes them back.
  void Close() {
    for (auto& [number, pair] : pairs) {
      pair->mover->Leave();
      leaving_.push_back(std::move(pair->mover));
    }
    pairs.clear();
  }

  // A turn of ferryd, and a moment of the NIC's.
  void Turn() {
    const uint64_t now_ns = MonotonicNs();
    registrar_.Collect();
    nics->Poll(*this, now_ns);
    for (const auto& [number, pair] : pairs) {
      pair->mover->Advance(now_ns);
    }
    registrar_.Advance(now_ns);
    std::erase_if(leaving_, [](const auto& mover) { return mover->TryEnd(); });
    transport.Work();
  }
  [[nodiscard]] bool TurnUntil(const std::function<bool()>& condition) {
    const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
    while (!condition()) {
      Turn();
      sched_yield();
      if (MonotonicNs() > give_up_ns) {
        return false;
      }
    }
    return true;
  }
  // Until all counters but so many have gone from the NIC.
  [[nodiscard]] bool LeavesCounters(size_t count) {
    return TurnUntil([this, count] { return nic.open_counters() == count; });
  }

  shm::PairLayout& end(uint64_t number) const {
    return reinterpret_cast<shm::PairLayout*>(heap->mapping.base())[number];
  }
  uint64_t Done(uint64_t number) const { return shm::LoadAcquire(end(number).done.value); }

  static constexpr transport::PeerId kSelf{1};
  transport::FakeCxi nic;
  transport::FakeCxiTransport transport;
  const std::shared_ptr<Region> heap = MakeRegion(8 * sizeof(shm::PairLayout));
  const std::array<std::shared_ptr<Region>, 2> message = {MakeRegion(kBytes), MakeRegion(kBytes)};
  std::unique_ptr<DeferredNics> nics;
  std::map<uint64_t, std::unique_ptr<Pair>> pairs;

 private:
  void Watch(Pair& /*pair*/) override {}
  void SetDeadline(Pair& /*pair*/, uint64_t /*deadline_ns*/, ErrorCode /*error*/) override {}
  void OnRounds(Pair& pair, uint64_t rounds) override { pair.rounds = pair.seen = rounds; }
  void OnBroken(Pair& pair, ErrorCode error) override {
    if (pair.error == ErrorCode::kOk) {
      pair.error = error;
      pair.mover->OnFailed();
      pair.done.Fail(error);
    }
  }
  void OnNicOpen(Pair& pair, NicPlace place) override { opened_[pair.number()] = place; }
  void OnNicRefused(Pair& /*pair*/) override { FAIL() << "the NIC can"; }
  void OnDeferredEnd(uint64_t context, ErrorCode code) override {
    if (const auto found = pairs.find(PairOf(context)); found != pairs.end()) {
      found->second->mover->OnEnd(context, code);
    }
  }

  progress::Registrar registrar_;
  std::map<uint64_t, NicPlace> opened_;
  std::vector<std::unique_ptr<PairMover>> leaving_;
};

class CounterPageTest : public testing::Test {
 protected:
  void Start(bool is_ready, bool keeps_pages = false, bool gives_pages = true) {
    node_ = std::make_unique<CxiNode>(keeps_pages, gives_pages);
    ASSERT_NO_FATAL_FAILURE(node_->Open(is_ready));
    pages_ = std::make_unique<client::CounterPages>(client::CounterPages::Parts{
        [this](uint32_t nic) -> StatusOr<UniqueFd> {
          const int given = node_->nics->PageDescriptor(nic);
          return given < 0 ? StatusOr<UniqueFd>(Status(ErrorCode::kNotFound, "no page"))
                           : StatusOr<UniqueFd>(UniqueFd(fcntl(given, F_DUPFD_CLOEXEC, 0)));
        },
        [this] { return backend_.get(); }});
    auto stream = backend_->CreateStream(0);
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    stream_ = std::move(*stream);
    ASSERT_TRUE(
        backend_->RegisterHostMemory(node_->heap->mapping.base(), node_->heap->mapping.size_bytes())
            .ok());
  }
  void TearDown() override {
    stream_.reset();
    pages_.reset();
    node_.reset();
  }

  // As Queues do it.
  void Enqueue(uint64_t number, uint64_t round, uint64_t* page) {
    shm::PairLayout& end = node_->end(number);
    shm::StoreRelease(end.armed, round);
    ASSERT_TRUE((page != nullptr ? stream_->WriteValue64(page, 1)
                                 : stream_->WriteValue64(&end.start.value, round))
                    .ok());
  }
  void EnqueueWait(uint64_t round) {
    for (const uint64_t number : {kSend, kReceive}) {
      ASSERT_TRUE(stream_
                      ->WaitValue64(&node_->end(number).done.value, round,
                                    gpu::WaitCondition::kGreaterOrEqual)
                      .ok());
    }
  }
  void EnqueueRound(uint64_t round, const std::array<uint64_t*, 2>& pages) {
    Enqueue(kReceive, round, pages[1]);
    Enqueue(kSend, round, pages[0]);
    EnqueueWait(round);
  }
  // The stream checks each message, and makes the next one.
  void EnqueueCheck(uint64_t round) {
    ASSERT_TRUE(stream_
                    ->LaunchHost([this, round] {
                      std::byte* const sent = node_->message[0]->mapping.base();
                      const std::byte* const got = node_->message[1]->mapping.base();
                      wrong_ += std::equal(sent, sent + kBytes, got) ? 0 : 1;
                      std::fill(sent, sent + kBytes, static_cast<std::byte>(round + 1));
                      return Status();
                    })
                    .ok());
  }
  [[nodiscard]] bool Finish() {
    return node_->TurnUntil([this] { return stream_->Query().code() != ErrorCode::kWouldBlock; });
  }
  std::array<uint64_t*, 2> TakePages(uint64_t start) {
    return {pages_->Take(&node_->end(kSend), start), pages_->Take(&node_->end(kReceive), start)};
  }
  transport::NicCounter OpenCounter() { return *node_->transport.deferred_work()->OpenCounter(); }
  // Opens counters until one has taken that place; there are few free ones below it.
  bool IsGivenToAnother(uint64_t offset) {
    const size_t before = node_->nic.open_counters();
    bool is_given = false;
    for (size_t i = 0; i < before + 8 && !is_given; ++i) {
      is_given = node_->transport.deferred_work()->Doorbell(OpenCounter()).offset == offset;
    }
    return is_given;
  }

  std::unique_ptr<gpu::GpuBackend> backend_ = std::move(*gpu::CreateHostBackend({}));
  std::unique_ptr<CxiNode> node_;
  std::unique_ptr<client::CounterPages> pages_;
  std::unique_ptr<gpu::Stream> stream_;
  int wrong_ = 0;
};

class CounterPageOfModeTest : public CounterPageTest, public testing::WithParamInterface<bool> {};

TEST_P(CounterPageOfModeTest, NoCpuAddsAnythingBetweenEnqueueAndCompletion) {
  const bool is_ready = GetParam();
  ASSERT_NO_FATAL_FAILURE(Start(is_ready));
  EnqueueRound(1, {});  // by the doorbells: ferryd adds
  EnqueueCheck(1);
  ASSERT_TRUE(Finish());
  EXPECT_GT(node_->nic.calls(), 0U);

  const std::array<uint64_t*, 2> pages = TakePages(2);
  ASSERT_NE(pages[0], nullptr);
  EXPECT_EQ(pages[1] == nullptr, is_ready) << "nothing waits for the start of a ready receive";
  const uint64_t calls = node_->nic.calls();
  const uint64_t rings = node_->transport.deferred_work()->statistics().rings;
  const uint64_t stores = node_->nic.stores();
  constexpr uint64_t kRounds = 40;
  for (uint64_t round = 2; round <= kRounds; ++round) {  // all at once
    EnqueueRound(round, pages);
    EnqueueCheck(round);
  }
  ASSERT_TRUE(Finish());
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(node_->Done(kSend), kRounds);
  EXPECT_EQ(node_->Done(kReceive), kRounds);
  EXPECT_EQ(node_->nic.calls(), calls) << "a CPU has added to a counter";
  EXPECT_EQ(node_->transport.deferred_work()->statistics().rings, rings);
  EXPECT_EQ(node_->nic.stores() - stores, (kRounds - 1) * (is_ready ? 1 : 2));
  EXPECT_EQ(node_->nics->pool(0)->counts().in_software, 0U) << "ferryd has done an operation";
  EXPECT_FALSE(node_->nic.overrun());
}

// Starts that were enqueued before the page came ring the doorbell; later ones may stand behind.
TEST_P(CounterPageOfModeTest, StartsByDoorbellAndPageMayBeUnderWayTogether) {
  ASSERT_NO_FATAL_FAILURE(Start(GetParam()));
  for (uint64_t round = 1; round <= 6; ++round) {
    EnqueueRound(round, {});
    EnqueueCheck(round);
  }
  const std::array<uint64_t*, 2> pages = TakePages(7);
  for (uint64_t round = 7; round <= 12; ++round) {
    EnqueueRound(round, pages);
    EnqueueCheck(round);
  }
  ASSERT_TRUE(Finish());
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(node_->Done(kSend), 12U);
  EXPECT_EQ(node_->Done(kReceive), 12U);
}

// A device may have ferryd start the request (Pairs::StartByRing), by the doorbell's last number.
TEST_P(CounterPageOfModeTest, FerrydMakesOneStartAmongThoseByThePage) {
  ASSERT_NO_FATAL_FAILURE(Start(GetParam()));
  const std::array<uint64_t*, 2> pages = TakePages(1);
  for (uint64_t round = 1; round <= 9; ++round) {
    EnqueueRound(round, round % 3 == 0 ? std::array<uint64_t*, 2>{} : pages);
    EnqueueCheck(round);
    ASSERT_TRUE(Finish());
    EXPECT_EQ(node_->Done(kSend), round);
    EXPECT_EQ(node_->Done(kReceive), round);
  }
  EXPECT_EQ(wrong_, 0);
}

INSTANTIATE_TEST_SUITE_P(Modes, CounterPageOfModeTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Ready" : "Synchronous");
});

TEST_F(CounterPageTest, ADriverThatMapsEachPageOnceLeavesTheDoorbellToFerryd) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/false, /*keeps_pages=*/true));
  EXPECT_EQ(node_->nics->PageDescriptor(0), -1);
  EXPECT_EQ(TakePages(1), (std::array<uint64_t*, 2>{}));
  for (uint64_t round = 1; round <= 4; ++round) {
    EnqueueRound(round, {});
    EnqueueCheck(round);
  }
  ASSERT_TRUE(Finish());
  EXPECT_EQ(wrong_, 0);
  EXPECT_EQ(node_->nic.stores(), 0U);
  EXPECT_GT(node_->nic.calls(), 0U);
}

TEST_F(CounterPageTest, AnAdministratorMayForbidIt) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/false, /*keeps_pages=*/false, /*gives_pages=*/false));
  EXPECT_EQ(node_->nics->PageDescriptor(0), -1);
  EXPECT_EQ(node_->end(kSend).page.id, 0U);
}

TEST_F(CounterPageTest, ACounterIsGivenToNobodyElseWhileItsRankMayStillRingIt) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/true));
  const uint64_t offset = node_->end(kSend).page.offset;
  uint64_t* const page = TakePages(1)[0];
  ASSERT_NE(page, nullptr);
  node_->Fail(ErrorCode::kPeerDied);
  node_->Close();
  ASSERT_TRUE(node_->LeavesCounters(1));
  EXPECT_TRUE(node_->nic.HasPage(offset));
  EXPECT_FALSE(IsGivenToAnother(offset));
  shm::StoreRelease(*page, 1);  // a stream comes to a start that was enqueued before
  EXPECT_TRUE(node_->TurnUntil([page] { return shm::LoadAcquire(*page) == ~uint64_t{0}; }))
      << "the NIC takes it";

  const size_t counters = node_->nic.open_counters();
  pages_->Drop(&node_->end(kSend));
  ASSERT_TRUE(node_->LeavesCounters(counters - 1));
  EXPECT_TRUE(IsGivenToAnother(offset));
}

TEST_F(CounterPageTest, TheCountersOfARankThatDiesGoBack) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/true));
  const uint64_t offset = node_->end(kSend).page.offset;
  ASSERT_NE(TakePages(1)[0], nullptr);
  node_->Fail(ErrorCode::kPeerDied);
  node_->Close();
  ASSERT_TRUE(node_->LeavesCounters(1));
  EXPECT_TRUE(node_->nic.HasPage(offset));
  node_->nics->ClosePagesOf(&node_);  // another one
  EXPECT_FALSE(node_->nics->Find(0, CxiNode::kSelf)->parked.empty());
  node_->nics->ClosePagesOf(&kRank);
  EXPECT_TRUE(node_->LeavesCounters(0));
}

TEST_F(CounterPageTest, APageThatNobodyTookGoesBackAtOnceAndIsOfferedNoMore) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/true));
  const uint64_t offset = node_->end(kSend).page.offset;
  EXPECT_NE(node_->end(kSend).page.id, 0U);
  node_->Fail(ErrorCode::kPeerDied);
  EXPECT_TRUE(node_->TurnUntil([this, offset] { return !node_->nic.HasPage(offset); }));
  EXPECT_EQ(node_->end(kSend).page.id, 0U);
  EXPECT_EQ(TakePages(1)[0], nullptr);
}

// A page that a wrong word names is never mapped, nor stored to.
TEST_F(CounterPageTest, AWrongPageIsNotTaken) {
  ASSERT_NO_FATAL_FAILURE(Start(/*is_ready=*/true));
  shm::CounterPageWords& words = node_->end(kSend).page;
  const shm::CounterPageWords good = words;
  const auto refuses = [&](const std::function<void()>& spoil) {
    words = good;
    spoil();
    return pages_->Take(&node_->end(kSend), 1) == nullptr && words.used == 0;
  };
  EXPECT_TRUE(refuses([&] { words.add = static_cast<uint32_t>(words.size_bytes) - 4; }));
  EXPECT_TRUE(refuses([&] { words.add = 12; }));
  EXPECT_TRUE(refuses([&] { words.size_bytes = 4; }));
  EXPECT_TRUE(refuses([&] { words.offset = 100; }));
  EXPECT_TRUE(refuses([&] { words.nic = 7; }));
  EXPECT_TRUE(refuses([&] { words.id = 0; }));
  words = good;
  EXPECT_NE(pages_->Take(&node_->end(kSend), 1), nullptr);
}

// Of a rank that takes a page, and ferryd that takes it back at the same moment, one gives way.
TEST(CounterPageRaceTest, EitherTheRankHasThePageOrFerrydHasItBack) {
  transport::FakeCxi nic;
  transport::FakeCxiTransport transport(nic);
  transport::DeferredWork& deferred = *transport.deferred_work();
  const transport::CounterDoorbell doorbell = deferred.Doorbell(*deferred.OpenCounter());
  ASSERT_GE(doorbell.descriptor, 0);
  client::CounterPages pages({[&](uint32_t) -> StatusOr<UniqueFd> {
                                return UniqueFd(fcntl(doorbell.descriptor, F_DUPFD_CLOEXEC, 0));
                              },
                              [] { return nullptr; }});
  const std::shared_ptr<Region> heap = MakeRegion(sizeof(shm::PairLayout));
  auto* const end = reinterpret_cast<shm::PairLayout*>(heap->mapping.base());
  int taken = 0;
  for (uint64_t id = 1; id <= 2000; ++id) {
    CounterPage page;
    page.Offer(end, doorbell, id, 0);
    std::atomic<bool> has_it = false;
    std::thread rank([&] { has_it = pages.Take(end, 1) != nullptr; });
    const bool is_back = page.TryTakeBack();
    rank.join();
    ASSERT_NE(is_back && has_it, true) << "both have it, in round " << id;
    ASSERT_TRUE(is_back || has_it || end->page.used == 0);
    taken += has_it ? 1 : 0;
    pages.Drop(end);
  }
  RecordProperty("taken", taken);
}

}  // namespace
}  // namespace ferry::daemon
