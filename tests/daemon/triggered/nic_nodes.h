// Matched pairs of two nodes whose NICs (endpoints of `sockets`) move the messages: ranks only
// write doorbells and read done words in memory. The nodes tell each other by direct calls what
// daemons tell by packets.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "daemon/faults/faults.h"
#include "daemon/faults/faulty_transport.h"
#include "daemon/triggered/nic_mover.h"
#include "internode/registration/registrar.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/internode/core/gate_transport.h"
#include "tests/support/patience.h"
#include "transports/ofi/ofi_transport.h"
#include "transports/rails/rails_transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::daemon {

using tests::kPatienceNs;
inline constexpr DeferredPool::Job kJob = 9;

inline bool HasFailed(uint64_t word) { return word >= shm::kCounterFailure; }

inline std::shared_ptr<Region> MakeRegion(uint64_t bytes) {
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(base, MAP_FAILED);
  auto region = std::make_shared<Region>();
  region->mapping = shm::Mapping(static_cast<std::byte*>(base), bytes);
  return region;
}

struct NodeSettings {
  bool has_rails = false;  // may have several NICs: then the gate lets all pass
  std::vector<std::string> further_nics = {};
  uint32_t entries = 504;              // of each NIC
  uint32_t most_entries = UINT32_MAX;  // DeferredRules
  std::string fault = {};
  uint64_t timeout_ns = kPatienceNs;
};

// A node, with what a progress thread has.
class NicNode final : private PairKeeper,
                      private transport::DeferredSink,
                      private transport::CompletionSink {
 public:
  explicit NicNode(const NodeSettings& settings) : gate(std::make_shared<Gate>()) {
    transport::TransportOptions options;
    options.provider = "sockets";
    options.rails = settings.further_nics;
    options.deferred_entries = settings.entries;
    auto real = settings.has_rails
                    ? transport::CreateRailsTransport(options, transport::CreateOfiTransport)
                    : transport::CreateOfiTransport(options);
    EXPECT_TRUE(real.ok()) << real.status().ToString();
    transport_ = std::make_unique<GateTransport>(std::move(*real), gate, options.post_timeout_ns);
    if (!settings.fault.empty()) {
      faults_ = std::move(*Faults::Parse(settings.fault));
      transport_ = MakeFaultyTransport(std::move(transport_), *faults_, options.post_timeout_ns);
    }
    registrar_ = std::make_unique<progress::Registrar>(*transport_, [] {});
    DeferredRules rules;
    rules.most_entries = settings.most_entries;
    nics = std::make_unique<DeferredNics>(*transport_, *registrar_, settings.timeout_ns, rules);
  }
  ~NicNode() override {
    gate->PinAtOnce();
    registrar_.reset();
    leaving.clear();
    pairs.clear();
    nics.reset();
  }

  // False: there is no such NIC.
  bool Open(PairPlan plan, uint32_t nic) {
    DeferredNic* const found = nics->Find(nic, peer);
    if (found == nullptr) {
      return false;
    }
    auto pair = std::make_unique<Pair>(std::move(plan), /*its_rank=*/nullptr);
    pair->mover = std::make_unique<NicMover>(*pair, static_cast<PairKeeper&>(*this), *found, peer,
                                             kJob, /*weight=*/1);
    pairs[pair->number()] = std::move(pair);
    return true;
  }
  void Connect(uint64_t number, NicPlace place) {
    static_cast<NicMover*>(pairs.at(number)->mover.get())->Connect(place);
  }
  void Fail(uint64_t number, ErrorCode error) { OnBroken(*pairs.at(number), error); }
  void Close(uint64_t number) {
    const auto found = pairs.find(number);
    found->second->mover->Leave();
    leaving.push_back(std::move(found->second->mover));
    pairs.erase(found);
  }
  void Watch(uint64_t number) { Watch(*pairs.at(number)); }
  bool watches_any() const {
    return std::ranges::any_of(pairs, [](const auto& entry) { return entry.second->watched; });
  }

  uint32_t Poll(uint64_t now_ns = MonotonicNs()) {
    uint32_t events = registrar_->Collect();
    events += static_cast<uint32_t>(transport_->Poll(*this, 64, now_ns));
    events += nics->Poll(*this, now_ns);
    for (const auto& [number, pair] : pairs) {
      if (pair->watched) {
        events += pair->mover->Advance(now_ns);
        pair->watched = pair->mover->IsDue();
      }
      if (now_ns >= pair->deadline_ns) {
        OnBroken(*pair, pair->late_error);
      }
    }
    registrar_->Advance(now_ns);
    std::erase_if(leaving, [](const auto& mover) { return mover->TryEnd(); });
    return events;
  }

  transport::Transport& transport() { return *transport_; }
  transport::DeferredWork& deferred(size_t nic = 0) {
    return *transport_->Rails()[nic]->deferred_work();
  }
  const DeferredPool& pool(size_t nic = 0) const { return *nics->pool(nic); }
  DeferredPool::Counts counts(size_t nic = 0) const { return pool(nic).counts(); }

  const std::shared_ptr<Gate> gate;
  NicNode* other = nullptr;
  transport::PeerId peer{};
  std::unique_ptr<DeferredNics> nics;
  std::map<uint64_t, std::unique_ptr<Pair>> pairs;
  std::vector<std::unique_ptr<PairMover>> leaving;
  std::map<uint64_t, NicPlace> opened;
  std::map<uint64_t, ErrorCode> failed;
  std::vector<uint64_t> refused;

 private:
  void Watch(Pair& pair) override { pair.watched = true; }
  void SetDeadline(Pair& pair, uint64_t deadline_ns, ErrorCode error) override {
    pair.deadline_ns = deadline_ns;
    pair.late_error = error;
  }
  void OnRounds(Pair& pair, uint64_t rounds) override {
    pair.rounds = pair.seen = rounds;
    for (Pair* const follower : pair.followers) {
      Watch(*follower);
    }
  }
  void OnBroken(Pair& pair, ErrorCode error) override {
    if (pair.error == ErrorCode::kOk) {
      pair.error = error;
      pair.deadline_ns = UINT64_MAX;
      pair.mover->OnFailed();
      pair.done.Fail(error);
      failed[pair.number()] = error;
    }
  }
  void OnNicOpen(Pair& pair, NicPlace place) override {
    opened[pair.number()] = place;
    if (other != nullptr) {
      other->Connect(pair.number(), place);
    }
  }
  void OnNicRefused(Pair& pair) override {
    refused.push_back(pair.number());
    Close(pair.number());
  }
  void OnDeferredEnd(uint64_t context, ErrorCode code) override { OnComplete(context, code); }
  void OnComplete(uint64_t context, ErrorCode code) override {
    if (const auto found = pairs.find(PairOf(context)); found != pairs.end()) {
      found->second->mover->OnEnd(context, code);
    }
  }
  void OnReceive(transport::PeerId, std::span<const std::byte>) override {}

  std::unique_ptr<Faults> faults_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<progress::Registrar> registrar_;
};

