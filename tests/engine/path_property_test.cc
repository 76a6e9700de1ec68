// Random traffic of two ranks of two nodes, whose directions are switched between the daemons and a
// direct link all the time: messages match as MPI says, whatever the lanes, windows and workers do
// meanwhile. And with cuts and lost links: nothing hangs, and nothing is overtaken.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/matching_check.h"
#include "tests/engine/path_pair.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

constexpr uint64_t kCapacity = 30'000;
constexpr int32_t kTags = 3;

class Run {
 public:
  Run(PathPair* pair, uint64_t seed, uint32_t operations, bool with_faults)
      : random_(seed), pair_(*pair), with_faults_(with_faults) {
    pair_.Restart();
    sent_.reserve(operations);
    for (uint32_t side = 0; side < 2; ++side) {
      shm::SessionLayout& session = *pair_.view(side).layout;
      session.link_after_messages = Below(2) == 0 ? 20 : 0;
    }
    const uint32_t haste = 1 + Below(8);  // how much of the time things move
    for (uint32_t i = 0; i < operations; ++i) {
      const uint32_t side = Below(2);
      switch (Below(4 + haste)) {
        case 0:
          Send(side, Below(20) == 0 ? 10 + Below(100) : 1);
          break;
        case 1:
          Receive(side);
          break;
        case 2:
          Change(side);
          break;
        case 3:
          Cancel(side);
          break;
        default:
          Move(side);
          break;
      }
      if (with_faults_ && Below(200) == 0) {
        Fail();
      }
    }
  }

  void Finish() {
    Quiesce();
    for (uint32_t side = 0; side < 2; ++side) {
      for (uint32_t context = 0; context < 2; ++context) {
        ProbeResult probe;
        for (ErrorCode found = ErrorCode::kOk; found != ErrorCode::kWouldBlock;) {
          found =
              pair_.engine(side).receives().Probe({context, shm::kAnySource, shm::kAnyTag}, &probe);
          if (found == ErrorCode::kOk) {
            Post({side, shm::kAnySource, shm::kAnyTag, context, kCapacity, 0, {}, nullptr});
            Quiesce();
          }
        }
      }
    }
    Check();
  }

