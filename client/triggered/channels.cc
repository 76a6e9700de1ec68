#include "client/triggered/channels.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shm/wake.h"
#include "shm/word_copy.h"

namespace ferry::client {

using shm::RequestLayout;
using shm::SendMode;

namespace {

constexpr uint64_t kCellAlignment = 64;

SendMode ModeOf(const RequestLayout& slot) {
  return (slot.flags & shm::kRequestReady) != 0         ? SendMode::kReady
         : (slot.flags & shm::kRequestSynchronous) != 0 ? SendMode::kSynchronous
                                                        : SendMode::kStandard;
}

bool IsSend(const RequestLayout& slot) {
  return slot.kind == static_cast<uint32_t>(shm::RequestKind::kSend);
}

attach::MemoryPlace PlaceOf(const shm::Location& where) {
  return {where.region, 0, where.region == 0 ? 0 : where.address};
}

}  // namespace

Channels::Channels(Parts parts)
    : parts_(std::move(parts)),
      ordinals_(parts_.requests->limit()),
      in_place_(parts_.requests->limit()),
      by_request_(parts_.requests->limit()),
      blocks_(parts_.memory),
      shared_starts_({[memory = parts_.memory](uint64_t bytes) {
                        return memory->Allocate(bytes, MemoryKind::kPinned, 0);
                      },
                      [memory = parts_.memory](const void* word) {
                        return memory->regions().Find(word, sizeof(shm::CounterLayout)).address;
                      }}),
      pages_({[attach = parts_.attach](uint32_t nic) { return attach->CounterPages(nic); },
              [memory = parts_.memory] { return memory->backend(); }}) {}

Channels::~Channels() = default;

// ---- Offering -----------------------------------------------------------------------------------

void Channels::NoteMade(uint32_t request, bool in_place) {
  const RequestLayout& slot = parts_.requests->Slot(request);
  std::lock_guard lock(mutex_);
  in_place_[request] = in_place;
  ordinals_[request] = made_[{IsSend(slot), slot.context, slot.peer, slot.tag}]++;
}

StatusOr<std::unique_ptr<Channel>> Channels::Make(uint32_t request) {
  const RequestLayout& slot = parts_.requests->Slot(request);
  auto made = std::make_unique<Channel>();
  Channel& channel = *made;
  channel.request = request;
  channel.is_send = IsSend(slot);
  channel.peer = static_cast<uint32_t>(slot.peer);
  channel.key = {slot.context, channel.is_send ? parts_.rank : channel.peer,
                 channel.is_send ? channel.peer : parts_.rank, slot.tag, ordinals_[request]};
  StatusOr<shm::ChannelLayout*> end = blocks_.Take();
  FERRY_RETURN_IF_ERROR(end.status());
  channel.end = *end;
  channel.buffer = {reinterpret_cast<std::byte*>(slot.user_address),
                    parts_.memory->IsByStream(reinterpret_cast<void*>(slot.user_address))};
  if (const Status status = MakeWindow(channel); !status.ok()) {
    FreeBlocks(channel, {});
    return status;
  }
  return made;
}

Status Channels::MakeWindow(Channel& channel) {
  const uint64_t size_bytes = OwnBytes(channel);
  channel.window = channel.buffer;
  channel.nic_region = FindNicRegion(channel);
  if (size_bytes == 0) {
    return {};
  }
  const bool by_nic = channel.nic_region != 0;
  const bool is_reached =
      by_nic || (parts_.memory->regions().Find(channel.buffer.address, size_bytes).region != 0 &&
                 (!channel.buffer.by_stream || IsLocal(channel.peer)));
  if (!is_reached) {
    StatusOr<void*> window = parts_.memory->Allocate(size_bytes, MemoryKind::kPinned, 0);
    FERRY_RETURN_IF_ERROR(window.status());
    channel.window = {static_cast<std::byte*>(*window), false};
  }
  const bool may_wait = size_bytes <= parts_.cell_max_bytes && !IsInPlace(channel.request);
  if (channel.is_send || IsLocal(channel.peer) || (!by_nic && !may_wait)) {
    return {};
  }
  channel.cell_bytes = by_nic ? shm::kCellBytes
                              : (size_bytes + kCellAlignment - 1) / kCellAlignment * kCellAlignment;
  channel.cell_count = by_nic ? 1 : parts_.cell_count;
  StatusOr<void*> cells =
      parts_.memory->Allocate(channel.cell_bytes * channel.cell_count, MemoryKind::kPinned, 0);
  FERRY_RETURN_IF_ERROR(cells.status());
  channel.cells = static_cast<std::byte*>(*cells);
  return {};
}

// Shorter messages come by packets, which a CPU copies, or wait in cells.
uint32_t Channels::FindNicRegion(const Channel& channel) {
  const uint64_t size_bytes = OwnBytes(channel);
  if (!channel.buffer.by_stream || IsLocal(channel.peer) ||
      size_bytes <= std::max<uint64_t>(shm::kCellBytes, parts_.cell_max_bytes)) {
    return 0;
  }
  const uint32_t region = parts_.memory->LocateForGood(channel.buffer.address, size_bytes).region;
  std::lock_guard lock(mutex_);
  return not_by_nic_.contains(region) ? 0 : region;
}

// The network card does not take their memory: blocks of the heap stand in for it, now and later.
Status Channels::StandIn(std::span<Channel* const> channels) {
  for (Channel* const channel : channels) {
    {
      std::lock_guard lock(mutex_);
      not_by_nic_.insert(channel->nic_region);
    }
    if (channel->cells != nullptr) {
      FreeBlock(std::exchange(channel->cells, nullptr));
    }
    FERRY_RETURN_IF_ERROR(MakeWindow(*channel));
  }
  return {};
}

void Channels::FreeBlocks(const Channel& channel, const Keep& keep) {
  for (void* const block :
       {static_cast<void*>(channel.end), static_cast<void*>(channel.cells),
        static_cast<void*>(channel.has_window_of_its_own() ? channel.window.address : nullptr)}) {
    if (block != nullptr && keep) {
      keep(block);
    } else if (block != nullptr) {
      FreeBlock(block);
    }
  }
}

void Channels::FreeBlock(void* block) {
  pages_.Drop(static_cast<shm::ChannelLayout*>(block));  // if it is an end that has one
  if (!blocks_.GiveBack(block)) {
    (void)parts_.memory->Free(block);
  }
}

Status Channels::Offer(std::span<const uint32_t> requests) {
  std::vector<std::unique_ptr<Channel>> made;
  std::vector<Channel*> order;
  const auto give_up = [&](const Status& status) {
    for (const auto& channel : made) {
      FreeBlocks(*channel, {});
    }
    return status;
  };
  for (const uint32_t request : requests) {
    if (by_request_[request] != nullptr) {
      continue;
    }
    StatusOr<std::unique_ptr<Channel>> channel = Make(request);
    if (!channel.ok()) {
      return give_up(channel.status());
    }
    order.push_back(channel->get());
    made.push_back(std::move(*channel));
  }
  // Receives, then sends; of each, first what CPUs reach, too.
  std::ranges::stable_sort(order, {}, [](const Channel* channel) {
    return std::pair(channel->is_send, channel->nic_region);
  });
  if (const Status status = OfferInPieces(order); !status.ok()) {
    return give_up(status);
  }
  std::lock_guard lock(mutex_);
  for (auto& channel : made) {
    by_request_[channel->request] = std::move(channel);
  }
  return {};
}

// All or none.
Status Channels::OfferInPieces(std::span<Channel* const> order) {
  size_t taken = 0;
  bool by_region = false;  // the network card has refused some memory: each region asks for itself
  while (taken < order.size()) {
    const auto rest = order.subspan(taken);
    const Channel& first = *rest.front();
    const auto end = std::ranges::find_if(rest, [&](const Channel* channel) {
      return channel->is_send != first.is_send ||
             (by_region && channel->nic_region != first.nic_region);
    });
    const auto piece =
        rest.first(std::min(static_cast<size_t>(end - rest.begin()), size_t{attach::kMostOffers}));
    Status status = OfferTogether(piece);
    if (status.code() == ErrorCode::kUnsupported && piece.back()->nic_region != 0) {
      if (first.nic_region == piece.back()->nic_region) {
        status = StandIn(piece);
      } else {
        by_region = true;
        status = {};
      }
    } else if (status.ok()) {
      taken += piece.size();
    }
    if (!status.ok()) {
      for (const Channel* const channel : order.first(taken)) {
        (void)parts_.attach->WithdrawMatch(channel->is_send, channel->key, 0);
      }
      return status;
    }
  }
  return {};
}

// Channels of one direction.
Status Channels::OfferTogether(std::span<Channel* const> channels) {
  const auto find = [&](const void* address, uint64_t bytes) {
    return PlaceOf(parts_.memory->regions().Find(address, bytes));
  };
  std::vector<attach::MatchOffer> offers;
  offers.reserve(channels.size());
  for (const Channel* const channel : channels) {
    attach::MatchOffer& offer = offers.emplace_back();
    offer.key = channel->key;
    offer.size_bytes = OwnBytes(*channel);
    offer.mode = static_cast<uint32_t>(ModeOf(parts_.requests->Slot(channel->request)));
    offer.end = find(channel->end, sizeof(shm::ChannelLayout));
    if (offer.size_bytes != 0) {
      offer.window = find(channel->window.address, offer.size_bytes);
    }
    if (channel->cells != nullptr) {
      offer.cell_count = channel->cell_count;
      offer.cells = find(channel->cells, channel->cell_bytes * channel->cell_count);
    }
  }
  return parts_.attach->OfferMatches(channels.front()->is_send, offers);
}

// ---- What became of it --------------------------------------------------------------------------

ErrorCode Channels::Settle(Channel& channel) {
  if (channel.stage != Channel::Stage::kOffered) {
    return channel.error;
  }
  const shm::PairWords& words = channel.end->pair;
  // Pairs with the daemon's store: the other words are there.
  const auto state = static_cast<shm::PairState>(shm::LoadAcquire(words.state));
  if (state == shm::PairState::kOffered) {
    const ErrorCode poison = parts_.poison();
    return poison != ErrorCode::kOk ? poison : ErrorCode::kWouldBlock;
  }
  if (state == shm::PairState::kFailed) {
    channel.error = static_cast<ErrorCode>(words.error);
  } else {
    channel.mode = static_cast<SendMode>(words.mode);
    channel.size_bytes = words.size_bytes;
    channel.local = IsLocal(channel.peer);
    channel.error = channel.local ? MapPeer(channel) : ErrorCode::kOk;
  }
  if (channel.error == ErrorCode::kOk) {
    channel.stage = Channel::Stage::kMatched;
    parts_.requests->Slot(channel.request).flags |= shm::kRequestPaired;
  } else {
    channel.stage = Channel::Stage::kFailed;
  }
  return channel.error;
}

ErrorCode Channels::MapPeer(Channel& channel) {
  const shm::PairWords& words = channel.end->pair;
  StatusOr<PeerMemory::ForGood> end =
      parts_.peer_memory->MapForGood(channel.peer, words.end, sizeof(shm::ChannelLayout));
  if (!end.ok()) {
    return end.status().code();
  }
  channel.peer_end = reinterpret_cast<shm::ChannelLayout*>(end->memory.get());
  channel.peer_memory[0] = end->memory;
  channel.peer_life = shm::LifeOf(*channel.peer_end);
  // The block begins another life only after the daemon has told that the pair has ended. Then the
  // other end is not to be touched any more.
  if (channel.Failure() != ErrorCode::kOk) {
    shm::ShutGate(*channel.end);
    --channel.peer_life;
  }
  if (channel.size_bytes == 0) {
    return ErrorCode::kOk;
  }
  StatusOr<PeerMemory::ForGood> window =
      parts_.peer_memory->MapForGood(channel.peer, words.window, channel.size_bytes);
  if (!window.ok()) {
    return window.status().code();
  }
  channel.peer_window = {window->memory.get(), window->by_stream};
  channel.peer_memory[1] = window->memory;
  return ErrorCode::kOk;
}

void Channels::LetDevicesReach(Channel& channel) {
  if (channel.devices_reach) {
    return;
  }
  channel.devices_reach = true;
  const shm::PairWords& words = channel.end->pair;
  parts_.peer_memory->LetDevicesReach(channel.peer, words.end);
  if (channel.size_bytes > 0) {
    parts_.peer_memory->LetDevicesReach(channel.peer, words.window);
  }
}

Status Channels::CheckIdle(uint32_t request) const {
  const Channel* const channel = Find(request);
  if (channel == nullptr || channel->stage == Channel::Stage::kOffered) {
    return {ErrorCode::kInvalidRequest, "the request is not matched: call ferry_match first"};
  }
  if (channel->FailureOfNext() != ErrorCode::kOk) {
    return {channel->Failure(),
            "the request, or its partner, has failed: free it, make it and match it anew"};
  }
  if (channel->wants_wait) {
    return {ErrorCode::kInvalidRequest, "a start of it was enqueued before and has no wait yet"};
  }
  const auto state =
      static_cast<shm::RequestState>(shm::LoadAcquire(parts_.requests->Slot(request).state));
  if (state != shm::RequestState::kInactive) {
    return {ErrorCode::kInvalidRequest, "the rank has started it itself: wait for it first"};
  }
  return {};
}

// ---- Starts of the rank's own -------------------------------------------------------------------

ErrorCode Channels::Copy(const ChannelMemory& to, const ChannelMemory& from, uint64_t bytes) const {
  return bytes == 0 ? ErrorCode::kOk
                    : parts_.peer_memory->Copy({to.address, 0, 0, ErrorCode::kOk, to.by_stream},
                                               {from.address, 0, 0, ErrorCode::kOk, from.by_stream},
                                               bytes);
}

ErrorCode Channels::Fill(Channel& channel) {
  return channel.is_send && channel.has_window_of_its_own()
             ? Copy(channel.window, channel.buffer, channel.size_bytes)
             : ErrorCode::kOk;
}

ErrorCode Channels::Start(Channel& channel) {
  if (const ErrorCode failure = channel.FailureOfNext(); failure != ErrorCode::kOk) {
    return failure;
  }
  channel.queue = 0;
  shared_starts_.Leave(channel);
  ++channel.starts;
  started_.fetch_add(1, std::memory_order_relaxed);
  channel.in_place = false;
  ErrorCode error = ErrorCode::kOk;
  if (!channel.local) {
    error = Fill(channel);
    uint64_t* const page = PageFor(channel, channel.starts);
    shm::StoreRelease(channel.end->armed, channel.starts);  // Pairs with daemon::Starts.
    if (error == ErrorCode::kOk) {
      // Pairs with the daemon's look, or is the NIC's.
      page != nullptr ? shm::StoreRelease(*page, 1)
                      : shm::StoreRelease(channel.end->start.value, channel.starts);
      parts_.ring_daemon();
    }
  } else if (channel.mode != SendMode::kReady || channel.is_send) {
    Count(channel, shm::Statistic::kMatchedByRank);
    error = StartInNode(channel);
  }
  if (error != ErrorCode::kOk) {
    Abandon(channel, error);
  }
  return ErrorCode::kOk;  // its wait says how it went
}

ErrorCode Channels::Follow(const Channel& send, std::span<Channel* const> receives) {
  const auto is_fit = [](const Channel& channel, bool is_send) {
    return channel.is_send == is_send && channel.stage == Channel::Stage::kMatched &&
           !channel.local && !channel.has_window_of_its_own();
  };
  if (!is_fit(send, true) || receives.size() > shm::kMostFollowed) {
    return ErrorCode::kInternal;
  }
  shm::FollowWords& words = send.end->follows;
  for (size_t i = 0; i < receives.size(); ++i) {
    if (!is_fit(*receives[i], false) || receives[i]->uses_cells()) {
      return ErrorCode::kInternal;
    }
    const shm::Location end =
        parts_.memory->regions().Find(receives[i]->end, sizeof(shm::ChannelLayout));
    shm::StoreRelaxed(words.ends[i], end.address);
  }
  shm::StoreRelaxed(words.count, static_cast<uint32_t>(receives.size()));
  return ErrorCode::kOk;
}

Status Channels::CheckArm(const Channel& channel) {
  if (channel.local) {
    return {ErrorCode::kUnsupported,
            "a device starts requests to other nodes only: inside a node the two ends meet without "
            "ferryd, so start it by ferry_start or on a queue"};
  }
  if (channel.has_window_of_its_own()) {
    return {ErrorCode::kInvalidBuffer,
            "a device starts messages from and to memory of ferry_alloc that the network reaches"};
  }
  if (!channel.is_send && channel.uses_cells()) {
    return {ErrorCode::kUnsupported,
            channel.nic_region != 0
                ? "the message is so short that it lands in the heap, from where only the rank "
                  "takes it into device memory: make it longer than 8 KiB"
                : "the receive may land in a cell, from where only the rank takes it: set "
                  "matched_cell_bytes to 0, or make its send ready, synchronous or longer"};
  }
  return {};
}

void Channels::Arm(Channel& channel) {
  channel.queue = 0;
  shared_starts_.Leave(channel);
  ++channel.starts;
  started_.fetch_add(1, std::memory_order_relaxed);
  channel.in_place = false;
  shm::StoreRelease(channel.end->armed, channel.starts);  // Pairs with StartByRing.
  parts_.ring_daemon();
}

// Starts one end of a pair inside the node. Unless it is a ready send, both ends meet, one after
// the other.
ErrorCode Channels::StartInNode(Channel& channel) {
  const bool meets = channel.mode != SendMode::kReady;
  if (meets && channel.is_send && channel.has_window_of_its_own()) {
    // An odd count: the other end waits, and this one will move the message from its buffer.
    if (shm::LoadAcquire(channel.end->meet.value) % 2 == 0) {
      if (const ErrorCode error = Fill(channel); error != ErrorCode::kOk) {
        return error;
      }
    }
  }
  return shm::BeginMove(channel.ends(), channel.is_send, meets) ? Move(channel) : ErrorCode::kOk;
}

// Call it inside the gate.
ErrorCode Channels::Move(Channel& channel) {
  const ChannelMemory& to = channel.is_send ? channel.peer_window : channel.buffer;
  const ChannelMemory& from = channel.is_send ? channel.buffer : channel.peer_window;
  channel.in_place = !channel.is_send;
  // The other end reaches windows only.
  if (shm::IsMovedInParts(channel.size_bytes) && !channel.has_window_of_its_own() &&
      !to.by_stream && !from.by_stream) {
    shm::MoveInParts(channel.ends(), channel.starts, channel.size_bytes,
                     [&](uint64_t offset, uint64_t size_bytes) {
                       shm::CopyWords(to.address + offset, from.address + offset, size_bytes);
                     });
  } else {
    const ErrorCode error = Copy(to, from, channel.size_bytes);
    if (error != ErrorCode::kOk) {
      shm::AbandonMove(channel.ends());
      return error;
    }
    shm::CompleteMove(channel.ends());
  }
  WakePeer(channel);
  return ErrorCode::kOk;
}

// Copies parts of a message that the other end moves. True: it did.
bool Channels::Help(Channel& channel) const {
  const ChannelMemory& to = channel.is_send ? channel.peer_window : channel.window;
  const ChannelMemory& from = channel.is_send ? channel.window : channel.peer_window;
  const bool helps = channel.local && !to.by_stream && !from.by_stream &&
                     shm::HelpMove(
                         channel.ends(), channel.starts, channel.size_bytes,
                         [&](uint64_t offset, uint64_t size_bytes) {
                           shm::CopyWords(to.address + offset, from.address + offset, size_bytes);
                         },
                         [] { return true; });
  if (helps) {
    WakePeer(channel);
  }
  return helps;
}

void Channels::WakePeer(const Channel& channel) const {
  if (channel.peer != parts_.rank) {
    shm::Wake(parts_.peers->Wake(channel.peer)).Publish();
  }
}

bool Channels::IsOver(Channel& channel, ErrorCode* error) {
  if (channel.Done() >= channel.starts || (Help(channel) && channel.Done() >= channel.starts)) {
    *error = channel.is_send || channel.in_place || channel.Landing() == channel.buffer.address
                 ? ErrorCode::kOk
                 : Copy(channel.buffer, {channel.Landing(), false}, channel.size_bytes);
    return true;
  }
  *error = channel.Outcome();
  if (*error == ErrorCode::kOk) {
    *error = parts_.poison();
  }
  if (*error != ErrorCode::kOk && channel.local) {
    shm::ClosePair(channel.ends());  // its memory is the application's again
  }
  return *error != ErrorCode::kOk;
}

// ---- Ends ---------------------------------------------------------------------------------------

Status Channels::Withdraw(Channel& channel) {
  if (channel.peer_end != nullptr) {
    shm::ClosePair(channel.ends());
  }
  return parts_.poison() != ErrorCode::kOk
             ? Status(parts_.poison(), "there is nobody to tell")
             : parts_.attach->WithdrawMatch(channel.is_send, channel.key, channel.Done());
}

void Channels::Abandon(Channel& channel, ErrorCode error) {
  shm::Counter(&channel.end->done).Fail(error);
  (void)Withdraw(channel);
}

void Channels::Release(uint32_t request, const Keep& keep) {
  std::unique_ptr<Channel> channel;
  {
    std::lock_guard lock(mutex_);
    channel = std::move(by_request_[request]);
  }
  if (channel == nullptr) {
    return;
  }
  parts_.requests->Slot(request).flags &= ~shm::kRequestPaired;
  if (Withdraw(*channel).ok()) {  // else the blocks are lost: others may still look at them
    shared_starts_.Forget(*channel);
    FreeBlocks(*channel, channel->was_enqueued ? keep : Keep());
  }
}

void Channels::FailAll(ErrorCode error) {
  std::lock_guard lock(mutex_);
  for (const auto& channel : by_request_) {
    if (channel != nullptr) {
      shm::Counter(&channel->end->done).Fail(error);
      shm::ShutGate(*channel->end);
    }
  }
}

}  // namespace ferry::client
