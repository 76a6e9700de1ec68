// Channels whose messages the NICs move. The receiver's daemon proposes it when the receive is
// first started, for then the other daemon surely knows the channel; until it has, or has said
// otherwise, nothing moves. If either NIC cannot, the software engine does it.
#include <spdlog/spdlog.h>

#include <utility>

#include "daemon/triggered/channels.h"
#include "daemon/triggered/channels_state.h"
#include "shm/counter.h"
#include "shm/counters.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRoundsAhead = 2;

}  // namespace

void Channels::OpenNicChannels(Registrar& registrar) {
  if (!NicChannels::Serves(transport_) || deferred_rules_.most_entries == 0) {
    return;
  }
  auto created = NicChannels::Create(transport_, registrar, *this,
                                     {.ahead = kRoundsAhead,
                                      .timeout_ns = timeout_ns_,
                                      .most_entries = deferred_rules_.most_entries});
  if (created.ok()) {
    nic_ = std::move(*created);
  } else {
    spdlog::warn("the NIC's deferred work is not used: {}", created.status().message());
  }
}

// The same at both ends, but for `nic_`.
bool Channels::MayUseNic(const Channel& channel) const {
  return nic_ != nullptr && !channel.has_cells();
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
  if (!OpenNic(channel)) {
    channel.nic = Channel::Nic::kNo;
  }
  return true;
}

bool Channels::OpenNic(Channel& channel) {
  const ChannelPlan& plan = channel.plan;
  const Link& link = *channel.job->RouteTo(plan.peer).link;
  if (nic_ == nullptr || link.failure != ErrorCode::kOk) {
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
  if (!nic_->Open(end).ok()) {
    return false;
  }
  if (++nic_jobs_[channel.job] == 1) {
    nic_->pool().Join(end.job, deferred_rules_.WeightOf(channel.job->plan.owner));
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
  nic_->Close(channel.number());
  if (--nic_jobs_[channel.job] == 0) {
    nic_->pool().Leave(reinterpret_cast<uint64_t>(channel.job));
    nic_jobs_.erase(channel.job);
  }
}

void Channels::PostNic(const Channel& channel, NicPlace place, bool is_refused) {
  const WireChannelNic nic{channel.plan.peer_channel, place.key, place.address,
                           is_refused ? 1U : 0U, 0};
  outbound_.Post(*channel.job, PacketKind::kChannelNic, channel.plan.name.rank, channel.plan.peer,
                 nic, now_ns_);
}

void Channels::RefuseNic(Channel& channel) { PostNic(channel, {}, /*is_refused=*/true); }

void Channels::OnNic(Job& job, const PacketHeader& header, const WireChannelNic& nic) {
  Channel* channel = FindFor(job, header, nic.channel);
  if (channel == nullptr) {
    return;
  }
  const NicPlace place{nic.address, nic.key};
  if (!channel->plan.is_send) {
    if (channel->nic == Channel::Nic::kOpening && nic.refused == 0) {
      channel->nic = Channel::Nic::kOn;
      nic_->Connect(channel->number(), place);
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
  if (channel->nic == Channel::Nic::kUndecided && OpenNic(*channel)) {
    nic_->Connect(channel->number(), place);
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
  PostNic(channel, place, /*is_refused=*/false);
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

void Channels::OnNicWriteEnd(uint64_t context, ErrorCode code) {
  if (nic_ != nullptr) {
    nic_->OnWriteEnd(context, code);
  }
}

}  // namespace ferry::daemon
