// Deferred work on Slingshot, as far as its provider documents it: doorbells, and the
// number of entries. The NIC is a fake (fake_cxi.h).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/triggered/deferred_nics.h"
#include "shm/atomic.h"
#include "tests/transports/ofi/fake_cxi.h"
#include "transports/ofi/cxi_extension.h"
#include "transports/ofi/memory.h"
#include "transports/ofi/ofi_deferred.h"

namespace ferry::transport {
namespace {

struct Ends final : DeferredSink {
  void OnDeferredEnd(uint64_t context, ErrorCode code) override { all[context].push_back(code); }
  std::map<uint64_t, std::vector<ErrorCode>> all;
};

class CxiDeferredTest : public testing::Test, private DeferredPeers {
 protected:
  CxiDeferredTest() : endpoint_(nic_.Open()), regions_(endpoint_.get()) {
    peer_.address = FakeCxi::kSelf;
  }
  ~CxiDeferredTest() override {
    regions_.Clear();
    if (deferred_ != nullptr) {
      deferred_->Deregister();
    }
  }

  Status Create(uint32_t entries = 0) {
    auto created = OfiDeferred::Create(*endpoint_, entries, &regions_, this);
    FERRY_RETURN_IF_ERROR(created.status());
    deferred_ = std::move(*created);
    return Status();
  }
  // As Create, with the word to which operations add.
  void CreateWithWord(uint32_t entries = 0) {
    ASSERT_TRUE(Create(entries).ok());
    word_ = Region(words_);
  }
  NicCounter Open() { return *deferred_->OpenCounter(); }
  MemoryRegion Adopt(StatusOr<std::unique_ptr<Registration>> prepared) {
    EXPECT_TRUE(prepared.ok()) << prepared.status().ToString();
    return *regions_.Adopt(std::move(*prepared));
  }
  MemoryRegion Region(std::vector<uint64_t>& words) {
    return Adopt(regions_.Prepare(words.data(), words.size() * sizeof(uint64_t),
                                  Access::kRemoteWrite, nullptr));
  }
  MemoryRegion Target(std::vector<uint64_t>& words, NicCounter counter) {
    return Adopt(deferred_->PrepareTarget(words.data(), words.size() * sizeof(uint64_t), counter,
                                          /*device=*/std::nullopt));
  }
  ErrorCode Arm(NicCounter trigger, uint64_t threshold, NicCounter done, const MemoryRegion& word,
                uint64_t context = 0) {
    return deferred_->ArmIncrement({.trigger = {trigger, threshold},
                                    .done = done,
                                    .remote_address = word.remote_base,
                                    .key = word.key,
                                    .context = context});
  }
  // Lets the NIC work and looks for ends; a counter's value comes once it has been asked for.
  void Settle(int times = 3) {
    for (int i = 0; i < times; i++) {
      nic_.Work([this](void* context) { deferred_->OnError(context, ErrorCode::kInvalidBuffer); });
      now_ns_ += 10'000'000;
      deferred_->Poll(ends_, now_ns_);
    }
  }

  Peer* Usable(PeerId, ErrorCode*) override { return &peer_; }
  void ForgetIfIdle(Peer*) override {}

