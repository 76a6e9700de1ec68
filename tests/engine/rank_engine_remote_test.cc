// Messages to and from other nodes: credits, rendezvous gets and the daemon's answers.
#include <gtest/gtest.h>

#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;

constexpr uint32_t kRemote = 1;  // rank 0 is here, rank 1 elsewhere

class RankEngineRemoteTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  shm::PeerWords& peer() { return node_.view(0).by_rank.peers[kRemote]; }

  TestNode node_{NodeOptions{.local_ranks = 1, .remote_ranks = 2}};
  FakeDaemon daemon_{node_.view(0)};
};

TEST_F(RankEngineRemoteTest, SendsSmallMessagesEagerly) {
  const uint32_t send = rank().Isend(kRemote, 7, "hello");
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kOk);
  EXPECT_TRUE(rank().rang_daemon);
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].kind, static_cast<uint8_t>(DescriptorKind::kEager));
  EXPECT_EQ(taken[0].source, 0U);
  EXPECT_EQ(taken[0].destination, kRemote);
  EXPECT_EQ(taken[0].tag, 7);
  EXPECT_EQ(taken[0].size_bytes, 5U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(taken[0].payload), 5), "hello");
}

TEST_F(RankEngineRemoteTest, SendsMediumMessagesThroughACellOfTheDaemonsLane) {
  const std::string data = Pattern(5000, 1);
  rank().Isend(kRemote, 7, data);
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 1U);
  ASSERT_EQ(taken[0].flags, shm::kFlagCell);
  const uint8_t* cell = node_.view(0).layout->to_daemon.cells[taken[0].cell];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(cell), 5000), data);
}

TEST_F(RankEngineRemoteTest, RtsLargeMessagesAndCompletesThemWithSendDone) {
  const uint32_t send = rank().Isend(kRemote, 7, Pattern(100'000, 1));
  EXPECT_EQ(rank().state(send), RequestState::kRemoteWait);
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].kind, static_cast<uint8_t>(DescriptorKind::kRemoteRts));
  EXPECT_EQ(taken[0].flags, shm::kFlagSourcePrivate);
  EXPECT_EQ(taken[0].size_bytes, 100'000U);
  const auto rts = PayloadOf<shm::RemoteRts>(taken[0]);
  EXPECT_EQ(rts.send_request, send);
  EXPECT_EQ(rts.where.address, rank().slot(send).buffer.address);
  EXPECT_EQ(rts.key, 0U);
  daemon_.Result(DescriptorKind::kSendDone, send, rts.send_generation);
  rank().Progress();
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kOk);
}

TEST_F(RankEngineRemoteTest, SaysWhenTheSourceLiesInARegion) {
  const uint32_t send =
      rank().NewRequest(shm::RequestKind::kSend, kRemote, 7, 0, Pattern(10'000, 1));
  rank().slot(send).buffer = {3, 0, 4096};
  Effects effects;
  rank().engine().sends().StartSend(send, effects);
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].flags, 0);
  EXPECT_EQ(PayloadOf<shm::RemoteRts>(taken[0]).where.region, 3U);
}

TEST_F(RankEngineRemoteTest, ReceivesEagerMessages) {
  const uint32_t posted = rank().Irecv(kRemote, 7, 16);
  daemon_.Eager(kRemote, 7, "one");
  daemon_.Eager(2, 7, "two");
  rank().Progress();
  const Outcome received = rank().Wait(posted);
  EXPECT_EQ(received.data, "one");
  EXPECT_EQ(received.source, static_cast<int32_t>(kRemote));
  EXPECT_EQ(rank().Receive(shm::kAnySource, 7, 16).source, 2);
}

