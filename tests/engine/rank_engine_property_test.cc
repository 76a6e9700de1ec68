// Random sends, receives and progress among a few ranks must match as MPI says, which is checked at
// the end of each run (matching_check.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/engine/matching_check.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

constexpr uint64_t kCapacity = 40'000;

class Run {
 public:
  Run(uint64_t seed, uint32_t operations)
      : random_(seed),
        ranks_(2 + Below(3)),
        node_(NodeOptions{.local_ranks = ranks_, .request_limit = 4096, .unexpected_limit = 8192},
              EngineOptions{.eager_max_bytes = Below(2) == 0 ? 8192U : 1000U,
                            .chunk_bytes = 4096,
                            .single_chunk_max_bytes = 8192}) {
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      workers_.push_back(std::make_unique<TestRank>(node_, rank, Runner::kWorker));
    }
    sent_.reserve(operations);
    posted_.reserve(2 * operations);
    const uint32_t progress_weight = 1 + Below(6);
    for (uint32_t i = 0; i < operations; ++i) {
      switch (Below(2 + progress_weight)) {
        case 0:
          Send(Below(20) == 0 ? 100 + Below(300) : 1);
          break;
        case 1:
          Receive(Below(ranks_));
          break;
        default:
          Progress(Below(ranks_));
          break;
      }
    }
  }

  void Finish() {
    Quiesce();
    CollectReceives();
    // Receives for anything take the rest, so that nothing may be lost.
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      for (uint32_t context = 0; context < 2; ++context) {
        ProbeResult probe;
        while (node_[rank].engine().receives().Probe({context, shm::kAnySource, shm::kAnyTag},
                                                     &probe) == ErrorCode::kOk) {
          Post({rank, shm::kAnySource, shm::kAnyTag, context, kCapacity, 0, {}, nullptr});
          Quiesce();
        }
      }
    }
    CollectReceives();
    Check();
  }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void Send(uint32_t burst) {
    constexpr uint64_t kSizes[] = {0, 8, 32, 33, 900, 1001, 8192, 8193, 30'000};
    const uint32_t source = Below(ranks_);
    const uint32_t destination = Below(ranks_);
    const uint64_t size_bytes = kSizes[Below(std::size(kSizes))];
    for (uint32_t i = 0; i < burst && sent_.size() < sent_.capacity(); ++i) {
      SentMessage message{source,
                          destination,
                          static_cast<int32_t>(Below(3)),
                          Below(2),
                          Pattern(burst > 1 ? 16 : size_bytes, static_cast<uint32_t>(sent_.size())),
                          0};
      message.request =
          node_[source].Isend(destination, message.tag, message.data, message.context);
      sent_.push_back(std::move(message));
    }
  }

  void Receive(uint32_t rank) {
    Post({rank,
          Below(3) == 0 ? shm::kAnySource : static_cast<int32_t>(Below(ranks_)),
          Below(3) == 0 ? shm::kAnyTag : static_cast<int32_t>(Below(3)),
          Below(2),
          Below(8) == 0 ? Below(100) : kCapacity,
          0,
          {},
          nullptr});
  }

  void Post(PostedReceive receive) {
    TestRank& rank = node_[receive.rank];
    const auto start = Below(2) == 0 ? &TestRank::Irecv : &TestRank::IrecvDirect;
    receive.request = (rank.*start)(receive.source, receive.tag, receive.capacity, receive.context);
    ASSERT_EQ(node_[receive.rank].start_error(), ErrorCode::kOk);
    posted_.push_back(std::move(receive));
  }

  // The rank or its worker progresses, whichever comes.
  void Progress(uint32_t rank) {
    (Below(2) == 0 ? node_[rank] : *workers_[rank]).Progress();
    if (!posted_.empty()) {
      const PostedReceive& some = posted_[Below(static_cast<uint32_t>(posted_.size()))];
      if (!some.outcome.has_value()) {
        node_[some.rank].Test(some.request);
      }
    }
  }

  void Quiesce() {
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t rank = 0; rank < ranks_; ++rank) {
        const RankEngine& engine = node_[rank].engine();
        moved |= (Below(2) == 0 ? node_[rank] : *workers_[rank]).Progress() != 0 ||
                 engine.HasArrivals() || engine.WaitsForRoom();
      }
      for (PostedReceive& receive : posted_) {
        if (!receive.outcome.has_value()) {
          node_[receive.rank].Test(receive.request);
        }
      }
    }
  }

  void CollectReceives() {
    for (PostedReceive& receive : posted_) {
      if (!receive.outcome.has_value() && node_[receive.rank].Test(receive.request)) {
        receive.outcome = node_[receive.rank].Finish(receive.request);
      }
    }
  }

  void Check() {
    ASSERT_NO_FATAL_FAILURE(CheckMatching(&sent_, &posted_));
    for (const SentMessage& message : sent_) {
      ASSERT_TRUE(message.taken) << "lost";
      ASSERT_EQ(node_[message.source].Wait(message.request).error, ErrorCode::kOk);
    }
  }

  std::mt19937_64 random_;
  uint32_t ranks_;
  TestNode node_;
  std::vector<std::unique_ptr<TestRank>> workers_;
  std::vector<SentMessage> sent_;
  std::vector<PostedReceive> posted_;
};

void RunSeeds(uint64_t first, uint64_t count, uint32_t operations) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Run run(seed, operations);
    ASSERT_NO_FATAL_FAILURE(run.Finish());
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

#ifdef FERRY_STRESS
TEST(RankEnginePropertyTest, MatchesAsMpiSays) { RunSeeds(1000, 300, 1500); }
#else
TEST(RankEnginePropertyTest, MatchesAsMpiSays) { RunSeeds(1, 100, 600); }
#endif

}  // namespace
}  // namespace ferry::engine
