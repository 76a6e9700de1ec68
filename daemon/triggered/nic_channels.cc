#include "daemon/triggered/nic_channels.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "shm/counter.h"

namespace ferry::daemon {

struct NicChannels::End {
  enum class Step : uint8_t { kDoneWord, kMessage, kTarget };
  struct Pinned {
    transport::RegionHandle region{};
    std::shared_ptr<const void> memory;
  };

  explicit End(const NicEnd& its_plan) : plan(its_plan) {}

  const NicEnd plan;
  std::unique_ptr<NicChannel> channel;  // null until what it needs is pinned
  Step step = Step::kDoneWord;
  std::shared_ptr<Pinning> pinning;  // under way
  std::vector<Pinned> pinned;
  transport::MemoryRegion done_region;
  transport::RegionHandle message{};
  std::optional<NicPlace> other;
  bool is_open = false;  // the owner was told
  bool has_failed = false;
  bool watched = false;
  uint64_t rounds_told = 0;
  std::shared_ptr<SharedTrigger> trigger;  // of the doorbell that its starts share
  SharedDoorbell doorbell;
};

// ---- Coming and going

StatusOr<std::unique_ptr<NicChannels>> NicChannels::Create(transport::Transport& transport,
                                                           Registrar& registrar,
                                                           NicChannelsOwner& owner,
                                                           const Settings& settings) {
  std::unique_ptr<NicChannels> channels(new NicChannels(transport, registrar, owner, settings));
  FERRY_RETURN_IF_ERROR(channels->SetUp());
  return channels;
}

NicChannels::NicChannels(transport::Transport& transport, Registrar& registrar,
                         NicChannelsOwner& owner, const Settings& settings)
    : transport_(transport),
      deferred_(*transport.deferred_work()),
      registrar_(registrar),
      owner_(owner),
      settings_(settings),
      triggers_(deferred_),
      pool_(std::min(deferred_.entries(), settings.most_entries)) {}

NicChannels::~NicChannels() {
  ends_.clear();
  leaving_.clear();
  (void)transport_.DeregisterMemory(scratch_region_.handle);
}

Status NicChannels::SetUp() {
  StatusOr<transport::MemoryRegion> scratch =
      transport_.RegisterMemory(&scratch_, sizeof(scratch_), transport::Access::kLocal);
  FERRY_RETURN_IF_ERROR(scratch.status());
  scratch_region_ = *scratch;
  StatusOr<transport::PeerId> self = transport_.AddPeer(transport_.Address());
  FERRY_RETURN_IF_ERROR(self.status());
  self_ = *self;
  return Status();
}

Status NicChannels::Open(const NicEnd& plan) {
  const auto [place, is_new] = ends_.try_emplace(plan.channel, nullptr);
  if (!is_new) {
    return {ErrorCode::kAlreadyExists,
            "NicChannels::Open: channel " + std::to_string(plan.channel) + " is open"};
  }
  place->second = std::make_unique<End>(plan);
  End& end = *place->second;
  Pin(end, plan.words_owner, plan.done, sizeof(*plan.done), transport::Access::kRemoteWrite);
  return Status();
}

void NicChannels::Close(uint64_t channel) {
  const auto found = ends_.find(channel);
  if (found == ends_.end()) {
    return;
  }
  std::unique_ptr<End> end = std::move(found->second);
  end->trigger.reset();
  ends_.erase(found);
  std::erase(watched_, end.get());
  if (end->pinning != nullptr) {
    end->pinning->unwanted = true;
  } else if (end->channel != nullptr) {
    end->channel->Close();
  }
  leaving_.push_back(std::move(end));
}

// True: nothing of it is with the NIC, or will be. While its target is being pinned, its counters
// stay: the registrar binds them.
bool NicChannels::TryLeave(End& end) {
  if (end.pinning != nullptr) {
    return false;
  }
  if (end.channel != nullptr) {
    end.channel->Close();
    end.channel.reset();
  }
  // The done word at once, whatever the NIC still holds of the message: an increment that fires
  // late then hits nothing.
  std::erase_if(end.pinned, [this](End::Pinned& pinned) {
    auto released = transport_.ReleaseMemory(pinned.region);
    if (released.ok()) {
      registrar_.Unpin(std::move(*released), std::move(pinned.memory), nullptr);
    }
    return released.status().code() != ErrorCode::kWouldBlock;
  });
  return end.pinned.empty();
}

// Null also while it has no channel yet.
NicChannels::End* NicChannels::Find(uint64_t channel) {
  const auto found = ends_.find(channel);
  return found == ends_.end() || found->second->channel == nullptr ? nullptr : found->second.get();
}

// ---- Pinning: the done word, the message of a send, then what the other end writes to

// For this NIC, which may be one of several.
void NicChannels::Pin(End& end, const std::shared_ptr<const void>& memory, PinFunction pin) {
  auto pinning = std::make_shared<Pinning>();
  pinning->memory = memory;
  pinning->pin = std::move(pin);
  pinning->sink = this;
  pinning->context = &end;
  end.pinning = pinning;
  registrar_.Pin(std::move(pinning));
}

void NicChannels::Pin(End& end, const std::shared_ptr<const void>& memory, void* base,
                      uint64_t bytes, transport::Access access) {
  Pin(end, memory,
      [&nic = transport_, base, bytes, access] { return nic.PrepareMemory(base, bytes, access); });
}

void NicChannels::PinMemory(End& end) {
  end.step = End::Step::kMessage;
  Pin(end, end.plan.memory_owner, end.plan.memory, end.plan.bytes, transport::Access::kLocal);
}

void NicChannels::PinTarget(End& end) {
  end.step = End::Step::kTarget;
  Pin(end, end.plan.memory_owner,
      [channel = end.channel.get()] { return channel->PrepareTarget(); });
}

void NicChannels::OnPinned(Pinning& pinning) {
  End& end = *static_cast<End*>(pinning.context);
  const bool is_wanted = !pinning.unwanted;
  const std::shared_ptr<Pinning> keep = std::move(end.pinning);
  if (!is_wanted || end.has_failed) {
    return;  // TryLeave goes on
  }
  ErrorCode code = pinning.status.code();
  if (code == ErrorCode::kOk) {
    code = Adopt(end, pinning);
  }
  if (code == ErrorCode::kOk && end.step == End::Step::kDoneWord && end.plan.is_send &&
      end.plan.bytes > 0) {
    return PinMemory(end);
  }
  if (code == ErrorCode::kOk && end.channel == nullptr) {
    code = OpenChannel(end);
    if (code == ErrorCode::kOk && end.channel->has_target()) {
      return PinTarget(end);
    }
  }
  if (code != ErrorCode::kOk) {
    return Fail(end, code);
  }
  Opened(end);
}

ErrorCode NicChannels::Adopt(End& end, Pinning& pinning) {
  if (end.step == End::Step::kTarget) {
    return end.channel->AdoptTarget(std::move(pinning.registration)).code();
  }
  StatusOr<transport::MemoryRegion> region =
      transport_.AdoptMemory(std::move(pinning.registration));
  if (!region.ok()) {
    return region.status().code();
  }
  end.pinned.push_back({region->handle, pinning.memory});
  if (end.step == End::Step::kDoneWord) {
    end.done_region = *region;
  } else {
    end.message = region->handle;
  }
  return ErrorCode::kOk;
}

ErrorCode NicChannels::OpenChannel(End& end) {
  const NicEnd& plan = end.plan;
  StatusOr<std::unique_ptr<NicChannel>> opened =
      NicChannel::Open({.transport = transport_,
                        .deferred = deferred_,
                        .pool = pool_,
                        .self = self_,
                        .scratch = &scratch_,
                        .scratch_region = scratch_region_.handle},
                       {.name = plan.channel,
                        .job = plan.job,
                        .is_send = plan.is_send,
                        .is_ready = plan.is_ready,
                        .peer = plan.peer,
                        .bytes = plan.bytes,
                        .memory = plan.memory,
                        .region = end.message,
                        .done = plan.done,
                        .done_place = {end.done_region.remote_base, end.done_region.key},
                        .ahead = settings_.ahead,
                        .timeout_ns = settings_.timeout_ns});
  if (opened.ok()) {
    end.channel = std::move(*opened);
  }
  return opened.status().code();
}

void NicChannels::Opened(End& end) {
  end.is_open = true;
  Watch(end);
  if (end.other) {
    end.channel->Connect(*end.other);
  }
  owner_.OnNicOpen(end.plan.channel, end.channel->target());
}

void NicChannels::Connect(uint64_t channel, NicPlace other) {
  const auto found = ends_.find(channel);
  if (found == ends_.end() || found->second->other) {
    return;
  }
  found->second->other = other;
  if (found->second->is_open) {
    found->second->channel->Connect(other);
    Watch(*found->second);
  }
}

// ---- Running

void NicChannels::Fail(End& end, ErrorCode error) {
  if (!end.has_failed) {
    end.has_failed = true;
    owner_.OnNicFailed(end.plan.channel, error, end.is_open);
  }
}

void NicChannels::Fail(uint64_t channel, ErrorCode error) {
  const auto found = ends_.find(channel);
  if (found != ends_.end()) {
    found->second->has_failed = true;
    if (found->second->channel != nullptr && found->second->pinning == nullptr) {
      found->second->channel->Fail(error);
      Watch(*found->second);
    }
  }
}

void NicChannels::OnDeferredEnd(uint64_t context, ErrorCode code) {
  if (End* end = Find(NicChannelOf(context)); end != nullptr) {
    end->channel->OnDeferredEnd(context, code);
    Watch(*end);
  }
}

void NicChannels::OnWriteEnd(uint64_t context, ErrorCode code) {
  if (End* end = Find(NicChannelOf(context)); end != nullptr) {
    end->channel->OnWriteEnd(context, code);
    Watch(*end);
  }
}

// Takes over what the rank has announced and started.
void NicChannels::TakeStarts(End& end) {
  NicChannel& channel = *end.channel;
  Starts& starts = *end.plan.starts;
  if (const ErrorCode code = starts.Refresh(channel.is_idle()); code != ErrorCode::kOk) {
    return channel.Fail(code);
  }
  if (starts.announced() > channel.rounds_wanted()) {
    if (channel.may_share()) {
      Share(end);
    }
    channel.Want(starts.announced());
  }
  if (end.trigger != nullptr) {
    end.trigger->Ring();
  }
  channel.RingTo(starts.Made());
}

void NicChannels::Share(End& end) {
  const SharedDoorbell& shared = end.plan.starts->shared();
  if (!(shared == end.doorbell)) {
    end.trigger = shared.word != nullptr ? triggers_.Hold(shared.word) : nullptr;
  }
  end.doorbell = shared;
  end.channel->Share(end.trigger, shared);
}

uint32_t NicChannels::Look(End& end, uint64_t now_ns) {
  NicChannel& channel = *end.channel;
  TakeStarts(end);
  uint32_t done = channel.is_active() ? channel.Poll(now_ns) : 0;
  const uint64_t channel_number = end.plan.channel;
  if (channel.error() != ErrorCode::kOk) {
    Fail(end, channel.error());
  } else if (channel.rounds_done() != end.rounds_told) {
    end.rounds_told = channel.rounds_done();
    ++done;
    owner_.OnNicRounds(channel_number, end.rounds_told);
  }
  return done;
}

void NicChannels::Watch(uint64_t channel) {
  if (End* end = Find(channel); end != nullptr) {
    Watch(*end);
  }
}

void NicChannels::Watch(End& end) {
  if (!end.watched) {
    end.watched = true;
    watched_.push_back(&end);
  }
}

// Whether the next turn has to look at it again.
bool NicChannels::IsDue(const End& end) {
  return end.is_open && (!end.plan.starts->announces() || end.channel->is_active() ||
                         (!end.has_failed && end.plan.starts->IsArmed(end.channel->rounds_done())));
}

uint32_t NicChannels::Advance(uint64_t now_ns) {
  auto done = static_cast<uint32_t>(deferred_.Poll(*this, now_ns));
  for (size_t i = 0; i < watched_.size();) {
    End* const end = watched_[i];
    done += end->is_open ? Look(*end, now_ns) : 0;
    if (i == watched_.size() || watched_[i] != end) {
      continue;  // its owner has closed it
    }
    end->watched = IsDue(*end);
    if (end->watched) {
      ++i;
    } else {
      watched_[i] = watched_.back();
      watched_.pop_back();
    }
  }
  std::erase_if(leaving_, [this](const std::unique_ptr<End>& end) { return TryLeave(*end); });
  return done;
}

bool NicChannels::is_armed() const {
  return std::any_of(watched_.begin(), watched_.end(), [](const End* end) {
    return !end->has_failed && end->channel != nullptr &&
           end->plan.starts->IsArmed(end->channel->rounds_done());
  });
}

uint64_t NicChannels::NextNs(uint64_t now_ns) const {
  uint64_t next_ns = deferred_.NextPollNs(now_ns);
  for (const End* end : watched_) {
    if (end->channel != nullptr) {
      next_ns = std::min(next_ns, end->channel->next_deadline_ns());
    }
  }
  return next_ns;
}

}  // namespace ferry::daemon
