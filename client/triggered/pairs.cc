#include "client/triggered/pairs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/p2p/bounce_buffers.h"
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

attach::MemoryPlace PlaceOf(const shm::Location& where) {
  return {where.region, 0, where.region == 0 ? 0 : where.address};
}

}  // namespace

Pairs::Pairs(Parts parts)
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

Pairs::~Pairs() = default;

// ---- Offering -----------------------------------------------------------------------------------

void Pairs::NoteMade(uint32_t request, bool in_place) {
  const RequestLayout& slot = parts_.requests->Slot(request);
  std::lock_guard lock(mutex_);
  in_place_[request] = in_place;
  ordinals_[request] = made_[{IsSend(slot), slot.context, slot.peer, slot.tag}]++;
}

StatusOr<std::unique_ptr<Pair>> Pairs::Make(uint32_t request) {
  const RequestLayout& slot = parts_.requests->Slot(request);
  auto made = std::make_unique<Pair>();
  Pair& pair = *made;
  pair.request = request;
  pair.is_send = IsSend(slot);
  pair.peer = static_cast<uint32_t>(slot.peer);
  pair.key = {slot.context, pair.is_send ? parts_.rank : pair.peer,
              pair.is_send ? pair.peer : parts_.rank, slot.tag, ordinals_[request]};
  StatusOr<shm::PairLayout*> end = blocks_.Take();
  FERRY_RETURN_IF_ERROR(end.status());
  pair.end = *end;
  pair.buffer = {reinterpret_cast<std::byte*>(slot.user_address),
                 parts_.memory->IsByStream(reinterpret_cast<void*>(slot.user_address))};
  if (const Status status = MakeWindow(pair); !status.ok()) {
    FreeBlocks(pair, {});
    return status;
  }
  return made;
}

Status Pairs::MakeWindow(Pair& pair) {
  const uint64_t size_bytes = OwnBytes(pair);
  pair.window = pair.buffer;
  pair.nic_region = FindNicRegion(pair);
  if (size_bytes == 0) {
    return {};
  }
  const bool by_nic = pair.nic_region != 0;
  const bool is_reached =
      by_nic || (parts_.memory->regions().Find(pair.buffer.address, size_bytes).region != 0 &&
                 (!pair.buffer.by_stream || IsLocal(pair.peer)));
  if (!is_reached) {
    StatusOr<void*> window = parts_.memory->Allocate(size_bytes, MemoryKind::kPinned, 0);
    FERRY_RETURN_IF_ERROR(window.status());
    pair.window = {static_cast<std::byte*>(*window), false};
  }
  const bool may_wait = size_bytes <= parts_.cell_max_bytes && !IsInPlace(pair.request);
  if (pair.is_send || IsLocal(pair.peer) || (!by_nic && !may_wait)) {
    return {};
  }
  pair.cell_bytes = by_nic ? shm::kCellBytes
                           : (size_bytes + kCellAlignment - 1) / kCellAlignment * kCellAlignment;
  pair.cell_count = by_nic ? 1 : parts_.cell_count;
  StatusOr<void*> cells =
      parts_.memory->Allocate(pair.cell_bytes * pair.cell_count, MemoryKind::kPinned, 0);
  FERRY_RETURN_IF_ERROR(cells.status());
  pair.cells = static_cast<std::byte*>(*cells);
  return {};
}

// Shorter messages come by packets, which a CPU copies, or wait in cells.
uint32_t Pairs::FindNicRegion(const Pair& pair) {
  const uint64_t size_bytes = OwnBytes(pair);
  if (!pair.buffer.by_stream || IsLocal(pair.peer) ||
      size_bytes <= std::max<uint64_t>(shm::kCellBytes, parts_.cell_max_bytes)) {
    return 0;
  }
  const uint32_t region = parts_.memory->LocateForGood(pair.buffer.address, size_bytes).region;
  std::lock_guard lock(mutex_);
  return not_by_nic_.contains(region) ? 0 : region;
}

