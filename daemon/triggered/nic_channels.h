// All ends of matched pairs whose messages one NIC moves (nic_channel.h): has their
// memory pinned, tells the other nodes where to write, rings doorbells that streams write in shared
// memory, and reports what has ended.
//
// An end is opened on both nodes. Once what the other NIC needs of it is pinned, the owner is told,
// tells the other daemon, and hands what that says to Connect; starts that were made meanwhile are
// not lost. An end that cannot be had (no counters left, memory that the NIC does not take) fails
// before it has moved anything: its owner may move its messages otherwise.
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "daemon/registration/registrar.h"
#include "daemon/triggered/deferred_pool.h"
#include "daemon/triggered/nic_channel.h"
#include "daemon/triggered/shared_trigger.h"
#include "daemon/triggered/starts.h"
#include "shm/layout/counter_layout.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

// Told from within Advance. May call Connect and Close.
class NicChannelsOwner {
 public:
  virtual ~NicChannelsOwner() = default;
  // The end is ready: the other one's daemon needs `place` (nothing, of a ready send's) to Connect.
  virtual void OnNicOpen(uint64_t channel, NicPlace place) = 0;
  // So many messages are complete, the done word says so, too. For ranks that sleep.
  virtual void OnNicRounds(uint64_t channel, uint64_t rounds) = 0;
  // `was_open`: OnNicOpen was called; the done word says that it failed.
  virtual void OnNicFailed(uint64_t channel, ErrorCode error, bool was_open) = 0;
};

struct NicEnd {
  uint64_t channel = 0;     // the owner's number for it, 1 to kMostNicChannelName
  DeferredPool::Job job{};  // that has joined pool()
  bool is_send = false;
  bool is_ready = false;
  transport::PeerId peer{};
  uint64_t bytes = 0;
  std::byte* memory = nullptr;                    // that is sent, or received into
  std::shared_ptr<const void> memory_owner = {};  // keeps it mapped
  Starts* starts = nullptr;                       // outlives the end: until Close
  shm::CounterLayout* done = nullptr;
  std::shared_ptr<const void> words_owner = {};  // keeps mapped what `starts` reads, and `done`
};

class NicChannels final : private PinSink, private transport::DeferredSink {
 public:
  struct Settings {
    uint32_t ahead = 2;  // rounds armed before the last one is over
    uint64_t timeout_ns = 0;
    uint32_t most_entries = UINT32_MAX;  // of those that the NIC has
  };

  // Whether the NIC can do it.
  static bool Serves(transport::Transport& transport) {
    return transport.deferred_work() != nullptr;
  }
  // For a NIC that it serves, `transport`: one of Transport::Rails. All outlive the result, after
  // which nobody collects from the registrar. Errors: those of RegisterMemory and AddPeer.
  static StatusOr<std::unique_ptr<NicChannels>> Create(transport::Transport& transport,
                                                       Registrar& registrar,
                                                       NicChannelsOwner& owner,
                                                       const Settings& settings);
  ~NicChannels() override;

  DeferredPool& pool() { return pool_; }
  const DeferredPool& pool() const { return pool_; }

  // A number that is in use is kAlreadyExists.
  Status Open(const NicEnd& end);
  // `other` comes from the other end's OnNicOpen.
  void Connect(uint64_t channel, NicPlace other);
  // Its rank has armed it: Advance looks at its doorbell until what was armed is done. Those
  // whose starts are not announced are always looked at.
  void Watch(uint64_t channel);
  // It moves nothing any more, its done word says so, and its owner hears no more of it.
  void Fail(uint64_t channel, ErrorCode error);
  // Its owner hears no more of it. Operations that the NIC has begun end by themselves; the memory
  // stays mapped until then.
  void Close(uint64_t channel);
  // The end of a write with that context, of a channel that is open.
  void OnWriteEnd(uint64_t context, ErrorCode code);

  // Once in a turn, after the Poll of the transport. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);
  // Whether a rank may write a doorbell at any moment, which nothing else tells of.
  bool is_armed() const;
  // When Advance is due at the latest.
  uint64_t NextNs(uint64_t now_ns) const;
  // Open ends, and those whose memory is still with the NIC.
  size_t size() const { return ends_.size() + leaving_.size(); }

 private:
  struct End;

  NicChannels(transport::Transport& transport, Registrar& registrar, NicChannelsOwner& owner,
              const Settings& settings);
  Status SetUp();

  void OnPinned(Pinning& pinning) override;
  void OnDeferredEnd(uint64_t context, ErrorCode code) override;

  End* Find(uint64_t channel);
  using PinFunction = decltype(Pinning::pin);
  void Pin(End& end, const std::shared_ptr<const void>& memory, PinFunction pin);
  void Pin(End& end, const std::shared_ptr<const void>& memory, void* base, uint64_t bytes,
           transport::Access access);
  void PinMemory(End& end);
  void PinTarget(End& end);
  ErrorCode Adopt(End& end, Pinning& pinning);
  ErrorCode OpenChannel(End& end);
  void Opened(End& end);
  void Fail(End& end, ErrorCode error);
  void Watch(End& end);
  static bool IsDue(const End& end);
  void TakeStarts(End& end);
  void Share(End& end);
  uint32_t Look(End& end, uint64_t now_ns);
  bool TryLeave(End& end);

  transport::Transport& transport_;
  transport::DeferredWork& deferred_;
  Registrar& registrar_;
  NicChannelsOwner& owner_;
  const Settings settings_;
  SharedTriggers triggers_;
  DeferredPool pool_;
  transport::PeerId self_{};
  alignas(8) uint64_t scratch_ = 0;
  transport::MemoryRegion scratch_region_;
  std::map<uint64_t, std::unique_ptr<End>> ends_;
  std::vector<End*> watched_;  // of ends_: may have to do something in this turn
  std::vector<std::unique_ptr<End>> leaving_;
};

}  // namespace ferry::daemon