// A rank's side of one request, `number` on its node.
struct Request {
  void Announce(uint64_t round) const {
    shm::StoreRelease(words->armed, round);
    node->Watch(number);
  }
  void Start(uint64_t round) const {
    Announce(round);
    shm::StoreRelease(words->start.value, round);
  }
  // Makes the doorbell there, of its heap, start it, too.
  void Share(uint64_t doorbell, uint64_t base = 0, uint64_t until = UINT64_MAX) const {
    words->shares = 1;
    words->shared_start = doorbell;
    words->shared_base = base;
    words->shared_until = until;
  }
  uint64_t Done() const { return shm::LoadAcquire(words->done.value); }
  ErrorCode error() const { return shm::Counter(&words->done).error(); }
  std::span<std::byte> data() const {
    return message != nullptr ? std::span(message->mapping.base(), bytes) : std::span<std::byte>();
  }
  Pair& pair() const { return *node->pairs.at(number); }

  NicNode* node = nullptr;
  uint64_t number = 0;
  shm::PairLayout* words = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<Region> message;  // null without bytes
};

// Two nodes, of which `a` sends and `b` receives, but for pairs that pass messages on.
class NicNodes {
 public:
  static constexpr size_t kMostPairs = 1024;
  static constexpr uint64_t kDoorbell = 0;  // in each heap

  explicit NicNodes(const NodeSettings& of_a = {}, const NodeSettings& of_b = {})
      : a(std::make_unique<NicNode>(of_a)), b(std::make_unique<NicNode>(of_b)) {
    a->peer = *a->transport().AddPeer(b->transport().Address());
    b->peer = *b->transport().AddPeer(a->transport().Address());
    a->other = b.get();
    b->other = a.get();
  }

