// Deferred work that runs: two endpoints of `sockets`, which carries it out without our help. The
// protocols of the paper (sections V-A and V-B) end to end, and failures.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/transports/ofi/deferred_pair.h"
#include "transports/api/deferred_work.h"

namespace ferry::transport {
namespace {

using Codes = std::vector<ErrorCode>;

// One persistent send and its receive, armed round by round.
struct MatchedPair {
  MatchedPair(DeferredPair& pair, size_t words, bool ready)
      : nodes(pair),
        is_ready(ready),
        trigger(pair.a.Open()),
        sent(pair.a.Open()),
        send_stored(pair.a.Open()),
        arrived(pair.b.Open()),
        receive_stored(pair.b.Open()),
        start(pair.b.Open()),
        cleared(pair.b.Open()),
        source(pair.a.Memory(words)),
        send_word(pair.a.Memory(1)),
        clear_to_send(pair.a.Target(1, trigger)),
        sink(pair.b.Target(words, arrived)),
        receive_word(pair.b.Memory(1)) {}

  // The write of the words from `first` on, all of them or so many.
  DeferredWrite Write(uint64_t threshold, uint64_t context, size_t first = 0,
                      uint64_t bytes = 0) const {
    return {.trigger = {trigger, threshold},
            .done = sent,
            .peer = nodes.b_of_a,
            .local = &source->words[first],
            .region = source->region.handle,
            .bytes = bytes != 0 ? bytes : source->bytes(),
            .remote_address = sink->AddressOf(first),
            .key = sink->region.key,
            .context = context};
  }
  // The addition to a word of `peer` that follows.
  static DeferredIncrement Increment(const DeferredTrigger& trigger, NicCounter done, PeerId peer,
                                     const DeferredMemory& word, uint64_t context) {
    return {.trigger = trigger,
            .done = done,
            .peer = peer,
            .remote_address = word.AddressOf(0),
            .key = word.region.key,
            .context = context};
  }
  void ArmSend(uint64_t round) {
    EXPECT_EQ(nodes.a.deferred->ArmWrite(Write((is_ready ? 1 : 2) * round, 4 * round)),
              ErrorCode::kOk);
    EXPECT_EQ(nodes.a.deferred->ArmIncrement(
                  Increment({sent, round}, send_stored, nodes.a.self, *send_word, 4 * round + 1)),
              ErrorCode::kOk);
  }
  void ArmReceive(uint64_t round) {
    EXPECT_EQ(nodes.b.deferred->ArmIncrement(Increment({arrived, round}, receive_stored,
                                                       nodes.b.self, *receive_word, 4 * round)),
              ErrorCode::kOk);
    if (!is_ready) {
      EXPECT_EQ(nodes.b.deferred->ArmIncrement(Increment({start, round}, cleared, nodes.a_of_b,
                                                         *clear_to_send, 4 * round + 1)),
                ErrorCode::kOk);
    }
  }

  void StartSend() { nodes.a.deferred->AddToCounter(trigger, 1); }
  void StartReceive() { nodes.b.deferred->AddToCounter(start, 1); }
  bool Ended(uint64_t round) {
    return send_word->Load(0) >= round && receive_word->Load(0) >= round;
  }

