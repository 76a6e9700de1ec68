#include "daemon/triggered/deferred_nics.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "transports/api/rail_choice.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRoundsAhead = 2;
// The cost of a message for a NIC beside its bytes, in bytes: short ones are shared out by number.
constexpr uint64_t kMessageCostBytes = 4096;

}  // namespace

DeferredNics::DeferredNics(transport::Transport& transport, Registrar& registrar,
                           NicChannelsOwner& owner, uint64_t timeout_ns, DeferredRules rules)
    : transport_(transport) {
  for (transport::Transport* rail : transport.Rails()) {
    Nic& nic = nics_.emplace_back();
    if (!NicChannels::Serves(*rail) || rules.most_entries == 0) {
      continue;
    }
    auto created = NicChannels::Create(
        *rail, registrar, owner,
        {.ahead = kRoundsAhead, .timeout_ns = timeout_ns, .most_entries = rules.most_entries});
    if (created.ok()) {
      nic.channels = std::move(*created);
    } else {
      spdlog::warn("the deferred work of NIC {} is not used: {}", rail->Describe().domain,
                   created.status().message());
    }
  }
}

bool DeferredNics::any() const {
  return std::ranges::any_of(nics_, [](const Nic& nic) { return nic.channels != nullptr; });
}

const DeferredPool* DeferredNics::pool(size_t nic) const {
  return nics_[nic].channels != nullptr ? &nics_[nic].channels->pool() : nullptr;
}

// ---- Which NIC

void DeferredNics::Expect(transport::PeerId peer) {
  for (size_t nic = 0; nic < nics_.size(); ++nic) {
    (void)transport_.Reaches(peer, nic);
  }
}

ErrorCode DeferredNics::Choose(transport::PeerId peer, uint32_t nearest, uint32_t* nic) {
  std::vector<transport::RailState> states(nics_.size());
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (nics_[i].channels == nullptr) {
      continue;
    }
    const ErrorCode code = transport_.Reaches(peer, i);
    if (code == ErrorCode::kWouldBlock) {
      return code;
    }
    states[i] = {.open = code == ErrorCode::kOk, .load_bytes = nics_[i].load_bytes};
  }
  const std::optional<size_t> chosen = transport::ChooseRail(states, nearest);
  *nic = static_cast<uint32_t>(chosen.value_or(0));
  return chosen ? ErrorCode::kOk : ErrorCode::kNotFound;
}

// ---- The channels of each

Status DeferredNics::Open(uint32_t index, const NicEnd& end, uint32_t weight) {
  if (index >= nics_.size() || nics_[index].channels == nullptr) {
    return {ErrorCode::kNotFound,
            "DeferredNics::Open: NIC " + std::to_string(index) + " has no deferred work here"};
  }
  Nic& nic = nics_[index];
  NicEnd on_nic = end;
  on_nic.peer = transport_.PeerOn(end.peer, index);
  if (on_nic.peer == transport::kUnknownPeer) {
    return {ErrorCode::kNotFound,
            "DeferredNics::Open: the other node has no NIC " + std::to_string(index)};
  }
  FERRY_RETURN_IF_ERROR(nic.channels->Open(on_nic));
  if (++nic.jobs[end.job] == 1) {
    nic.channels->pool().Join(end.job, weight);
  }
  const Place place{index, end.peer, end.job, end.bytes + kMessageCostBytes};
  nic.load_bytes += place.load_bytes;
  places_.emplace(end.channel, place);
  return Status();
}

NicChannels* DeferredNics::ChannelsOf(uint64_t channel) {
  const auto found = places_.find(channel);
  return found == places_.end() ? nullptr : nics_[found->second.nic].channels.get();
}

void DeferredNics::Connect(uint64_t channel, NicPlace other) {
  if (NicChannels* channels = ChannelsOf(channel); channels != nullptr) {
    channels->Connect(channel, other);
  }
}

void DeferredNics::Watch(uint64_t channel) {
  if (NicChannels* channels = ChannelsOf(channel); channels != nullptr) {
    channels->Watch(channel);
  }
}

// Pairs that are made anew should not go the same way again before the NIC is known to be well.
void DeferredNics::Fail(uint64_t channel, ErrorCode error) {
  const auto found = places_.find(channel);
  if (found == places_.end()) {
    return;
  }
  const Place& place = found->second;
  if (error == ErrorCode::kNodeUnreachable || error == ErrorCode::kTimeout) {
    transport_.Doubt(place.peer, place.nic);
  }
  nics_[place.nic].channels->Fail(channel, error);
}

void DeferredNics::Close(uint64_t channel) {
  const auto found = places_.find(channel);
  if (found == places_.end()) {
    return;
  }
  const Place place = found->second;
  places_.erase(found);
  Nic& nic = nics_[place.nic];
  nic.load_bytes -= place.load_bytes;
  nic.channels->Close(channel);
  if (--nic.jobs[place.job] == 0) {
    nic.channels->pool().Leave(place.job);
    nic.jobs.erase(place.job);
  }
}

void DeferredNics::OnWriteEnd(uint64_t context, ErrorCode code) {
  if (NicChannels* channels = ChannelsOf(NicChannelOf(context)); channels != nullptr) {
    channels->OnWriteEnd(context, code);
  }
}

uint32_t DeferredNics::Advance(uint64_t now_ns) {
  uint32_t done = 0;
  for (const Nic& nic : nics_) {
    done += nic.channels != nullptr ? nic.channels->Advance(now_ns) : 0;
  }
  return done;
}

bool DeferredNics::is_armed() const {
  return std::ranges::any_of(
      nics_, [](const Nic& nic) { return nic.channels != nullptr && nic.channels->is_armed(); });
}

uint64_t DeferredNics::NextNs(uint64_t now_ns) const {
  uint64_t next_ns = UINT64_MAX;
  for (const Nic& nic : nics_) {
    next_ns = nic.channels != nullptr ? std::min(next_ns, nic.channels->NextNs(now_ns)) : next_ns;
  }
  return next_ns;
}

}  // namespace ferry::daemon
