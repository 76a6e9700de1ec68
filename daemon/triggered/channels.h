// The software engine for matched pairs between nodes: watches the doorbells that ranks, or their
// streams, write, and moves the messages (docs/stream_triggered.md, docs/protocol.md).
//
// A send moves when its doorbell has started it and, unless it is ready, the receiver is clear to
// send. A short message goes as a packet with its data, a long one is written into the receiver's
// window by RMA and then announced. A receive's end tells the sender of each start, and counts what
// has come.
//
// Where the NICs have deferred work, they move the messages of pairs without cells themselves: both
// daemons only set it up, and look at what could not be done there (deferred_nics.h).
//
// A wrong word of a rank can harm only that rank: the doorbell may grow by one for each message
// that is done; a rank that breaks this loses the channel.
//
// Calling thread: the progress thread. Does not block; only Add allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/status.h"
#include "daemon/plane/channel_plan.h"
#include "daemon/registration/registrations.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "daemon/triggered/deferred_nics.h"
#include "daemon/triggered/deferred_pool.h"
#include "daemon/triggered/nic_channels.h"
#include "daemon/triggered/write_windows.h"
#include "daemon/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class Channels final : private NicChannelsOwner {
 public:
  // All outlive this. A message that takes longer than `timeout_ns` from the moment that it may
  // move fails.
  Channels(transport::Transport& transport, Outbound& outbound, Registrar& registrar,
           Registrations& registrations, uint64_t timeout_ns, DeferredRules deferred_rules = {});
  ~Channels() override;

  // The rank is served here.
  Status Add(ServedRank& rank, const ChannelPlan& plan);
  void End(const ChannelName& name, uint64_t rounds, ErrorCode error);
  // Its own rank takes it back. Afterwards, only a message that has failed may still be read.
  void Remove(const ChannelName& name);
  // Removes those of a rank. True once nothing touches their memory any more: call again until
  // then.
  bool TryRemoveOf(const ServedRank& rank);
  // Before a region goes: what has its window there fails. True once nothing uses it.
  bool TryRelease(const ServedRegion& region);
  // A device starts the matched request of this rank whose end lies there: rings its doorbell.
  // *start: which start of it that is. kInvalidRequest: there is none that goes to another node, or
  // its rank has not armed it; else why it failed.
  ErrorCode StartByRing(ServedRank& rank, const shm::Location& end, uint64_t* start);
  // The way to that rank is gone.
  void FailTo(const Job& job, uint32_t peer, ErrorCode error);

  // Take the messages of the other daemon.
  void OnWindow(Job& job, const PacketHeader& header, const WireChannelWindow& window);
  void OnClear(Job& job, const PacketHeader& header, const WireChannel& clear);
  // A message came: with its data, or it is in the window already.
  void OnMessage(Job& job, const PacketHeader& header, const WireChannel& message,
                 std::span<const std::byte> data);
  void OnEnd(Job& job, const PacketHeader& header, const WireChannelEnd& end);
  void OnNic(Job& job, const PacketHeader& header, const WireChannelNic& nic);
  void OnWriteComplete(uint64_t context, ErrorCode code);
  // Ends an operation whose context has kNicContext.
  void OnNicWriteEnd(uint64_t context, ErrorCode code);

  // Once in a turn. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);
  // Whether a rank may write a doorbell at any moment, which nothing else tells of.
  bool is_armed() const;
  // Whether a rank has armed channels since the last Advance. Before a sleep: pairs with the rank,
  // which rings after it has said so.
  bool any_newly_armed() const;
  // The bytes of long messages that are on their way, from or to this node.
  uint64_t transfer_bytes() const { return transfer_bytes_; }
  bool empty() const { return channels_.empty(); }
  // When to advance even if nothing happens; UINT64_MAX: never.
  uint64_t next_ns() const;
  // The pool of one of Transport::Rails; null where it has no deferred work.
  const DeferredPool* deferred_pool(size_t nic) const { return nics_.pool(nic); }

 private:
  struct Channel;

  Channel* Find(const ChannelName& name);
  Channel* FindFor(const Job& job, const PacketHeader& header, uint64_t number);
  Channel* FindFor(const Job& job, const PacketHeader& header, uint64_t number, bool is_send);
  bool TakeStarts(Channel& channel);
  bool OfferWindow(Channel& channel);
  void MoveIfClear(Channel& channel);
  ErrorCode Move(Channel& channel);
  ErrorCode SendData(Channel& channel);
  ErrorCode WriteWindow(Channel& channel);
  void Complete(Channel& channel, ErrorCode error);
  void FailLate();
  void Fail(Channel& channel, ErrorCode error);
  void FailBoth(Channel& channel, ErrorCode error);
  void TellEnd(const Channel& channel, ErrorCode error);
  void DropWindow(Channel& channel);
  bool TryForget(Channel& channel);
  static void Wake(const Channel& channel);
  void Watch(Channel& channel);
  void NoteTransfer(Channel& channel);
  void WatchArmed();
  uint32_t Look(Channel& channel);
  static bool IsDue(const Channel& channel);

  // The NICs' part (channels_nic.cc).
  void OnNicOpen(uint64_t number, NicPlace place) override;
  void OnNicRounds(uint64_t number, uint64_t rounds) override;
  void OnNicFailed(uint64_t number, ErrorCode error, bool was_open) override;
  bool MayUseNic(const Channel& channel) const;
  void ExpectNic(const Channel& channel);
  bool DecideNic(Channel& channel);
  bool OpenNic(Channel& channel, uint32_t nic);
  void RefuseNic(Channel& channel);
  void DropNic(Channel& channel);
  void PostNic(const Channel& channel, const WireChannelNic& nic);

  transport::Transport& transport_;
  Outbound& outbound_;
  Registrations& registrations_;
  const uint64_t timeout_ns_;
  const DeferredRules deferred_rules_;
  uint64_t now_ns_ = 0;
  WriteWindows windows_;
  std::unordered_map<uint64_t, std::unique_ptr<Channel>> channels_;  // by number
  // The channels of each rank, and what SessionLayout::channels_armed was at the last look at all.
  struct OfRank {
    uint64_t armed_seen = 0;
    std::vector<Channel*> channels;
    std::map<std::pair<uint32_t, uint64_t>, Channel*> by_end;  // region and offset of their ends
  };
  std::map<ServedRank*, OfRank> by_rank_;
  std::vector<Channel*> watched_;  // may have to do something in this turn
  DeferredNics nics_;
  uint64_t transfer_bytes_ = 0;   // of the channels that are in_transfer
  std::vector<Channel*> moving_;  // begun, and waiting for a window, a registration or a slot
  uint64_t next_deadline_ns_ = UINT64_MAX;  // no message under way is late before
};

}  // namespace ferry::daemon