  uint32_t switches() const { return pair_.words(0).path_epoch + pair_.words(1).path_epoch; }
  uint32_t faults() const { return faults_; }

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void Send(uint32_t side, uint32_t burst) {
    constexpr uint64_t kSizes[] = {0, 8, 32, 33, 900, 8192, 8193, 25'000};
    // Where messages may be lost, each has to be told from all others.
    const uint64_t least = with_faults_ ? 8 : 0;
    TestRank& rank = pair_.rank(side);
    for (uint32_t i = 0; i < burst && sent_.size() < sent_.capacity(); ++i) {
      SentMessage message{
          side,
          1 - side,
          static_cast<int32_t>(Below(kTags)),
          Below(2),
          Pattern(burst > 1 ? 16 : std::max(kSizes[Below(std::size(kSizes))], least),
                  static_cast<uint32_t>(sent_.size())),
          0};
      message.request =
          message.context == 0 && Below(4) == 0
              ? rank.IsendByRequest(PathPair::kPeer, message.tag, message.data,
                                    Below(2) == 0 ? shm::kRequestSynchronous : 0)
              : rank.Isend(PathPair::kPeer, message.tag, message.data, message.context);
      sent_.push_back(std::move(message));
    }
  }

  void Receive(uint32_t side) {
    Post({side,
          Below(3) == 0 ? shm::kAnySource : static_cast<int32_t>(1 - side),
          Below(3) == 0 ? shm::kAnyTag : static_cast<int32_t>(Below(kTags)),
          Below(2),
          !with_faults_ && Below(8) == 0 ? Below(100) : kCapacity,
          0,
          {},
          nullptr});
  }

  void Post(PostedReceive receive) {
    TestRank& rank = pair_.rank(receive.rank);
    const int32_t source =
        receive.source == shm::kAnySource ? receive.source : static_cast<int32_t>(PathPair::kPeer);
    const auto start = Below(2) == 0 ? &TestRank::Irecv : &TestRank::IrecvDirect;
    receive.request = (rank.*start)(source, receive.tag, receive.capacity, receive.context);
    ASSERT_EQ(rank.start_error(), ErrorCode::kOk);
    posted_.push_back(std::move(receive));
  }

  void Change(uint32_t side) {
    if (Below(2) == 0) {
      pair_.LeaveLink(side);
    } else if (pair_.HasEnd(0) && pair_.HasEnd(1)) {
      pair_.UseLink(side);
    }
  }

  void Cancel(uint32_t side) {
    if (Below(4) != 0) {
      return;
    }
    if (Below(2) == 0 && !sent_.empty()) {
      const SentMessage& some = sent_[Below(static_cast<uint32_t>(sent_.size()))];
      pair_.rank(some.source).Cancel(some.request);
    } else if (!posted_.empty()) {
      const PostedReceive& some = posted_[Below(static_cast<uint32_t>(posted_.size()))];
      pair_.rank(some.rank).Cancel(some.request);
    }
    pair_.TakeCommands(side);
  }

  // Something moves: a packet, a core, a rank or its worker.
  void Move(uint32_t side) {
    switch (Below(5)) {
      case 0:
        (Below(2) == 0 ? pair_.rank(side) : pair_.worker(side)).Progress();
        break;
      case 1:
        pair_.TakeCommands(side);
        break;
      case 2:
        if (!posted_.empty()) {
          const PostedReceive& some = posted_[Below(static_cast<uint32_t>(posted_.size()))];
          pair_.rank(some.rank).Test(some.request);
        }
        break;
      default: {
        const Core core = kCores[Below(2)];
        for (uint32_t n = Below(8); n != 0 && pair_.CanDeliver(core, side); --n) {
          pair_.Deliver(core, side);
        }
        break;
      }
    }
    if (with_faults_) {
      MoveFaults(side);
    }
  }

  void MoveFaults(uint32_t side) {
    if (pair_.CanNotice(side) && Below(3) == 0) {
      pair_.Notice(side);
    }
    if (pair_.CanReturn(side) && Below(3) == 0) {
      pair_.Return(side);
    }
    const bool is_to_end =
        pair_.CanNoticeLoss(side) || !pair_.IsUp(side) || !pair_.HasEnd(1 - side);
    if (pair_.HasEnd(side) && is_to_end && Below(3) == 0) {
      pair_.EndLink(side);
    }
    if (!pair_.HasEnd(0) && !pair_.HasEnd(1) && pair_.IsUp(0) && pair_.IsUp(1)) {
      // The commands of before are taken before there is a new link.
      pair_.TakeCommands(0);
      pair_.TakeCommands(1);
      pair_.OpenLink();
    }
  }

  void Fail() {
    if (pair_.IsUp(0) && pair_.IsUp(1)) {
      ++faults_;
      Below(2) == 0 ? pair_.Cut() : pair_.LoseLink();
    }
  }

  bool Look(uint32_t side) {
    const bool moved = pair_.rank(side).Progress() != 0;
    pair_.TakeCommands(side);
    for (const PostedReceive& receive : posted_) {
      if (receive.rank == side) {
        pair_.rank(side).Test(receive.request);  // gives its cell back
      }
    }
    return moved;
  }

  void Quiesce() {
    for (uint32_t quiet = 0; quiet < 3;) {
      bool moved = false;
      for (uint32_t side = 0; side < 2; ++side) {
        for (uint32_t n = 0; n < 10 && with_faults_; ++n) {
          const bool was_up = pair_.IsUp(side) && pair_.HasEnd(side);
          MoveFaults(side);
          moved |= !was_up;
        }
        for (const Core core : kCores) {
          while (pair_.CanDeliver(core, side)) {
            pair_.Deliver(core, side);
            moved = true;
          }
        }
        moved |= Look(side);
      }
      quiet = moved ? 0 : quiet + 1;
    }
  }

  ErrorCode ErrorOf(const SentMessage& message) {
    return static_cast<ErrorCode>(pair_.rank(message.source).slot(message.request).error);
  }

  void Check() {
    for (PostedReceive& receive : posted_) {
      TestRank& rank = pair_.rank(receive.rank);
      if (!rank.Test(receive.request)) {
        ASSERT_EQ(rank.state(receive.request), RequestState::kPosted);
        continue;
      }
      Outcome outcome = rank.Finish(receive.request);
      if (outcome.error == ErrorCode::kCancelled ||
          (with_faults_ && outcome.error == ErrorCode::kLinkDown)) {
        receive.rank = kNobody;
        continue;
      }
      outcome.source = static_cast<int32_t>(1 - receive.rank);
      receive.outcome = std::move(outcome);
    }
    std::erase_if(posted_, [](const PostedReceive& receive) { return receive.rank == kNobody; });
    for (SentMessage& message : sent_) {
      message.taken = ErrorOf(message) == ErrorCode::kCancelled;  // no receive can have got it
    }
    ASSERT_NO_FATAL_FAILURE(CheckMatching(&sent_, &posted_));
    for (const SentMessage& message : sent_) {
      TestRank& rank = pair_.rank(message.source);
      ASSERT_EQ(rank.state(message.request), RequestState::kComplete);
      const ErrorCode error = ErrorOf(message);
      if (error == ErrorCode::kCancelled) {
        continue;
      }
      if (!with_faults_) {
        ASSERT_EQ(error, ErrorCode::kOk);
        ASSERT_TRUE(message.taken) << "lost";
      } else {
        ASSERT_TRUE(error == ErrorCode::kOk || error == ErrorCode::kLinkDown);
      }
    }
    for (uint32_t side = 0; side < 2; ++side) {
      const shm::SessionLayout& session = *pair_.view(side).layout;
      ASSERT_EQ(session.credits_owed | session.queued_sends | session.link_duties, 0U);
      ASSERT_EQ(pair_.words(side).path & 1, 0U);
      ASSERT_EQ(pair_.words(side).path, pair_.words(1 - side).inward_path);
      ASSERT_EQ(pair_.words(side).sent, pair_.words(1 - side).drained);
    }
  }

  static constexpr uint32_t kNobody = ~uint32_t{0};

  std::mt19937_64 random_;
  PathPair& pair_;
  const bool with_faults_;
  uint32_t faults_ = 0;
  std::vector<SentMessage> sent_;
  std::vector<PostedReceive> posted_;
};

void RunSeeds(uint64_t first, uint64_t count, uint32_t operations, bool with_faults) {
  EngineOptions options;
  options.push_max_bytes = 10'000;
  PathPair pair(
      options,
      {.local_ranks = 1, .remote_ranks = 1, .request_limit = 4096, .unexpected_limit = 4096});
  uint64_t switches = 0;
  uint64_t faults = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Run run(&pair, seed, operations, with_faults);
    ASSERT_NO_FATAL_FAILURE(run.Finish());
    ASSERT_FALSE(testing::Test::HasFailure());
    switches += run.switches();
    faults += run.faults();
  }
  std::printf("%lu switches, %lu faults\n", switches, faults);
  EXPECT_GT(switches, count);
  EXPECT_TRUE(!with_faults || faults > count);
}

#ifdef FERRY_STRESS
constexpr uint64_t kSeeds = 1000;
constexpr uint32_t kOperations = 2000;
#else
constexpr uint64_t kSeeds = 60;
constexpr uint32_t kOperations = 800;
#endif

TEST(PathPropertyTest, MatchesAsMpiSays) { RunSeeds(1, kSeeds, kOperations, false); }

TEST(PathPropertyTest, NothingHangsOrIsOvertakenAcrossFaults) {
  RunSeeds(10'000, kSeeds, kOperations, true);
}

}  // namespace
}  // namespace ferry::engine