  FakeCxi nic_;
  std::unique_ptr<Endpoint> endpoint_;
  RegionTable regions_;
  std::unique_ptr<OfiDeferred> deferred_;
  Peer peer_;
  Ends ends_;
  std::vector<uint64_t> words_ = {0};
  MemoryRegion word_;
  uint64_t now_ns_ = 1;
};

TEST_F(CxiDeferredTest, AsksTheNicForItsEntries) {
  ASSERT_TRUE(Create().ok());
  EXPECT_EQ(deferred_->entries(), 504U);
  nic_.domain_ops_version = "dom_ops_v5";
  ASSERT_TRUE(Create(16).ok());
  EXPECT_EQ(deferred_->entries(), 16U);
  const Status status = Create(505);
  EXPECT_EQ(status.code(), ErrorCode::kLimitExceeded);
  EXPECT_NE(status.message().find("505"), std::string::npos);
  EXPECT_NE(status.message().find("cxi0 has 504"), std::string::npos);
}

TEST_F(CxiDeferredTest, OlderProvidersThatDoNotTellHaveTheUsualEntries) {
  nic_.domain_ops_version = "dom_ops_v3";
  ASSERT_TRUE(Create().ok());
  EXPECT_EQ(deferred_->entries(), kCxiEntries);
}

TEST_F(CxiDeferredTest, NeverGoesOverTheLimit) {
  ASSERT_NO_FATAL_FAILURE(CreateWithWord());
  const NicCounter trigger = Open();
  const NicCounter done = Open();
  uint64_t armed = 0;
  while (Arm(trigger, armed + 1, done, word_, armed) == ErrorCode::kOk) {
    armed++;
  }
  EXPECT_EQ(armed, 504U);
  EXPECT_FALSE(nic_.overrun());
  deferred_->AddToCounter(trigger, 4);
  Settle();
  EXPECT_EQ(words_[0], 4U);
  EXPECT_EQ(deferred_->in_use(), 500U);
  for (int i = 0; i < 4; i++) {
    EXPECT_EQ(Arm(trigger, ++armed, done, word_), ErrorCode::kOk);
  }
  EXPECT_EQ(Arm(trigger, armed + 1, done, word_), ErrorCode::kWouldBlock);
  EXPECT_FALSE(nic_.overrun());
}

// As of ready sends that one doorbell starts.
TEST_F(CxiDeferredTest, OneAdditionFiresAllThatWaitForACounter) {
  constexpr size_t kOperations = 250;
  ASSERT_TRUE(Create().ok());
  std::vector<uint64_t> words(kOperations);
  const MemoryRegion region = Region(words);
  shm::CounterLayout doorbell{};
  daemon::SharedTrigger trigger(*deferred_, &doorbell);
  for (size_t i = 0; i < kOperations; ++i) {
    MemoryRegion word = region;
    word.remote_base += i * sizeof(uint64_t);
    const NicCounter done = Open();
    for (uint64_t round = 1; round <= 2; ++round) {  // the second one is armed ahead
      ASSERT_EQ(Arm(*trigger.Counter(), round, done, word, i), ErrorCode::kOk);
      trigger.NoteArmed();
    }
  }
  EXPECT_EQ(deferred_->in_use(), 2 * kOperations);
  EXPECT_EQ(deferred_->statistics().counters, kOperations + 1);
  shm::StoreRelease(doorbell.value, uint64_t{1});
  trigger.Ring();
  trigger.Ring();
  Settle();
  EXPECT_EQ(words, std::vector<uint64_t>(kOperations, 1));
  EXPECT_EQ(deferred_->statistics().rings, 1U);
  EXPECT_EQ(deferred_->in_use(), kOperations);
  EXPECT_EQ(ends_.all.size(), kOperations);
  EXPECT_FALSE(nic_.overrun());
}

// A NIC discards an operation with the counter that it waits for, not before: until then nothing
// else may have its entry.
TEST_F(CxiDeferredTest, WhatIsDiscardedKeepsItsEntryUntilTheNicLetsGo) {
  ASSERT_NO_FATAL_FAILURE(CreateWithWord(3));
  const NicCounter trigger = Open();
  const NicCounter first = Open();
  EXPECT_EQ(Arm(trigger, 1, first, word_), ErrorCode::kOk);
  EXPECT_EQ(Arm(first, 1, Open(), word_), ErrorCode::kOk);
  deferred_->CloseCounter(first);  // to which the first operation reports
  Settle();
  EXPECT_EQ(deferred_->in_use(), 2U);
  EXPECT_EQ(Arm(trigger, 1, Open(), word_), ErrorCode::kOk);
  EXPECT_EQ(Arm(trigger, 1, Open(), word_), ErrorCode::kWouldBlock);
  EXPECT_FALSE(nic_.overrun());
  deferred_->CloseCounter(trigger);
  Settle();
  EXPECT_EQ(deferred_->in_use(), 0U);
  EXPECT_EQ(words_[0], 0U);
}

TEST_F(CxiDeferredTest, AFailureIsThatOfItsOperation) {
  ASSERT_NO_FATAL_FAILURE(CreateWithWord());
  MemoryRegion wrong = word_;
  wrong.key++;
  const NicCounter trigger = Open();
  const NicCounter done = Open();
  ASSERT_EQ(Arm(trigger, 1, done, word_, 1), ErrorCode::kOk);
  ASSERT_EQ(Arm(trigger, 2, done, wrong, 2), ErrorCode::kOk);
  deferred_->AddToCounter(trigger, 2);
  Settle();
  EXPECT_EQ(ends_.all[1], std::vector{ErrorCode::kOk});
  EXPECT_EQ(ends_.all[2], std::vector{ErrorCode::kInvalidBuffer});
  EXPECT_EQ(deferred_->in_use(), 0U);
}

// A store of a GPU fires a write; its end fires the addition to a word that the GPU polls. At the
// receiver the write is counted and fires the addition there.
TEST_F(CxiDeferredTest, DoorbellFiresTheWholeChainWithoutAnyCall) {
  ASSERT_TRUE(Create().ok());
  std::vector<uint64_t> source = {11, 22, 33};
  std::vector<uint64_t> sink(3);
  std::vector<uint64_t> send_word(1);
  std::vector<uint64_t> receive_word(1);
  const NicCounter trigger = Open();
  const NicCounter sent = Open();
  const NicCounter arrived = Open();
  const MemoryRegion from = Region(source);
  const MemoryRegion to = Target(sink, arrived);
  ASSERT_EQ(deferred_->ArmWrite({.trigger = {trigger, 1},
                                 .done = sent,
                                 .local = source.data(),
                                 .region = from.handle,
                                 .bytes = 24,
                                 .remote_address = to.remote_base,
                                 .key = to.key}),
            ErrorCode::kOk);
  ASSERT_EQ(Arm(sent, 1, Open(), Region(send_word)), ErrorCode::kOk);
  ASSERT_EQ(Arm(arrived, 1, Open(), Region(receive_word)), ErrorCode::kOk);
  nic_.Work();
  EXPECT_EQ(receive_word[0], 0U);

  const CounterDoorbell doorbell = deferred_->Doorbell(trigger);
  ASSERT_NE(doorbell.add, nullptr);
  EXPECT_EQ(reinterpret_cast<std::byte*>(doorbell.add_errors) -
                reinterpret_cast<std::byte*>(doorbell.add),
            64);
  EXPECT_EQ(
      reinterpret_cast<std::byte*>(doorbell.reset_errors) - static_cast<std::byte*>(doorbell.page),
      192);
  *doorbell.add = 1;
  nic_.Work();
  EXPECT_EQ(sink, source);
  EXPECT_EQ(send_word[0], 1U);
  EXPECT_EQ(receive_word[0], 1U);
  Settle();
  EXPECT_EQ(deferred_->in_use(), 0U);
  EXPECT_EQ(deferred_->ReadCounter(trigger), 0U) << "as it was last asked for";
  nic_.Work();
  EXPECT_EQ(deferred_->ReadCounter(trigger), 1U);
  *doorbell.reset = 0;
  nic_.Work();
  EXPECT_EQ(deferred_->ReadCounter(trigger), 0U);
}

// The memory of a write that never ends is free again after a while; its slot is not.
TEST_F(CxiDeferredTest, LostWriteLetsGoOfItsMemoryInTheEnd) {
  ASSERT_NO_FATAL_FAILURE(CreateWithWord());
  std::vector<uint64_t> source(1);
  const MemoryRegion from = Region(source);
  const NicCounter trigger = Open();
  const NicCounter sent = Open();
  ASSERT_EQ(deferred_->ArmWrite({.trigger = {trigger, 1},
                                 .done = sent,
                                 .local = source.data(),
                                 .region = from.handle,
                                 .bytes = 8,
                                 .remote_address = word_.remote_base,
                                 .key = word_.key,
                                 .context = 3}),
            ErrorCode::kOk);
  nic_.loses = true;
  deferred_->AddToCounter(trigger, 1);
  Settle();
  EXPECT_EQ(deferred_->in_use(), 1U) << "the deadline is the caller's";
  deferred_->CloseCounter(trigger);
  deferred_->CloseCounter(sent);
  Settle();
  EXPECT_EQ(ends_.all[3], std::vector{ErrorCode::kCancelled});
  EXPECT_EQ(deferred_->in_use(), 0U);
  EXPECT_EQ(regions_.Release(from.handle).status().code(), ErrorCode::kWouldBlock);
  now_ns_ += 31'000'000'000;
  Settle();
  EXPECT_TRUE(regions_.Release(from.handle).ok());
  EXPECT_EQ(deferred_->statistics().abandoned, 1U);
}

TEST_F(CxiDeferredTest, ClosedCountersLeaveTheNic) {
  ASSERT_NO_FATAL_FAILURE(CreateWithWord());
  std::vector<uint64_t> sink(1);
  const NicCounter trigger = Open();
  const NicCounter done = Open();
  const MemoryRegion target = Target(sink, trigger);
  ASSERT_EQ(Arm(trigger, 1, done, word_, 5), ErrorCode::kOk);
  deferred_->CloseCounter(trigger);
  deferred_->CloseCounter(done);
  Settle();
  EXPECT_EQ(nic_.open_counters(), 2U) << "a region still counts on the first";
  EXPECT_EQ(ends_.all[5], std::vector{ErrorCode::kCancelled});
  EXPECT_EQ(deferred_->statistics().abandoned, 1U);
  ASSERT_TRUE(regions_.Release(target.handle).ok());
  Settle();
  EXPECT_EQ(nic_.open_counters(), 0U);
  EXPECT_EQ(nic_.queued(), 0U);
  EXPECT_EQ(deferred_->statistics().abandoned, 0U);
  EXPECT_EQ(deferred_->NextPollNs(0), UINT64_MAX);
}

}  // namespace
}  // namespace ferry::transport
