#include "daemon/triggered/channels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/triggered/channels_state.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/counters.h"
#include "shm/pair_move.h"

namespace ferry::daemon {

using shm::SendMode;

Channels::Channels(transport::Transport& transport, Outbound& outbound, Registrar& registrar,
                   Registrations& registrations, uint64_t timeout_ns, DeferredRules deferred_rules)
    : transport_(transport),
      outbound_(outbound),
      registrations_(registrations),
      timeout_ns_(timeout_ns),
      deferred_rules_(std::move(deferred_rules)),
      windows_(registrar, timeout_ns),
      nics_(transport, registrar, *this, timeout_ns, deferred_rules_) {}

Channels::~Channels() = default;

// ---- Coming and going ---------------------------------------------------------------------------

Status Channels::Add(ServedRank& rank, const ChannelPlan& plan) {
  auto channel = std::make_unique<Channel>(rank, plan);
  if (!channel->is_short()) {
    const shm::Location window{plan.window.region->id, 0, plan.window.offset};
    channel->region = rank.FindRegion(window, plan.size_bytes);
    if (channel->region == nullptr) {
      return {ErrorCode::kInvalidBuffer, "the memory of a matched request is gone"};
    }
  }
  if (plan.is_send && channel->has_cells()) {
    channel->clear = plan.cell_count - 1;
  }
  if (MayUseNic(*channel)) {
    channel->nic = Channel::Nic::kUndecided;
    ExpectNic(*channel);
  }
  OfRank& mine = by_rank_[&rank];
  mine.channels.push_back(channel.get());
  mine.by_end[{plan.end.region->id, plan.end.offset}] = channel.get();
  Watch(*channel);
  channels_.emplace(plan.name.channel, std::move(channel));
  return {};
}

Channels::Channel* Channels::Find(const ChannelName& name) {
  const auto found = channels_.find(name.channel);
  if (found == channels_.end() || found->second->plan.name.rank != name.rank ||
      found->second->plan.name.job_id != name.job_id) {
    return nullptr;
  }
  return found->second.get();
}

// The channel of a packet; null unless it belongs to the pair that the packet names.
Channels::Channel* Channels::FindFor(const Job& job, const PacketHeader& header, uint64_t number) {
  const auto found = channels_.find(number);
  if (found == channels_.end()) {
    return nullptr;
  }
  Channel& channel = *found->second;
  const bool fits = channel.job == &job && channel.plan.name.rank == header.destination &&
                    channel.plan.peer == header.source && channel.error == ErrorCode::kOk;
  return fits ? &channel : nullptr;
}

Channels::Channel* Channels::FindFor(const Job& job, const PacketHeader& header, uint64_t number,
                                     bool is_send) {
  Channel* const channel = FindFor(job, header, number);
  return channel != nullptr && channel->plan.is_send == is_send ? channel : nullptr;
}

void Channels::End(const ChannelName& name, uint64_t rounds, ErrorCode error) {
  Channel* channel = Find(name);
  if (channel == nullptr || channel->error != ErrorCode::kOk) {
    return;
  }
  // A NIC hears of the end of a write after the receiver does.
  const bool may_lag = !channel->plan.is_send || channel->nic == Channel::Nic::kOn;
  if (may_lag && channel->rounds < rounds) {
    channel->last_round = rounds;
    channel->last_error = error;
  } else {
    Fail(*channel, error);
  }
}

void Channels::Fail(Channel& channel, ErrorCode error) {
  if (channel.error != ErrorCode::kOk) {
    return;
  }
  channel.error = error;
  channel.moving = false;  // nobody asks for its end any more
  NoteTransfer(channel);
  nics_.Fail(channel.number(), error);
  channel.done.Fail(error);
  Wake(channel);
}

// Fails both ends, for a reason of this side that the other one cannot know.
void Channels::FailBoth(Channel& channel, ErrorCode error) {
  if (channel.error == ErrorCode::kOk) {
    TellEnd(channel, error);
  }
  Fail(channel, error);
}

void Channels::TellEnd(const Channel& channel, ErrorCode error) {
  const WireChannelEnd end{channel.plan.peer_channel, static_cast<int32_t>(error), 0};
  outbound_.Post(*channel.job, PacketKind::kChannelEnd, channel.plan.name.rank, channel.plan.peer,
                 end, now_ns_);
}

void Channels::DropWindow(Channel& channel) {
  channel.claim.Drop();
  windows_.Close(std::exchange(channel.write_window, 0), now_ns_);
  channel.region = nullptr;
}

bool Channels::TryRelease(const ServedRegion& region) {
  bool all = true;
  for (const auto& [number, channel] : channels_) {
    if (channel->region == &region) {
      Fail(*channel, ErrorCode::kInvalidBuffer);
      if (channel->writing) {
        all = false;
      } else {
        DropWindow(*channel);
      }
    }
  }
  return all;
}

// True: nothing of it is left.
bool Channels::TryForget(Channel& channel) {
  Fail(channel, ErrorCode::kCancelled);
  if (channel.writing) {
    return false;
  }
  DropWindow(channel);
  DropNic(channel);
  std::erase(moving_, &channel);
  std::erase(watched_, &channel);
  const auto of_rank = by_rank_.find(channel.rank);
  std::erase(of_rank->second.channels, &channel);
  std::erase_if(of_rank->second.by_end, [&](const auto& end) { return end.second == &channel; });
  if (of_rank->second.channels.empty()) {
    by_rank_.erase(of_rank);
  }
  channels_.erase(channel.plan.name.channel);
  return true;
}

void Channels::Remove(const ChannelName& name) {
  if (Channel* channel = Find(name); channel != nullptr && !TryForget(*channel)) {
    channel->leaving = true;
  }
}

bool Channels::TryRemoveOf(const ServedRank& rank) {
  bool all = true;
  for (auto next = channels_.begin(); next != channels_.end();) {
    Channel& channel = *next->second;
    ++next;
    all &= channel.rank != &rank || TryForget(channel);
  }
  return all;
}

void Channels::FailTo(const Job& job, uint32_t peer, ErrorCode error) {
  for (const auto& [number, channel] : channels_) {
    if (channel->job == &job && channel->plan.peer == peer) {
      Fail(*channel, error);
    }
  }
}

// The rank, or its stream, after a change of `done`. Should the stream be missed, since not all
// such changes are sequentially consistent, it looks within a millisecond by itself.
void Channels::Wake(const Channel& channel) {
  channel.rank->delivery.wake().Publish();
  shm::WakeWaiting(*channel.layout);
}

// ---- What the other daemon says -----------------------------------------------------------------

void Channels::OnWindow(Job& job, const PacketHeader& header, const WireChannelWindow& window) {
  if (Channel* channel = FindFor(job, header, window.channel, true); channel != nullptr) {
    channel->window_key = window.key;
    channel->window_address = window.address;
    channel->window_known = true;
    channel->nic = channel->nic == Channel::Nic::kUndecided ? Channel::Nic::kNo : channel->nic;
  }
}

void Channels::OnClear(Job& job, const PacketHeader& header, const WireChannel& clear) {
  if (Channel* channel = FindFor(job, header, clear.channel, true); channel != nullptr) {
    ++channel->clear;
    MoveIfClear(*channel);
  }
}

void Channels::OnEnd(Job& job, const PacketHeader& header, const WireChannelEnd& end) {
  if (Channel* channel = FindFor(job, header, end.channel); channel != nullptr) {
    const auto error = static_cast<ErrorCode>(end.error);
    Fail(*channel, error == ErrorCode::kOk ? ErrorCode::kCorrupt : error);
  }
}

void Channels::OnMessage(Job& job, const PacketHeader& header, const WireChannel& message,
                         std::span<const std::byte> data) {
  Channel* channel = FindFor(job, header, message.channel, false);
  if (channel == nullptr) {
    return;
  }
  const ChannelPlan& plan = channel->plan;
  const bool is_announced = header.kind == static_cast<uint8_t>(PacketKind::kChannelArrived);
  if (message.round != channel->rounds + 1 || data.size() != (is_announced ? 0 : plan.size_bytes) ||
      is_announced == channel->is_short()) {
    return FailBoth(*channel, ErrorCode::kCorrupt);
  }
  if (!data.empty()) {
    std::byte* const to =
        channel->has_cells()
            ? plan.cells.address() + channel->rounds % plan.cell_count * plan.cell_bytes
            : plan.window.address();
    std::memcpy(to, data.data(), data.size());
  }
  ++channel->rounds;
  NoteTransfer(*channel);
  channel->done.Add(1);
  Wake(*channel);
  if (channel->rounds == channel->last_round) {
    Fail(*channel, channel->last_error);
  }
}

// ---- Moving messages ----------------------------------------------------------------------------

// Call it after a start of either end. Advance moves the message in this turn, or the next.
void Channels::MoveIfClear(Channel& channel) {
  const bool is_clear = channel.plan.mode == SendMode::kReady || channel.clear > channel.rounds;
  if (channel.moving || channel.starts <= channel.rounds || !is_clear) {
    return;
  }
  channel.moving = true;
  channel.deadline_ns = now_ns_ + timeout_ns_;
  next_deadline_ns_ = std::min(next_deadline_ns_, channel.deadline_ns);
  moving_.push_back(&channel);
}

void Channels::FailLate() {
  next_deadline_ns_ = UINT64_MAX;
  for (const auto& [number, channel] : channels_) {
    if (!channel->moving) {
      continue;
    }
    if (now_ns_ >= channel->deadline_ns) {
      FailBoth(*channel, ErrorCode::kTimeout);
    } else {
      next_deadline_ns_ = std::min(next_deadline_ns_, channel->deadline_ns);
    }
  }
}

// kOk: there is nothing to try again. Else kWouldBlock.
ErrorCode Channels::Move(Channel& channel) {
  const ErrorCode code = channel.is_short() ? SendData(channel) : WriteWindow(channel);
  if (code == ErrorCode::kWouldBlock) {
    return code;
  }
  if (code != ErrorCode::kOk || channel.is_short()) {
    Complete(channel, code);
  }
  return ErrorCode::kOk;
}

ErrorCode Channels::SendData(Channel& channel) {
  const ChannelPlan& plan = channel.plan;
  PacketHeader header{};
  header.kind = static_cast<uint8_t>(PacketKind::kChannelData);
  header.source = plan.name.rank;
  header.destination = plan.peer;
  const WireChannel words{plan.peer_channel, channel.rounds + 1};
  std::byte body[sizeof(words) + kPacketDataBytes];
  std::memcpy(body, &words, sizeof(words));
  if (plan.size_bytes != 0) {
    std::memcpy(body + sizeof(words), plan.window.address(), plan.size_bytes);
  }
  return outbound_.Send(*channel.job, header, {body, sizeof(words) + plan.size_bytes}, now_ns_);
}

ErrorCode Channels::WriteWindow(Channel& channel) {
  if (!channel.window_known) {
    return ErrorCode::kWouldBlock;
  }
  const ChannelPlan& plan = channel.plan;
  if (const ErrorCode code =
          registrations_.Hold(channel.region->memory, plan.window.offset, plan.size_bytes,
                              UseFor::kTransfer, now_ns_, &channel.claim);
      code != ErrorCode::kOk) {
    return code;
  }
  const Link& link = *channel.job->RouteTo(plan.peer).link;
  if (link.failure != ErrorCode::kOk) {
    return link.failure;
  }
  transport::RmaRequest write;
  write.peer = link.peer;
  write.local = plan.window.address();
  write.region = channel.claim.handle();
  write.remote_address = channel.window_address;
  write.key = channel.window_key;
  write.bytes = plan.size_bytes;
  write.context = reinterpret_cast<uint64_t>(&channel) | kChannelContext;
  write.rail = channel.rank->nearest_rail;
  const ErrorCode code = transport_.Write(write, transport::Placement::kRemote, now_ns_);
  if (code == ErrorCode::kOk) {
    channel.writing = true;
    NoteTransfer(channel);
    ++channel.region->users;
    ++channel.rank->operations;
  }
  return code;
}

void Channels::OnWriteComplete(uint64_t context, ErrorCode code) {
  Channel& channel = *reinterpret_cast<Channel*>(context & ~kChannelContext);
  channel.writing = false;
  NoteTransfer(channel);
  --channel.region->users;
  --channel.rank->operations;
  if (code == ErrorCode::kOk && channel.moving) {
    const WireChannel arrived{channel.plan.peer_channel, channel.rounds + 1};
    outbound_.Post(*channel.job, PacketKind::kChannelArrived, channel.plan.name.rank,
                   channel.plan.peer, arrived, now_ns_);
  }
  if (channel.leaving) {
    (void)TryForget(channel);
  } else {
    Complete(channel, code);
  }
}

void Channels::Complete(Channel& channel, ErrorCode error) {
  if (!channel.moving) {
    return;  // it has failed meanwhile
  }
  if (error != ErrorCode::kOk) {
    return FailBoth(channel, error);
  }
  channel.moving = false;
  ++channel.rounds;
  shm::Statistics(channel.rank->session->layout()->counters)
      .AddShared(shm::Statistic::kMatchedByDaemon);
  channel.done.Add(1);
  Wake(channel);
}

ErrorCode Channels::StartByRing(ServedRank& rank, const shm::Location& end, uint64_t* start) {
  const auto of_rank = by_rank_.find(&rank);
  if (of_rank == by_rank_.end()) {
    return ErrorCode::kInvalidRequest;
  }
  const auto found = of_rank->second.by_end.find({end.region, end.address});
  if (found == of_rank->second.by_end.end()) {
    return ErrorCode::kInvalidRequest;
  }
  Channel& channel = *found->second;
  if (channel.error != ErrorCode::kOk) {
    return channel.error;
  }
  *start = channel.said.Made() + 1;
  if (*start > shm::LoadAcquire(channel.layout->armed)) {
    return ErrorCode::kInvalidRequest;
  }
  shm::StoreRelease(channel.layout->start.value, *start);  // Pairs with TakeStarts.
  Watch(channel);
  return ErrorCode::kOk;
}

// ---- A turn -------------------------------------------------------------------------------------

// Whether the doorbell was written.
bool Channels::TakeStarts(Channel& channel) {
  if (const ErrorCode code = channel.said.Refresh(channel.starts <= channel.rounds);
      code != ErrorCode::kOk) {
    FailBoth(channel, code);
    return true;
  }
  const uint64_t value = channel.said.Made();
  if (value == channel.starts) {
    return false;
  }
  // Each start comes after the end of the round before. A receive whose messages are there already
  // (in cells, or of ready sends) may have been started several times since the last look.
  if (value < channel.starts || value > channel.rounds + 1) {
    FailBoth(channel, value >= shm::kCounterFailure ? ErrorCode::kCancelled : ErrorCode::kCorrupt);
    return true;
  }
  while (channel.starts < value) {
    ++channel.starts;
    if (channel.plan.is_send) {
      MoveIfClear(channel);
    } else if (channel.plan.mode != SendMode::kReady) {
      const WireChannel clear{channel.plan.peer_channel, channel.starts};
      outbound_.Post(*channel.job, PacketKind::kChannelClear, channel.plan.name.rank,
                     channel.plan.peer, clear, now_ns_);
    }
  }
  NoteTransfer(channel);
  return true;
}

// Tells the sender's daemon where to write. True: it was told now.
bool Channels::OfferWindow(Channel& channel) {
  const ChannelPlan& plan = channel.plan;
  if (channel.write_window == 0) {
    channel.write_window = windows_.Open(plan.window, plan.size_bytes);
  }
  transport::MemoryRegion remote;
  const ErrorCode code = windows_.Find(channel.write_window, &remote);
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (code != ErrorCode::kOk) {
    FailBoth(channel, code);
    return true;
  }
  const WireChannelWindow window{plan.peer_channel, remote.key, remote.remote_base};
  outbound_.Post(*channel.job, PacketKind::kChannelWindow, plan.name.rank, plan.peer, window,
                 now_ns_);
  channel.window_told = true;
  return true;
}

// Call it after a change of these conditions. The receiver's NIC may need turns for what is
// written.
void Channels::NoteTransfer(Channel& channel) {
  const bool receives = !channel.plan.is_send && !channel.is_short() &&
                        channel.error == ErrorCode::kOk && channel.starts > channel.rounds;
  const bool is_now = channel.writing || receives;
  if (std::exchange(channel.in_transfer, is_now) != is_now) {
    transfer_bytes_ += is_now ? channel.plan.size_bytes : -channel.plan.size_bytes;
  }
}

void Channels::Watch(Channel& channel) {
  if (!channel.watched) {
    channel.watched = true;
    watched_.push_back(&channel);
  }
}

// Ranks have thousands of channels, and arm a few.
void Channels::WatchArmed() {
  for (auto& [rank, mine] : by_rank_) {
    const uint64_t armed = shm::LoadAcquire(rank->session->layout()->channels_armed);
    if (armed == mine.armed_seen) {
      continue;
    }
    mine.armed_seen = armed;
    for (Channel* channel : mine.channels) {
      if (channel->is_armed()) {
        Watch(*channel);
      }
    }
  }
}

uint32_t Channels::Look(Channel& channel) {
  switch (channel.nic) {
    case Channel::Nic::kOpening:
    case Channel::Nic::kOn:
      nics_.Watch(channel.number());
      return 0;
    case Channel::Nic::kUndecided:
      return DecideNic(channel) ? 1 : 0;
    case Channel::Nic::kNo:
      break;
  }
  uint32_t done = TakeStarts(channel) ? 1 : 0;
  // Once the other daemon surely knows the channel: its rank has been told, or this one has.
  if (!channel.plan.is_send && !channel.window_told && channel.starts != 0) {
    if (!channel.is_short()) {
      done += OfferWindow(channel) ? 1 : 0;
    } else if (!channel.has_cells()) {
      RefuseNic(channel);  // its sender may wait for a word
      channel.window_told = true;
    }
  }
  return done;
}

// Whether the next turn has to look at it again.
bool Channels::IsDue(const Channel& channel) {
  if (channel.error != ErrorCode::kOk || channel.nic == Channel::Nic::kOpening ||
      channel.nic == Channel::Nic::kOn) {
    return false;  // NicChannels watches it
  }
  const bool offers = !channel.plan.is_send && !channel.window_told && channel.starts != 0;
  return channel.is_armed() || (offers && !channel.is_short());
}

uint32_t Channels::Advance(uint64_t now_ns) {
  now_ns_ = now_ns;
  uint32_t done = nics_.Advance(now_ns);
  if (channels_.empty()) {
    return done;
  }
  WatchArmed();
  size_t kept = 0;
  for (size_t i = 0; i < watched_.size(); ++i) {
    Channel& channel = *watched_[i];
    done += channel.error == ErrorCode::kOk ? Look(channel) : 0;
    channel.watched = IsDue(channel);
    if (channel.watched) {
      watched_[kept++] = &channel;
    }
  }
  watched_.resize(kept);
  if (now_ns >= next_deadline_ns_) {
    FailLate();
  }
  for (size_t i = 0; i < moving_.size();) {
    if (!moving_[i]->moving || Move(*moving_[i]) == ErrorCode::kOk) {
      moving_.erase(moving_.begin() + static_cast<ptrdiff_t>(i));
      ++done;
    } else {
      ++i;
    }
  }
  return done;
}

uint64_t Channels::next_ns() const { return std::min(next_deadline_ns_, nics_.NextNs(now_ns_)); }

bool Channels::is_armed() const {
  return nics_.is_armed() || any_newly_armed() ||
         std::any_of(watched_.begin(), watched_.end(), [](const Channel* channel) {
           // A send that waits for the receiver's word is told of it.
           const bool waits = channel->nic == Channel::Nic::kUndecided && channel->plan.is_send;
           return !waits && channel->is_armed();
         });
}

bool Channels::any_newly_armed() const {
  return std::any_of(by_rank_.begin(), by_rank_.end(), [](const auto& entry) {
    const auto& [rank, mine] = entry;
    return shm::Load(rank->session->layout()->channels_armed, std::memory_order_seq_cst) !=
           mine.armed_seen;
  });
}

}  // namespace ferry::daemon