  DeferredPair& nodes;
  bool is_ready;
  NicCounter trigger, sent, send_stored, arrived, receive_stored, start, cleared;
  std::unique_ptr<DeferredMemory> source, send_word, clear_to_send, sink, receive_word;
};

void Fill(DeferredMemory* memory, uint64_t round) {
  for (size_t i = 0; i < memory->words.size(); i++) {
    memory->words[i] = round * 1'000'003 + i;
  }
}

TEST(OfiDeferredTest, OnlyProvidersWithDeferredWorkHaveTheFacet) {
  TransportOptions options;
  options.provider = "tcp;ofi_rxm";
  StatusOr<std::unique_ptr<Transport>> tcp = CreateOfiTransport(options);
  ASSERT_TRUE(tcp.ok()) << tcp.status().ToString();
  EXPECT_EQ((*tcp)->deferred_work(), nullptr);
  const DeferredNode node;
  EXPECT_EQ(node.deferred->entries(), 504U);
  EXPECT_EQ(DeferredNode(16).deferred->entries(), 16U);
}

TEST(OfiDeferredTest, ReadySendGoesWhenItsTriggerIsReached) {
  DeferredPair pair;
  MatchedPair matched(pair, 512, /*ready=*/true);
  matched.ArmReceive(1);
  matched.ArmSend(1);
  Fill(matched.source.get(), 7);  // the data is read when the trigger fires, not when armed
  EXPECT_EQ(pair.a.deferred->in_use(), 2U);
  pair.a.Poll();
  EXPECT_EQ(matched.receive_word->Load(0), 0U);

  matched.StartSend();
  ASSERT_TRUE(pair.PollUntil([&] { return matched.Ended(1); }));
  EXPECT_EQ(matched.sink->words, matched.source->words);
  ASSERT_TRUE(pair.PollUntil(
      [&] { return pair.a.recorder.ends.size() == 2 && pair.b.recorder.ends.size() == 1; }));
  EXPECT_EQ(pair.a.recorder.ends[4], Codes{ErrorCode::kOk});
  EXPECT_EQ(pair.a.recorder.ends[5], Codes{ErrorCode::kOk});
  EXPECT_EQ(pair.b.recorder.ends[4], Codes{ErrorCode::kOk});
  EXPECT_EQ(pair.a.deferred->in_use(), 0U);
  EXPECT_EQ(pair.b.deferred->in_use(), 0U);
}

// The even-count rule: a start and a clear-to-send make two, in whichever order.
TEST(OfiDeferredTest, RegularSendWaitsForItsReceiverAndForItsStart) {
  DeferredPair pair;
  MatchedPair matched(pair, 64, /*ready=*/false);
  for (uint64_t round = 1; round <= 6; round++) {
    matched.ArmReceive(round);
    matched.ArmSend(round);
    Fill(matched.source.get(), round);
    const bool send_first = round % 2 == 0;
    send_first ? matched.StartSend() : matched.StartReceive();
    ASSERT_TRUE(pair.PollUntil(
        [&] { return pair.a.deferred->ReadCounter(matched.trigger) == 2 * round - 1; }));
    EXPECT_FALSE(matched.Ended(round));
    EXPECT_EQ(matched.receive_word->Load(0), round - 1);
    send_first ? matched.StartReceive() : matched.StartSend();
    ASSERT_TRUE(pair.PollUntil([&] { return matched.Ended(round); })) << "round " << round;
    EXPECT_EQ(matched.sink->words, matched.source->words) << "round " << round;
    EXPECT_EQ(matched.receive_word->Load(0), round);
    EXPECT_EQ(matched.send_word->Load(0), round);
  }
}

TEST(OfiDeferredTest, ManyRoundsAreArmedAhead) {
  constexpr uint64_t kRounds = 150;
  constexpr uint64_t kAhead = 3;
  DeferredPair pair(16);
  MatchedPair matched(pair, 16, /*ready=*/false);
  for (uint64_t round = 1; round <= kAhead; round++) {
    matched.ArmReceive(round);
    matched.ArmSend(round);
  }
  for (uint64_t round = 1; round <= kRounds; round++) {
    Fill(matched.source.get(), round);
    matched.StartReceive();
    matched.StartSend();
    ASSERT_TRUE(pair.PollUntil([&] { return matched.Ended(round); })) << "round " << round;
    ASSERT_EQ(matched.sink->words, matched.source->words) << "round " << round;
    matched.ArmReceive(round + kAhead);
    matched.ArmSend(round + kAhead);
  }
  ASSERT_TRUE(pair.PollUntil([&] { return pair.a.deferred->statistics().done == 2 * kRounds; }));
  EXPECT_EQ(pair.a.deferred->in_use(), 2 * kAhead);
  EXPECT_EQ(pair.a.deferred->statistics().refused, 0U);
}

TEST(OfiDeferredTest, TriggerThatIsReachedAlreadyFiresAtOnce) {
  DeferredPair pair;
  MatchedPair matched(pair, 8, /*ready=*/true);
  matched.StartSend();
  matched.ArmSend(1);
  matched.ArmReceive(1);
  ASSERT_TRUE(pair.PollUntil([&] { return matched.Ended(1); }));
}

TEST(OfiDeferredTest, NoMoreThanItsEntriesAreArmed) {
  DeferredPair pair(4);
  MatchedPair matched(pair, 8, /*ready=*/true);
  matched.ArmSend(1);
  matched.ArmSend(2);
  const DeferredIncrement more = MatchedPair::Increment(
      {matched.sent, 9}, matched.send_stored, pair.a.self, *matched.send_word, /*context=*/99);
  EXPECT_EQ(pair.a.deferred->ArmIncrement(more), ErrorCode::kWouldBlock);
  EXPECT_EQ(pair.a.deferred->statistics().refused, 1U);
  matched.StartSend();
  ASSERT_TRUE(pair.PollUntil([&] { return pair.a.deferred->in_use() == 2; }));
  EXPECT_EQ(pair.a.deferred->ArmIncrement(more), ErrorCode::kOk);
}

TEST(OfiDeferredTest, WrongArgumentsAreRefused) {
  DeferredPair pair;
  MatchedPair matched(pair, 8, /*ready=*/true);
  DeferredWork& deferred = *pair.a.deferred;
  DeferredWrite write = matched.Write(1, /*context=*/0);
  const auto with = [&](auto change) {
    DeferredWrite changed = write;
    change(&changed);
    return deferred.ArmWrite(changed);
  };
  EXPECT_EQ(with([](DeferredWrite* w) { w->bytes = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(with([](DeferredWrite* w) { w->bytes = 65; }), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(with([](DeferredWrite* w) { w->region = RegionHandle{77}; }),
            ErrorCode::kInvalidBuffer);
  EXPECT_EQ(with([](DeferredWrite* w) { w->peer = kUnknownPeer; }), ErrorCode::kNotFound);
  EXPECT_EQ(with([](DeferredWrite* w) { w->trigger.counter = NicCounter{1 << 20}; }),
            ErrorCode::kNotFound);
  EXPECT_EQ(with([](DeferredWrite* w) { w->done = NicCounter{1 << 20}; }), ErrorCode::kNotFound);
  EXPECT_EQ(with([](DeferredWrite* w) { w->trigger.threshold = uint64_t{1} << 31; }),
            ErrorCode::kLimitExceeded);
  EXPECT_EQ(deferred.ArmIncrement({.trigger = {matched.sent, 1},
                                   .done = matched.send_stored,
                                   .peer = pair.a.self,
                                   .remote_address = matched.send_word->AddressOf(0) + 4}),
            ErrorCode::kInvalidBuffer);
  ASSERT_EQ(with([](DeferredWrite* w) { w->trigger.threshold = 5; }), ErrorCode::kOk);
  EXPECT_EQ(with([](DeferredWrite* w) { w->trigger.threshold = 4; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(with([&](DeferredWrite* w) {
              w->trigger = {matched.send_stored, 6};
            }),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(with([&](DeferredWrite* w) { w->trigger.threshold = 6, w->peer = pair.a.self; }),
            ErrorCode::kInvalidArgument);
  pair.a.transport->FailPeer(pair.b_of_a, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(with([](DeferredWrite*) {}), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(deferred.in_use(), 1U);
  EXPECT_EQ(deferred.PrepareTarget(&write, 8, NicCounter{1 << 20}).status().code(),
            ErrorCode::kNotFound);
}

TEST(OfiDeferredTest, WrongKeyFailsTheOperationOfThatContext) {
  DeferredPair pair;
  MatchedPair matched(pair, 8, /*ready=*/true);
  DeferredWrite write = matched.Write(1, /*context=*/1234);
  write.key += 1;
  ASSERT_EQ(pair.a.deferred->ArmWrite(write), ErrorCode::kOk);
  matched.StartSend();
  ASSERT_TRUE(pair.PollUntil([&] { return !pair.a.recorder.ends.empty(); }));
  ASSERT_EQ(pair.a.recorder.ends.count(1234), 1U);
  ASSERT_EQ(pair.a.recorder.ends[1234].size(), 1U);
  EXPECT_NE(pair.a.recorder.ends[1234][0], ErrorCode::kOk);
  EXPECT_EQ(pair.a.deferred->ReadCounter(matched.sent), 0U);
  EXPECT_EQ(pair.a.deferred->in_use(), 0U);
  EXPECT_EQ(pair.a.deferred->statistics().failed, 1U);
  EXPECT_FALSE(pair.a.transport->LastError().empty());
}

// The region is free again once the counter is closed; nothing fires any more.
TEST(OfiDeferredTest, ClosingACounterDiscardsWhatWaitsForIt) {
  DeferredPair pair;
  MatchedPair matched(pair, 8, /*ready=*/true);
  matched.ArmSend(1);
  EXPECT_EQ(pair.a.transport->DeregisterMemory(matched.source->region.handle).code(),
            ErrorCode::kWouldBlock);
  ASSERT_TRUE(pair.a.transport->DeregisterMemory(matched.clear_to_send->region.handle).ok());
  pair.a.deferred->CloseCounter(matched.trigger);
  pair.a.deferred->CloseCounter(matched.sent);
  pair.a.deferred->CloseCounter(matched.send_stored);
  pair.a.deferred->AddToCounter(matched.trigger, 1);
  pair.a.Poll();
  EXPECT_EQ(pair.a.recorder.ends[4], Codes{ErrorCode::kCancelled});
  EXPECT_EQ(pair.a.recorder.ends[5], Codes{ErrorCode::kCancelled});
  EXPECT_EQ(pair.a.deferred->in_use(), 0U);
  EXPECT_EQ(pair.a.deferred->statistics().abandoned, 0U);
  EXPECT_TRUE(pair.a.transport->DeregisterMemory(matched.source->region.handle).ok());
  EXPECT_EQ(pair.a.deferred->ReadCounter(matched.trigger), 0U);
}

// A counter that a region counts on stays until that is released.
TEST(OfiDeferredTest, ClosingACounterOfATargetWaitsForItsRelease) {
  DeferredPair pair;
  MatchedPair matched(pair, 8, /*ready=*/true);
  matched.ArmReceive(1);
  pair.b.deferred->CloseCounter(matched.arrived);
  pair.b.Poll();
  EXPECT_EQ(pair.b.recorder.ends[4], Codes{ErrorCode::kCancelled});
  ASSERT_TRUE(pair.b.transport->DeregisterMemory(matched.sink->region.handle).ok());
  ASSERT_TRUE(pair.PollUntil([&] { return pair.b.deferred->statistics().abandoned == 0; }));
  EXPECT_EQ(pair.b.deferred->NextPollNs(5), UINT64_MAX);
}

// Nothing tells that a peer is gone: the deadline is the caller's, and then it closes the counter.
TEST(OfiDeferredTest, PeerThatIsGoneIsNoticedByTheCallersDeadline) {
  std::unique_ptr<DeferredMemory> source;  // goes last: the NIC may read it until then
  DeferredNode a;
  auto b = std::make_unique<DeferredNode>();
  const PeerId gone = *a.transport->AddPeer(b->transport->Address());
  const uint64_t key = b->Memory(1)->region.key;
  const NicCounter trigger = a.Open();
  const NicCounter sent = a.Open();
  source = a.Memory(1);
  ASSERT_EQ(a.deferred->ArmWrite({.trigger = {trigger, 1},
                                  .done = sent,
                                  .peer = gone,
                                  .local = source->words.data(),
                                  .region = source->region.handle,
                                  .bytes = 8,
                                  .remote_address = 0,
                                  .key = key,
                                  .context = 1}),
            ErrorCode::kOk);
  b.reset();
  a.deferred->AddToCounter(trigger, 1);
  const uint64_t deadline_ns = MonotonicNs() + 100'000'000;
  while (MonotonicNs() < deadline_ns && a.recorder.ends.empty()) {
    a.Poll();
    sched_yield();
  }
  a.deferred->CloseCounter(trigger);
  a.deferred->CloseCounter(sent);
  a.Poll();
  ASSERT_EQ(a.recorder.ends[1].size(), 1U);
  EXPECT_NE(a.recorder.ends[1][0], ErrorCode::kOk);
  EXPECT_EQ(a.deferred->in_use(), 0U);
}

// One firing of `sockets` stops after about 2,520 operations; being polled, it goes on.
TEST(OfiDeferredTest, FiringOfThousandsIsPushedOn) {
  constexpr uint32_t kWrites = 4000;
  DeferredPair pair(kWrites + 1);
  MatchedPair matched(pair, kWrites, /*ready=*/true);
  Fill(matched.source.get(), 3);
  for (uint32_t i = 0; i < kWrites; i++) {
    ASSERT_EQ(pair.a.deferred->ArmWrite(matched.Write(1, /*context=*/i, i, 8)), ErrorCode::kOk)
        << i;
  }
  matched.StartSend();
  ASSERT_TRUE(pair.PollUntil([&] { return pair.a.deferred->in_use() == 0; }));
  EXPECT_EQ(pair.a.deferred->statistics().done, kWrites);
  EXPECT_GT(pair.a.deferred->statistics().resumed, 0U);
  EXPECT_EQ(pair.b.deferred->ReadCounter(matched.arrived), kWrites);
  EXPECT_EQ(matched.sink->words, matched.source->words);
}

// A transport may go while operations are armed, fired or abandoned.
TEST(OfiDeferredTest, TransportEndsWithWorkArmed) {
  auto pair = std::make_unique<DeferredPair>();
  MatchedPair matched(*pair, 1 << 15, /*ready=*/true);
  matched.ArmSend(1);
  matched.ArmSend(2);
  matched.ArmReceive(1);
  matched.StartSend();
  pair.reset();  // before the memory, which its NICs read and write until then
}

}  // namespace
}  // namespace ferry::transport