// The network card does not take their memory: blocks of the heap stand in for it, now and later.
Status Pairs::StandIn(std::span<Pair* const> pairs) {
  for (Pair* const pair : pairs) {
    {
      std::lock_guard lock(mutex_);
      not_by_nic_.insert(pair->nic_region);
    }
    if (pair->cells != nullptr) {
      FreeBlock(std::exchange(pair->cells, nullptr));
    }
    FERRY_RETURN_IF_ERROR(MakeWindow(*pair));
  }
  return {};
}

void Pairs::FreeBlocks(const Pair& pair, const Keep& keep) {
  for (void* const block :
       {static_cast<void*>(pair.end), static_cast<void*>(pair.cells),
        static_cast<void*>(pair.has_window_of_its_own() ? pair.window.address : nullptr)}) {
    if (block != nullptr && keep) {
      keep(block);
    } else if (block != nullptr) {
      FreeBlock(block);
    }
  }
}

void Pairs::FreeBlock(void* block) {
  pages_.Drop(static_cast<shm::PairLayout*>(block));  // if it is an end that has one
  if (!blocks_.GiveBack(block)) {
    (void)parts_.memory->Free(block);
  }
}

Status Pairs::Offer(std::span<const uint32_t> requests) {
  std::vector<std::unique_ptr<Pair>> made;
  std::vector<Pair*> order;
  const auto give_up = [&](const Status& status) {
    for (const auto& pair : made) {
      FreeBlocks(*pair, {});
    }
    return status;
  };
  for (const uint32_t request : requests) {
    if (by_request_[request] != nullptr) {
      continue;
    }
    StatusOr<std::unique_ptr<Pair>> pair = Make(request);
    if (!pair.ok()) {
      return give_up(pair.status());
    }
    order.push_back(pair->get());
    made.push_back(std::move(*pair));
  }
  // Receives, then sends; of each, first what CPUs reach, too.
  std::ranges::stable_sort(
      order, {}, [](const Pair* pair) { return std::pair(pair->is_send, pair->nic_region); });
  if (const Status status = OfferInPieces(order); !status.ok()) {
    return give_up(status);
  }
  std::lock_guard lock(mutex_);
  for (auto& pair : made) {
    by_request_[pair->request] = std::move(pair);
  }
  return {};
}