  // A pair, with the next number, that is not open yet.
  void Make(uint64_t bytes) {
    const uint64_t number = sends.size() + 1;
    sends.push_back(MakeRequest(*a, number, send_heap_, bytes));
    receives.push_back(MakeRequest(*b, number, receive_heap_, bytes));
  }
  bool Open(const Request& request, bool is_send, bool is_ready, uint32_t nic = 0) const {
    PairPlan plan;
    plan.name.number = request.number;
    plan.is_send = is_send;
    plan.mode = is_ready ? shm::SendMode::kReady : shm::SendMode::kSynchronous;
    plan.size_bytes = request.bytes;
    plan.end = {HeapOf(request), OffsetOf(request.number)};
    plan.window = {request.message, 0};
    return request.node->Open(std::move(plan), nic);
  }
  void Add(uint64_t bytes, bool is_ready = false, uint32_t nic = 0) {
    Make(bytes);
    EXPECT_TRUE(Open(receives.back(), /*is_send=*/false, is_ready, nic));
    EXPECT_TRUE(Open(sends.back(), /*is_send=*/true, is_ready, nic));
  }
  // A pair from `b` to `a`, whose send follows receive `i` and passes its message on; not open yet.
  void MakeReturn(size_t i) {
    const uint64_t number = sends.size() + 1;
    sends.push_back(MakeRequest(*b, number, receive_heap_, receives[i].bytes));
    sends.back().message = receives[i].message;
    receives.push_back(MakeRequest(*a, number, send_heap_, receives[i].bytes));
  }
  // Both ends of that are open. As Pairs does once it is started: the send follows.
  void Follow(size_t send, size_t receive) {
    Pair& follower = sends[send].pair();
    Pair& followed = receives[receive].pair();
    follower.follows.push_back(&followed);
    followed.followers.push_back(&follower);
  }
  shm::CounterLayout& doorbell() { return DoorbellOf(send_heap_); }
  shm::CounterLayout& doorbell_of_b() { return DoorbellOf(receive_heap_); }

  void Fill(size_t i, uint64_t round) {
    std::byte value{static_cast<uint8_t>(round * 31 + i * 7)};
    for (std::byte& byte : sends[i].data()) {
      byte = value;
      value = static_cast<std::byte>(static_cast<uint8_t>(value) + 1);
    }
  }
  // A round of the pair, with another message.
  void Start(size_t i, uint64_t round) {
    Fill(i, round);
    receives[i].Start(round);
    sends[i].Start(round);
  }
  bool Arrived(size_t i) { return std::ranges::equal(sends[i].data(), receives[i].data()); }
  bool Done(size_t i, uint64_t round) {
    return sends[i].Done() >= round && receives[i].Done() >= round;
  }
  void ExpectArrives(size_t i, uint64_t round) {
    ASSERT_TRUE(PollUntil([&] { return Done(i, round); })) << "pair " << i << " round " << round;
    EXPECT_TRUE(Arrived(i)) << "pair " << i << " round " << round;
    EXPECT_EQ(sends[i].Done(), round);
    EXPECT_EQ(receives[i].Done(), round);
  }
  [[nodiscard]] bool PollUntil(const std::function<bool()>& condition) {
    const uint64_t give_up_ns = MonotonicNs() + kPatienceNs;
    while (!condition()) {
      if (a->Poll() + (b != nullptr ? b->Poll() : 0) == 0) {
        sched_yield();
      }
      if (MonotonicNs() > give_up_ns) {
        return false;
      }
    }
    return true;
  }
  // All ends are open and know each other.
  [[nodiscard]] bool Settle() {
    return PollUntil([&] {
      return std::ranges::all_of(sends, [&](const Request& send) {
        return a->opened.contains(send.number) && b->opened.contains(send.number);
      });
    });
  }

  std::unique_ptr<NicNode> a;
  std::unique_ptr<NicNode> b;
  std::vector<Request> sends;
  std::vector<Request> receives;

 private:
  static shm::CounterLayout& DoorbellOf(const std::shared_ptr<Region>& heap) {
    return *reinterpret_cast<shm::CounterLayout*>(heap->mapping.base() + kDoorbell);
  }
  static uint64_t OffsetOf(uint64_t number) {
    return sizeof(shm::CounterLayout) + (number - 1) * sizeof(shm::PairLayout);
  }
  static std::shared_ptr<Region> MakeHeap() { return MakeRegion(OffsetOf(kMostPairs + 1)); }
  const std::shared_ptr<Region>& HeapOf(const Request& request) const {
    return request.node == a.get() ? send_heap_ : receive_heap_;
  }
  static Request MakeRequest(NicNode& node, uint64_t number, const std::shared_ptr<Region>& heap,
                             uint64_t bytes) {
    return {.node = &node,
            .number = number,
            .words = reinterpret_cast<shm::PairLayout*>(heap->mapping.base() + OffsetOf(number)),
            .bytes = bytes,
            .message = bytes != 0 ? MakeRegion(bytes) : nullptr};
  }

  const std::shared_ptr<Region> send_heap_ = MakeHeap();
  const std::shared_ptr<Region> receive_heap_ = MakeHeap();
};

}  // namespace ferry::daemon