TEST_F(RankEngineRemoteTest, RndvGetsAnnouncedMessages) {
  for (const bool posted : {true, false}) {
    uint32_t receive = posted ? rank().Irecv(kRemote, 7, 50'000) : 0;
    daemon_.RemoteRts(kRemote, 7, 100'000);
    rank().Progress();
    if (!posted) {
      receive = rank().Irecv(kRemote, 7, 50'000);
    }
    EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
    const std::vector<Descriptor> taken = daemon_.Take();
    ASSERT_EQ(taken.size(), 1U);
    EXPECT_EQ(taken[0].kind, static_cast<uint8_t>(DescriptorKind::kRndvGet));
    const auto rndv_get = PayloadOf<shm::RndvGetCommand>(taken[0]);
    EXPECT_EQ(rndv_get.generation, rank().slot(receive).generation);
    const shm::TransferLayout& transfer = *node_.view(0).inbox.transfer(rndv_get.transfer);
    EXPECT_EQ(transfer.generation, rndv_get.generation);
    EXPECT_EQ(transfer.size_bytes, 50'000U) << "cut to the capacity";
    EXPECT_EQ(transfer.source.region, 5U);
    EXPECT_EQ(transfer.source.address, 64U);
    EXPECT_EQ(transfer.remote_key, 0x1234U);
    EXPECT_EQ(transfer.remote_request, 7U);
    EXPECT_EQ(transfer.remote_generation, 3U);
    EXPECT_EQ(transfer.destination.address, rank().slot(receive).buffer.address);
    EXPECT_EQ(transfer.source_rank, kRemote);
    EXPECT_EQ(transfer.destination_rank, 0U);
    daemon_.Result(DescriptorKind::kRndvGetDone, receive, rndv_get.generation);
    rank().Progress();
    EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kTruncated);
    EXPECT_TRUE(IsReusable(transfer)) << "or the request slot is never used again";
  }
}

TEST_F(RankEngineRemoteTest, PassesErrorsOfTheDaemonOn) {
  const uint32_t send = rank().Isend(kRemote, 7, Pattern(100'000, 1));
  const uint32_t receive = rank().Irecv(kRemote, 7, 100'000);
  daemon_.RemoteRts(kRemote, 7, 100'000);
  rank().Progress();
  daemon_.Result(DescriptorKind::kSendDone, send, rank().slot(send).generation,
                 ErrorCode::kNodeUnreachable);
  daemon_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation,
                 ErrorCode::kTimeout);
  rank().Progress();
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kTimeout);
  EXPECT_EQ(rank().poison(), ErrorCode::kOk);
}

TEST_F(RankEngineRemoteTest, IgnoresAnswersForEarlierLivesAndOtherStates) {
  const uint32_t send = rank().Isend(kRemote, 7, Pattern(100'000, 1));
  const uint32_t posted = rank().Irecv(kRemote, 7, 16);
  const uint32_t generation = rank().slot(send).generation;
  daemon_.Result(DescriptorKind::kSendDone, send, generation - 1);
  daemon_.Result(DescriptorKind::kSendDone, send, generation + 1);
  daemon_.Result(DescriptorKind::kRndvGetDone, posted, rank().slot(posted).generation);
  daemon_.Result(DescriptorKind::kRndvGetDone, 0, 0);
  daemon_.Result(DescriptorKind::kRndvGetDone, rank().view().request_limit, 0);
  daemon_.Result(DescriptorKind::kRndvGetDone, ~uint32_t{0}, 0);
  EXPECT_EQ(rank().Progress(), 6U);
  EXPECT_EQ(rank().state(send), RequestState::kRemoteWait);
  EXPECT_EQ(rank().state(posted), RequestState::kPosted);
  EXPECT_EQ(rank().poison(), ErrorCode::kOk);
}

// ---- Credits -----------------------------------------------------------------------------------

class CreditTest : public RankEngineRemoteTest, public testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(CounterStarts, CreditTest,
                         testing::Values(0, ~uint32_t{0} - 5, ~uint32_t{0} - kRemoteWindow,
                                         0x7FFF'FFF0));

TEST_P(CreditTest, NeverSendsMoreThanTheWindow) {
  peer().sent = peer().credited = GetParam();
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < 100; ++i) {
    sends.push_back(rank().Isend(kRemote, 7, std::to_string(i)));
  }
  EXPECT_EQ(rank().engine().sends().TryTakeCell(kRemote), shm::kNoCell);
  uint32_t seen = 0;
  uint32_t outstanding = 0;
  while (seen < 100) {
    const std::vector<Descriptor> taken = daemon_.Take();
    ASSERT_FALSE(taken.empty());
    for (const Descriptor& descriptor : taken) {
      const std::string data(reinterpret_cast<const char*>(descriptor.payload),
                             descriptor.size_bytes);
      ASSERT_EQ(data, std::to_string(seen));
      ++seen;
      ++outstanding;
      ASSERT_LE(outstanding, kRemoteWindow);
    }
    daemon_.Credit(kRemote, outstanding / 2 + 1);
    outstanding -= outstanding / 2 + 1;
    rank().Progress();
  }
  for (const uint32_t send : sends) {
    EXPECT_EQ(rank().Finish(send).error, ErrorCode::kOk);
  }
}

TEST_P(CreditTest, ReturnsCreditsForWhatItDrained) {
  peer().drained = peer().returned = GetParam();
  uint32_t returned = 0;
  for (uint32_t i = 1; i <= 10 * kRemoteWindow; ++i) {
    ASSERT_TRUE(daemon_.Eager(kRemote, 7, "x"));
    rank().Progress();
    for (const Descriptor& descriptor : daemon_.Take()) {
      ASSERT_EQ(descriptor.kind, static_cast<uint8_t>(DescriptorKind::kCredit));
      EXPECT_EQ(descriptor.source, 0U);
      EXPECT_EQ(descriptor.destination, kRemote);
      returned = PayloadOf<shm::CreditReturn>(descriptor).count - GetParam();
    }
    ASSERT_LE(returned, i);
    ASSERT_LT(i - returned, kRemoteWindow) << "the sender would wait for ever";
  }
}

TEST_F(RankEngineRemoteTest, CountsCreditsPerPeer) {
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    rank().Isend(kRemote, 7, "x");
  }
  EXPECT_EQ(rank().state(rank().Isend(kRemote, 7, "x")), RequestState::kQueued);
  EXPECT_EQ(rank().state(rank().Isend(2, 7, "x")), RequestState::kComplete);
}

TEST_F(RankEngineRemoteTest, AnotherEngineReturnsTheCreditsThatTheFirstCouldNot) {
  // The progress worker drains a window full of messages but finds no room for the credit; from
  // then on the rank progresses itself. The peer has no credit left, so that it sends nothing new.
  TestRank worker(node_, 0, Runner::kWorker);
  daemon_.FillLane();
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    ASSERT_TRUE(daemon_.Eager(kRemote, 7, "x"));
  }
  while (worker.Progress() != 0) {
  }
  EXPECT_TRUE(rank().engine().WaitsForRoom()) << "the daemon's notice of room must be acted on";
  daemon_.Take();
  rank().Progress();
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].kind, static_cast<uint8_t>(DescriptorKind::kCredit));
  EXPECT_EQ(PayloadOf<shm::CreditReturn>(taken[0]).count, kRemoteWindow);
  worker.Progress();
  EXPECT_TRUE(daemon_.Take().empty()) << "credits must be returned once";
  EXPECT_FALSE(rank().engine().WaitsForRoom());
}

// ---- A full lane to the daemon -----------------------------------------------------------------

TEST_F(RankEngineRemoteTest, QueuesSendsWhileTheLaneToTheDaemonIsFull) {
  daemon_.FillLane();
  const uint32_t small = rank().Isend(kRemote, 7, "small");
  const uint32_t large = rank().Isend(kRemote, 7, Pattern(100'000, 1));
  EXPECT_EQ(rank().state(small), RequestState::kQueued);
  EXPECT_EQ(rank().state(large), RequestState::kQueued);
  EXPECT_EQ(node_.view(0).layout->to_daemon.producer.waiting, 1U);
  EXPECT_EQ(peer().sent, 0U);
  daemon_.Take();
  rank().Progress();
  const std::vector<Descriptor> taken = daemon_.Take();
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].kind, static_cast<uint8_t>(DescriptorKind::kEager));
  EXPECT_EQ(taken[1].kind, static_cast<uint8_t>(DescriptorKind::kRemoteRts));
  EXPECT_EQ(peer().sent, 2U);
}

TEST_F(RankEngineRemoteTest, ChainsRndvGetsWhileTheLaneToTheDaemonIsFull) {
  daemon_.FillLane();
  std::vector<uint32_t> receives;
  for (int32_t i = 0; i < 10; ++i) {
    receives.push_back(rank().Irecv(kRemote, i, 100));
    daemon_.RemoteRts(kRemote, i, 100);
  }
  rank().Progress();
  EXPECT_TRUE(rank().engine().WaitsForRoom());
  EXPECT_EQ(node_.view(0).layout->to_daemon.producer.waiting, 1U);
  daemon_.Take(4);  // room for four of the ten
  rank().Progress();
  EXPECT_TRUE(rank().engine().WaitsForRoom());
  daemon_.Take(shm::kLaneSlots - 4);
  std::vector<Descriptor> rndv_gets = daemon_.Take();
  EXPECT_EQ(rndv_gets.size(), 4U);
  rank().Progress();
  for (const Descriptor& descriptor : daemon_.Take()) {
    rndv_gets.push_back(descriptor);
  }
  ASSERT_EQ(rndv_gets.size(), 10U);
  for (uint32_t i = 0; i < 10; ++i) {
    EXPECT_EQ(PayloadOf<shm::RndvGetCommand>(rndv_gets[i]).transfer, receives[i]);
  }
  EXPECT_FALSE(rank().engine().WaitsForRoom());
}

// A rendezvous get that has not reached the daemon yet goes there after the death, too: the source
// may have announced its message in the next life of a link that was cut, and waits for an answer.
TEST_F(RankEngineRemoteTest, ADeathLeavesChainedRndvGetsToTheDaemon) {
  for (const ErrorCode death : {ErrorCode::kLinkDown, ErrorCode::kPeerDied}) {
    daemon_.FillLane();
    std::vector<uint32_t> receives;
    for (uint32_t i = 0; i < 6; ++i) {
      const uint32_t source = i % 2 == 0 ? kRemote : 2;
      receives.push_back(rank().Irecv(static_cast<int32_t>(source), 7, 100));
      daemon_.RemoteRts(source, 7, 100);
    }
    rank().Progress();
    node_.MarkDead(0, kRemote, death);
    rank().Progress();
    daemon_.Take();
    rank().Progress();
    std::vector<uint32_t> fetched;
    for (const Descriptor& descriptor : daemon_.Take()) {
      if (descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRndvGet)) {
        fetched.push_back(PayloadOf<shm::RndvGetCommand>(descriptor).transfer);
      }
    }
    EXPECT_EQ(fetched, receives);
    for (uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(rank().state(receives[i]), RequestState::kRemoteWait);
      const ErrorCode answer = i % 2 == 0 ? death : ErrorCode::kOk;
      daemon_.Result(DescriptorKind::kRndvGetDone, receives[i], rank().slot(receives[i]).generation,
                     answer);
      rank().Progress();
      EXPECT_EQ(rank().Finish(receives[i]).error, answer);
    }
    node_.MarkDead(0, kRemote, ErrorCode::kOk);
    rank().Progress();
  }
}

TEST_F(RankEngineRemoteTest, TellsTheDaemonThatItsLaneHasRoomAgain) {
  // No request waits for these answers: they make the rank say nothing of its own accord.
  while (daemon_.Result(DescriptorKind::kSendDone, 0, 0)) {
  }
  rank().Progress();
  rank().Progress();
  EXPECT_FALSE(rank().rang_daemon) << "nobody waits yet";
  while (daemon_.Result(DescriptorKind::kSendDone, 0, 0)) {
  }
  daemon_.producer().AskForRoom();
  node_.Settle();
  EXPECT_TRUE(rank().rang_daemon);
}

// ---- One-sided commands

Descriptor OneSidedCommandTo(uint32_t destination) {
  Descriptor command{};
  command.kind = static_cast<uint8_t>(DescriptorKind::kOneSided);
  command.destination = destination;
  return command;
}

TEST_F(RankEngineRemoteTest, CommandsNeedNoCreditButRoom) {
  uint32_t& waiting = node_.view(0).layout->to_daemon.producer.waiting;
  const Descriptor command = OneSidedCommandTo(kRemote);
  for (uint32_t i = 0; i < shm::kLaneSlots; ++i) {
    ASSERT_TRUE(rank().engine().sends().TryCommand(Core::kDaemon, command));
  }
  EXPECT_EQ(waiting, 0U);
  EXPECT_FALSE(rank().engine().sends().TryCommand(Core::kDaemon, command));
  EXPECT_EQ(waiting, 1U) << "the daemon is to wake this rank";
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kOneSided).size(), shm::kLaneSlots);
  EXPECT_TRUE(rank().engine().sends().TryCommand(Core::kDaemon, command));
}

TEST_F(RankEngineRemoteTest, CellsOfCommandsAreThoseOfTheLane) {
  uint32_t& waiting = node_.view(0).layout->to_daemon.producer.waiting;
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    ASSERT_NE(rank().engine().sends().TryTakeCommandCell(Core::kDaemon), shm::kNoCell);
  }
  EXPECT_EQ(waiting, 0U);
  EXPECT_EQ(rank().engine().sends().TryTakeCommandCell(Core::kDaemon), shm::kNoCell);
  EXPECT_EQ(waiting, 1U);
  rank().engine().sends().ReturnCommandCell(5);
  EXPECT_EQ(rank().engine().sends().TryTakeCommandCell(Core::kDaemon), 5U);
}

}  // namespace
}  // namespace ferry::engine