// All or none.
Status Pairs::OfferInPieces(std::span<Pair* const> order) {
  size_t taken = 0;
  bool by_region = false;  // the network card has refused some memory: each region asks for itself
  while (taken < order.size()) {
    const auto rest = order.subspan(taken);
    const Pair& first = *rest.front();
    const auto end = std::ranges::find_if(rest, [&](const Pair* pair) {
      return pair->is_send != first.is_send || (by_region && pair->nic_region != first.nic_region);
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
      for (const Pair* const pair : order.first(taken)) {
        (void)parts_.attach->WithdrawPair(pair->is_send, pair->key, 0);
      }
      return status;
    }
  }
  return {};
}

// Offers pairs of one direction.
Status Pairs::OfferTogether(std::span<Pair* const> pairs) {
  const auto find = [&](const void* address, uint64_t bytes) {
    return PlaceOf(parts_.memory->regions().Find(address, bytes));
  };
  std::vector<attach::PairOffer> offers;
  offers.reserve(pairs.size());
  for (const Pair* const pair : pairs) {
    attach::PairOffer& offer = offers.emplace_back();
    offer.key = pair->key;
    offer.size_bytes = OwnBytes(*pair);
    offer.mode = static_cast<uint32_t>(ModeOf(parts_.requests->Slot(pair->request)));
    offer.end = find(pair->end, sizeof(shm::PairLayout));
    if (offer.size_bytes != 0) {
      offer.window = find(pair->window.address, offer.size_bytes);
    }
    if (pair->cells != nullptr) {
      offer.cell_count = pair->cell_count;
      offer.cells = find(pair->cells, pair->cell_bytes * pair->cell_count);
    }
  }
  return parts_.attach->OfferPairs(pairs.front()->is_send, offers);
}

// ---- The outcome of matching --------------------------------------------------------------------

ErrorCode Pairs::Settle(Pair& pair) {
  if (pair.stage != Pair::Stage::kOffered) {
    return pair.error;
  }
  const shm::PairWords& words = pair.end->pair;
  // Pairs with the daemon's store: the other words are there.
  const auto state = static_cast<shm::PairState>(shm::LoadAcquire(words.state));
  if (state == shm::PairState::kOffered) {
    const ErrorCode poison = parts_.poison();
    return poison != ErrorCode::kOk ? poison : ErrorCode::kWouldBlock;
  }
  if (state == shm::PairState::kFailed) {
    pair.error = static_cast<ErrorCode>(words.error);
  } else {
    pair.mode = static_cast<SendMode>(words.mode);
    pair.size_bytes = words.size_bytes;
    pair.local = IsLocal(pair.peer);
    pair.error = pair.local ? MapPeer(pair) : ErrorCode::kOk;
  }
  if (pair.error == ErrorCode::kOk) {
    pair.stage = Pair::Stage::kMatched;
    parts_.requests->Slot(pair.request).flags |= shm::kRequestPaired;
  } else {
    pair.stage = Pair::Stage::kFailed;
  }
  return pair.error;
}

ErrorCode Pairs::MapPeer(Pair& pair) {
  const shm::PairWords& words = pair.end->pair;
  StatusOr<PeerMemory::ForGood> end =
      parts_.peer_memory->MapForGood(pair.peer, words.end, sizeof(shm::PairLayout));
  if (!end.ok()) {
    return end.status().code();
  }
  pair.peer_end = reinterpret_cast<shm::PairLayout*>(end->memory.get());
  pair.peer_memory[0] = end->memory;
  pair.peer_life = shm::LifeOf(*pair.peer_end);
  // The block begins another life only after the daemon has told that the pair has ended. Then the
  // other end is not to be touched any more.
  if (pair.Failure() != ErrorCode::kOk) {
    shm::ShutGate(*pair.end);
    --pair.peer_life;
  }
  if (pair.size_bytes == 0) {
    return ErrorCode::kOk;
  }
  StatusOr<PeerMemory::ForGood> window =
      parts_.peer_memory->MapForGood(pair.peer, words.window, pair.size_bytes);
  if (!window.ok()) {
    return window.status().code();
  }
  pair.peer_window = {window->memory.get(), window->by_stream};
  pair.peer_memory[1] = window->memory;
  return ErrorCode::kOk;
}

void Pairs::LetDevicesReach(Pair& pair) {
  if (pair.devices_reach) {
    return;
  }
  pair.devices_reach = true;
  const shm::PairWords& words = pair.end->pair;
  parts_.peer_memory->LetDevicesReach(pair.peer, words.end);
  if (pair.size_bytes > 0) {
    parts_.peer_memory->LetDevicesReach(pair.peer, words.window);
  }
}

Status Pairs::CheckIdle(uint32_t request) const {
  const Pair* const pair = Find(request);
  if (pair == nullptr || pair->stage == Pair::Stage::kOffered) {
    return {ErrorCode::kInvalidRequest, "the request is not matched: call ferry_match first"};
  }
  if (pair->FailureOfNext() != ErrorCode::kOk) {
    return {pair->Failure(),
            "the request, or its partner, has failed: free it, make it and match it anew"};
  }
  if (pair->wants_wait) {
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

ErrorCode Pairs::Copy(const PairMemory& to, const PairMemory& from, uint64_t bytes) const {
  return bytes == 0 ? ErrorCode::kOk
                    : parts_.peer_memory->Copy({to.address, 0, 0, ErrorCode::kOk, to.by_stream},
                                               {from.address, 0, 0, ErrorCode::kOk, from.by_stream},
                                               bytes);
}

ErrorCode Pairs::Fill(Pair& pair) {
  return pair.is_send && pair.has_window_of_its_own()
             ? Copy(pair.window, pair.buffer, pair.size_bytes)
             : ErrorCode::kOk;
}

ErrorCode Pairs::Start(Pair& pair) {
  if (const ErrorCode failure = pair.FailureOfNext(); failure != ErrorCode::kOk) {
    return failure;
  }
  pair.queue = 0;
  shared_starts_.Leave(pair);
  ++pair.starts;
  started_.fetch_add(1, std::memory_order_relaxed);
  pair.in_place = false;
  ErrorCode error = ErrorCode::kOk;
  if (!pair.local) {
    error = Fill(pair);
    uint64_t* const page = PageFor(pair, pair.starts);
    shm::StoreRelease(pair.end->armed, pair.starts);  // Pairs with daemon::Starts.
    if (error == ErrorCode::kOk) {
      // Pairs with the daemon's look, or is the NIC's.
      page != nullptr ? shm::StoreRelease(*page, 1)
                      : shm::StoreRelease(pair.end->start.value, pair.starts);
      parts_.ring_daemon();
    }
  } else if (pair.mode != SendMode::kReady || pair.is_send) {
    Count(pair, shm::Statistic::kMatchedByRank);
    error = StartInNode(pair);
  }
  if (error != ErrorCode::kOk) {
    Abandon(pair, error);
  }
  return ErrorCode::kOk;  // its wait says how it went
}

ErrorCode Pairs::Follow(const Pair& send, std::span<Pair* const> receives) {
  const auto is_fit = [](const Pair& pair, bool is_send) {
    return pair.is_send == is_send && pair.stage == Pair::Stage::kMatched && !pair.local &&
           !pair.has_window_of_its_own();
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
        parts_.memory->regions().Find(receives[i]->end, sizeof(shm::PairLayout));
    shm::StoreRelaxed(words.ends[i], end.address);
  }
  shm::StoreRelaxed(words.count, static_cast<uint32_t>(receives.size()));
  return ErrorCode::kOk;
}

Status Pairs::CheckArm(const Pair& pair) {
  if (pair.local) {
    return {ErrorCode::kUnsupported,
            "a device starts requests to other nodes only: inside a node the two ends meet without "
            "ferryd, so start it by ferry_start or on a queue"};
  }
  if (pair.has_window_of_its_own()) {
    return {ErrorCode::kInvalidBuffer,
            "a device starts messages from and to memory of ferry_alloc that the network reaches"};
  }
  if (!pair.is_send && pair.uses_cells()) {
    return {ErrorCode::kUnsupported,
            pair.nic_region != 0
                ? "the message is so short that it lands in the heap, from where only the rank "
                  "takes it into device memory: make it longer than 8 KiB"
                : "the receive may land in a cell, from where only the rank takes it: set "
                  "matched_cell_bytes to 0, or make its send ready, synchronous or longer"};
  }
  return {};
}

void Pairs::Arm(Pair& pair) {
  pair.queue = 0;
  shared_starts_.Leave(pair);
  ++pair.starts;
  started_.fetch_add(1, std::memory_order_relaxed);
  pair.in_place = false;
  shm::StoreRelease(pair.end->armed, pair.starts);  // Pairs with StartByRing.
  parts_.ring_daemon();
}

// Starts one end of a pair inside the node. Unless it is a ready send, both ends meet, one after
// the other.
ErrorCode Pairs::StartInNode(Pair& pair) {
  const bool meets = pair.mode != SendMode::kReady;
  if (meets && pair.is_send && pair.has_window_of_its_own()) {
    // An odd count: the other end waits, and this one will move the message from its buffer.
    if (shm::LoadAcquire(pair.end->meet.value) % 2 == 0) {
      if (const ErrorCode error = Fill(pair); error != ErrorCode::kOk) {
        return error;
      }
    }
  }
  return shm::BeginMove(pair.ends(), pair.is_send, meets) ? Move(pair) : ErrorCode::kOk;
}

// Call it inside the gate.
ErrorCode Pairs::Move(Pair& pair) {
  const PairMemory& to = pair.is_send ? pair.peer_window : pair.buffer;
  const PairMemory& from = pair.is_send ? pair.buffer : pair.peer_window;
  pair.in_place = !pair.is_send;
  // The other end reaches windows only.
  if (shm::IsMovedInChunks(pair.size_bytes) && !pair.has_window_of_its_own() && !to.by_stream &&
      !from.by_stream) {
    shm::MoveInChunks(pair.ends(), pair.starts, pair.size_bytes,
                      [&](uint64_t offset, uint64_t size_bytes) {
                        shm::CopyWords(to.address + offset, from.address + offset, size_bytes);
                      });
  } else {
    const ErrorCode error = Copy(to, from, pair.size_bytes);
    if (error != ErrorCode::kOk) {
      shm::AbandonMove(pair.ends());
      return error;
    }
    shm::CompleteMove(pair.ends());
  }
  WakePeer(pair);
  return ErrorCode::kOk;
}

// Copies parts of a message that the other end moves. True: it did.
bool Pairs::Help(Pair& pair) const {
  const PairMemory& to = pair.is_send ? pair.peer_window : pair.window;
  const PairMemory& from = pair.is_send ? pair.window : pair.peer_window;
  const bool helps = pair.local && !to.by_stream && !from.by_stream &&
                     shm::HelpMove(
                         pair.ends(), pair.starts, pair.size_bytes,
                         [&](uint64_t offset, uint64_t size_bytes) {
                           shm::CopyWords(to.address + offset, from.address + offset, size_bytes);
                         },
                         [] { return true; });
  if (helps) {
    WakePeer(pair);
  }
  return helps;
}

void Pairs::WakePeer(const Pair& pair) const {
  if (pair.peer != parts_.rank) {
    shm::Wake(parts_.peers->Wake(pair.peer)).Publish();
  }
}

bool Pairs::IsOver(Pair& pair, ErrorCode* error) {
  if (pair.Done() >= pair.starts || (Help(pair) && pair.Done() >= pair.starts)) {
    *error = pair.is_send || pair.in_place || pair.Landing() == pair.buffer.address
                 ? ErrorCode::kOk
                 : Copy(pair.buffer, {pair.Landing(), false}, pair.size_bytes);
    return true;
  }
  *error = pair.Outcome();
  if (*error == ErrorCode::kOk) {
    *error = parts_.poison();
  }
  if (*error != ErrorCode::kOk && pair.local) {
    shm::ClosePair(pair.ends());  // its memory is the application's again
  }
  return *error != ErrorCode::kOk;
}

// ---- Ends ---------------------------------------------------------------------------------------

Status Pairs::Withdraw(Pair& pair) {
  if (pair.peer_end != nullptr) {
    shm::ClosePair(pair.ends());
  }
  if (parts_.poison() != ErrorCode::kOk) {
    return {parts_.poison(), "there is nobody to tell"};
  }
  Status status = parts_.attach->WithdrawPair(pair.is_send, pair.key, pair.Done());
  if (status.ok() && pair.peer_end == nullptr && IsLocal(pair.peer)) {
    AwaitPeerOutside(pair);
  }
  return status;
}

// Waits until the other end is outside its gate, which the daemon has shut: it may have been
// matched and started before this end has looked. If its block has another life by now, its gate is
// that of another pair, and the wait is in vain, but short.
void Pairs::AwaitPeerOutside(const Pair& pair) {
  const shm::PairWords& words = pair.end->pair;
  if (shm::LoadAcquire(words.state) != static_cast<uint32_t>(shm::PairState::kMatched)) {
    return;
  }
  const StatusOr<PeerMemory::ForGood> end =
      parts_.peer_memory->MapForGood(pair.peer, words.end, sizeof(shm::PairLayout));
  if (!end.ok()) {
    return;
  }
  const auto& other = *reinterpret_cast<const shm::PairLayout*>(end->memory.get());
  shm::AwaitOutside(other, shm::LifeOf(other));
}

void Pairs::Abandon(Pair& pair, ErrorCode error) {
  shm::Counter(&pair.end->done).Fail(error);
  (void)Withdraw(pair);
}

void Pairs::Release(uint32_t request, const Keep& keep) {
  std::unique_ptr<Pair> pair;
  {
    std::lock_guard lock(mutex_);
    pair = std::move(by_request_[request]);
  }
  if (pair == nullptr) {
    return;
  }
  parts_.requests->Slot(request).flags &= ~shm::kRequestPaired;
  if (Withdraw(*pair).ok()) {  // else the blocks are lost: others may still look at them
    shared_starts_.Forget(*pair);
    FreeBlocks(*pair, pair->was_enqueued ? keep : Keep());
  }
}

void Pairs::FailAll(ErrorCode error) {
  std::lock_guard lock(mutex_);
  for (const auto& pair : by_request_) {
    if (pair != nullptr) {
      shm::Counter(&pair->end->done).Fail(error);
      shm::ShutGate(*pair->end);
    }
  }
}

}  // namespace ferry::client
