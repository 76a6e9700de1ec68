// Channels whose messages the NICs move. The receiver's daemon proposes it, and which NIC, when the
// receive is first started, for then the other daemon surely knows the channel; until it has, or
// has said otherwise, nothing moves. If either NIC cannot, the software engine does it.
#include <utility>

#include "daemon/triggered/channels.h"
#include "daemon/triggered/channels_state.h"
#include "shm/counter.h"
#include "shm/counters.h"

namespace ferry::daemon {

// The same at both ends, but for whether this node's NICs can.
bool Channels::MayUseNic(const Channel& channel) const {
  return nics_.any() && !channel.has_cells();
}

// Its daemon will have to choose one.
void Channels::ExpectNic(const Channel& channel) {
  const Link* const link = channel.job->RouteTo(channel.plan.peer).link;
  if (!channel.plan.is_send && link != nullptr) {
    nics_.Expect(link->peer);
  }
}

// True if something was done.
bool Channels::DecideNic(Channel& channel) {
  if (channel.nic != Channel::Nic::kUndecided || channel.plan.is_send) {
    return false;
  }
  if (const ErrorCode code = channel.said.Refresh(/*is_idle=*/true); code != ErrorCode::kOk) {
    FailBoth(channel, code);
    return true;
  }
  if (channel.said.Made() == 0) {
    return false;
  }
  uint32_t nic = 0;
  const ErrorCode code = nics_.Choose(channel.job->RouteTo(channel.plan.peer).link->peer,
                                      channel.rank->nearest_rail, &nic);
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (code != ErrorCode::kOk || !OpenNic(channel, nic)) {
    channel.nic = Channel::Nic::kNo;
  }
  return true;
}

bool Channels::OpenNic(Channel& channel, uint32_t nic) {
  const ChannelPlan& plan = channel.plan;
  const Link& link = *channel.job->RouteTo(plan.peer).link;
  if (link.failure != ErrorCode::kOk) {
    return false;
  }
  NicEnd end;
  end.channel = channel.number();
  end.job = reinterpret_cast<uint64_t>(channel.job);
  end.is_send = plan.is_send;
  end.is_ready = plan.mode == shm::SendMode::kReady;
  end.peer = link.peer;
  end.bytes = plan.size_bytes;
  if (plan.size_bytes != 0) {
    end.memory = plan.window.address();
    end.memory_owner = plan.window.region;
  }
  end.starts = &channel.said;
  end.done = &channel.layout->done;
  end.words_owner = plan.end.region;
  if (!nics_.Open(nic, end, deferred_rules_.WeightOf(channel.job->plan.owner)).ok()) {
    return false;
  }
  channel.nic = Channel::Nic::kOpening;
  return true;
}

void Channels::DropNic(Channel& channel) {
  if (channel.nic != Channel::Nic::kOpening && channel.nic != Channel::Nic::kOn) {
    return;
  }
  channel.nic = Channel::Nic::kNo;
  Watch(channel);
  nics_.Close(channel.number());
}

void Channels::PostNic(const Channel& channel, const WireChannelNic& nic) {
  outbound_.Post(*channel.job, PacketKind::kChannelNic, channel.plan.name.rank, channel.plan.peer,
                 nic, now_ns_);
}

void Channels::RefuseNic(Channel& channel) {
  PostNic(channel, {channel.plan.peer_channel, 0, 0, /*refused=*/1, 0});
}

void Channels::OnNic(Job& job, const PacketHeader& header, const WireChannelNic& nic) {
  Channel* channel = FindFor(job, header, nic.channel);
  if (channel == nullptr) {
    return;
  }
  const NicPlace place{nic.address, nic.key};
  if (!channel->plan.is_send) {
    if (channel->nic == Channel::Nic::kOpening && nic.refused == 0) {
      channel->nic = Channel::Nic::kOn;
      nics_.Connect(channel->number(), place);
    } else if (channel->nic == Channel::Nic::kOpening) {
      DropNic(*channel);
      channel->window_told = channel->is_short();
    }
    return;
  }
  if (nic.refused != 0) {
    channel->nic = channel->nic == Channel::Nic::kUndecided ? Channel::Nic::kNo : channel->nic;
    return;
  }
  if (channel->nic == Channel::Nic::kOpening || channel->nic == Channel::Nic::kOn) {
    return;
  }
  if (channel->nic == Channel::Nic::kUndecided && OpenNic(*channel, nic.nic)) {
    nics_.Connect(channel->number(), place);
  } else {
    channel->nic = Channel::Nic::kNo;
    RefuseNic(*channel);
  }
}

void Channels::OnNicOpen(uint64_t number, NicPlace place) {
  Channel& channel = *channels_.at(number);
  if (channel.plan.is_send) {
    channel.nic = Channel::Nic::kOn;
  }
  PostNic(channel, {channel.plan.peer_channel, place.key, place.address, /*refused=*/0,
                    nics_.NicOf(number)});
}

void Channels::OnNicRounds(uint64_t number, uint64_t rounds) {
  Channel& channel = *channels_.at(number);
  if (channel.plan.is_send) {
    shm::Statistics(channel.rank->session->layout()->counters)
        .AddShared(shm::Statistic::kMatchedByNic, rounds - channel.rounds);
  }
  channel.starts = rounds;
  channel.rounds = rounds;
  Wake(channel);
  if (channel.rounds == channel.last_round) {
    Fail(channel, channel.last_error);
  }
}

void Channels::OnNicFailed(uint64_t number, ErrorCode error, bool was_open) {
  Channel& channel = *channels_.at(number);
  if (was_open) {
    return FailBoth(channel, error);
  }
  DropNic(channel);
  if (channel.plan.is_send) {
    RefuseNic(channel);
  }
}

void Channels::OnNicWriteEnd(uint64_t context, ErrorCode code) { nics_.OnWriteEnd(context, code); }

}  // namespace ferry::daemon
