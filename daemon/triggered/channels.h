// The software engine for matched pairs between nodes: watches the doorbells that ranks, or their
// streams, write, and moves the messages (docs/stream_triggered.md, docs/protocol.md).
//
// A send's end is a program of one operation (engine/program): started by its doorbell, triggered,
// unless it is ready, by the receiver's being clear to send. A short message goes as a packet with
// its data, a long one is written into the receiver's window by RMA and then announced. A
// receive's end tells the sender of each start, and counts what has come.
//
// What a rank writes is believed for its own harm only: the doorbell may grow by one for each
// message that is done; a rank that breaks this loses the channel.
//
// Calling thread: the progress thread. Does not block; only Add allocates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/status.h"
#include "daemon/progress/directory.h"
#include "daemon/progress/outbound.h"
#include "daemon/progress/wire.h"
#include "daemon/registration/registrations.h"
#include "daemon/triggered/channel_plan.h"
#include "daemon/triggered/write_windows.h"
#include "engine/program/program_engine.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class Channels final : private engine::Executor {
 public:
  // All outlive this. An operation that takes longer than `timeout_ns` from the moment that its
  // trigger was seen reached fails.
  Channels(transport::Transport& transport, Outbound& outbound, Registrar& registrar,
           Registrations& registrations, uint64_t timeout_ns);
  ~Channels() override;

  // The rank is served here.
  Status Add(ServedRank& rank, const ChannelPlan& plan);
  void End(const ChannelName& name, uint64_t rounds, ErrorCode error);
  // Its own rank takes it back. Of its memory, only a message that has failed may still be read.
  void Remove(const ChannelName& name);
  // Those of a rank. True once nothing touches their memory any more: call again until then.
  bool TryRemoveOf(const ServedRank& rank);
  // Before a region goes: what has its window there fails. True once nothing uses it.
  bool TryRelease(const ServedRegion& region);
  // The way to that rank is gone.
  void FailTo(const Job& job, uint32_t peer, ErrorCode error);

  // What the other daemon says.
  void OnWindow(Job& job, const PacketHeader& header, const WireChannelWindow& window);
  void OnClear(Job& job, const PacketHeader& header, const WireChannel& clear);
  // A message came: with its data, or it is in the window already.
  void OnMessage(Job& job, const PacketHeader& header, const WireChannel& message,
                 std::span<const std::byte> data);
  void OnEnd(Job& job, const PacketHeader& header, const WireChannelEnd& end);
  void OnWriteComplete(uint64_t context, ErrorCode code);

  // Once in a turn. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);
  // Whether a rank may write a doorbell at any moment, which nothing else tells of.
  bool is_armed() const;
  bool empty() const { return channels_.empty(); }
  // When to advance even if nothing happens; UINT64_MAX: never.
  uint64_t next_ns() const { return std::min(engine_.next_deadline_ns(), windows_.next_ns()); }
  const engine::ProgramCounts& counts() const { return engine_.counts(); }

 private:
  struct Channel;
  // engine::Executor.
  ErrorCode Begin(const engine::Operation& operation, engine::Token token) override;
  void Renounce(const engine::Operation& /*operation*/, ErrorCode /*error*/) override {}
  void Abandon(const engine::Operation& operation, engine::Token token) override;

  Channel* Find(const ChannelName& name);
  Channel* FindFor(const Job& job, const PacketHeader& header, uint64_t number);
  Channel* FindFor(const Job& job, const PacketHeader& header, uint64_t number, bool is_send);
  bool TakeStarts(Channel& channel);
  bool OfferWindow(Channel& channel);
  ErrorCode Move(Channel& channel);
  ErrorCode SendData(Channel& channel);
  ErrorCode WriteWindow(Channel& channel);
  void Complete(Channel& channel, ErrorCode error);
  void Fail(Channel& channel, ErrorCode error);
  void FailBoth(Channel& channel, ErrorCode error);
  void TellEnd(const Channel& channel, ErrorCode error);
  void DropWindow(Channel& channel);
  bool TryForget(Channel& channel);
  static void Wake(const Channel& channel);

  transport::Transport& transport_;
  Outbound& outbound_;
  Registrations& registrations_;
  const uint64_t timeout_ns_;
  uint64_t now_ns_ = 0;
  WriteWindows windows_;
  engine::ProgramEngine engine_;
  std::unordered_map<uint64_t, std::unique_ptr<Channel>> channels_;  // by number
  std::vector<Channel*> moving_;  // begun, and waiting for a window, a registration or a slot
};

}  // namespace ferry::daemon
