#include "internode/delivery/delivery.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

constexpr uint32_t kNoRank = ~uint32_t{0};
constexpr uint64_t kMaxCarriedBytes = 1 << 20;  // data that waits, having come with RTSs
constexpr uint64_t kMaxUnreportedBytes = 128 << 10;
constexpr uint32_t kMaxUnreportedTurns = 8;

bool IsKind(const Descriptor& descriptor, DescriptorKind kind) {
  return descriptor.kind == static_cast<uint8_t>(kind);
}

// Names an RTS by its source and the request. If a request is used twice, the later use counts.
uint64_t RtsKey(uint32_t source, uint32_t send_request) {
  return uint64_t{source} << 32 | send_request;
}

// A message of a remote rank, which its credits count; the rest are answers to this rank.
bool IsMessage(const Descriptor& descriptor) {
  return IsKind(descriptor, DescriptorKind::kEager) ||
         IsKind(descriptor, DescriptorKind::kRemoteRts) || IsKind(descriptor, DescriptorKind::kPut);
}

}  // namespace

Delivery::Delivery(shm::InboxLayout* inbox, uint32_t lane, uint64_t max_waiting,
                   uint64_t max_answers, uint64_t max_held_bytes,
                   std::shared_ptr<HoldBudget> budget)
    : layout_(reinterpret_cast<shm::LaneLayout*>(reinterpret_cast<std::byte*>(inbox) +
                                                 shm::InboxLaneOffset(lane))),
      lane_index_(lane),
      lane_(layout_),
      wake_(&inbox->wake),
      max_waiting_(max_waiting),
      max_answers_(max_answers),
      max_held_bytes_(max_held_bytes),
      budget_(std::move(budget)) {
  static_assert(sizeof(Incoming) + sizeof(uint64_t) + 4 * sizeof(void*) + sizeof(IncomingId) <=
                kNoteBytes);
  lane_.Open(kNoRank);
  after_last_cell_ = shm::LoadRelaxed(layout_->producer.tail);
}

Delivery::Result Delivery::Deliver(const Descriptor& descriptor, std::span<const std::byte> data) {
  if (IsKind(descriptor, DescriptorKind::kRetract)) {
    return Retract(descriptor);
  }
  if (IsKind(descriptor, DescriptorKind::kRemoteRts) && IsOverBudget(kNoteBytes)) {
    return Result::kQuota;
  }
  if (IsKind(descriptor, DescriptorKind::kRemoteRts) && !data.empty()) {
    return DeliverCarried(descriptor, data);
  }
  const Descriptor noted =
      IsKind(descriptor, DescriptorKind::kRemoteRts) ? Note(descriptor) : descriptor;
  if (waiting_.empty() && TryPush(noted, data)) {
    return Result::kTaken;
  }
  if (IsMessage(noted) && ++waiting_messages_ > max_waiting_) {
    return Result::kOverflow;
  }
  if (!IsMessage(noted) &&
      waiting_.size() - waiting_messages_ - waiting_retractions_ >= max_answers_) {
    flooded_ = true;
    return Result::kTaken;
  }
  waiting_.push_back({noted, {data.begin(), data.end()}});
  held_bytes_ += HeldBytes(waiting_.back());
  const Result result = Flush();
  return IsOverBudget() ? Result::kQuota : result;
}

void Delivery::Count() {
  const uint64_t held = parked_bytes_ + held_bytes_ + incoming_.size() * kNoteBytes;
  budget_->held_bytes += held - counted_bytes_;
  counted_bytes_ = held;
}

// Returns true if more is held than may be, or would be with `more_bytes`.
bool Delivery::IsOverBudget(uint64_t more_bytes) {
  Count();
  return counted_bytes_ + more_bytes > max_held_bytes_ ||
         budget_->held_bytes + more_bytes > budget_->most_bytes;
}

// Of data that has its own limit there is little (kMaxCarriedBytes).
uint64_t Delivery::HeldBytes(const Message& message) {
  return IsKind(message.descriptor, DescriptorKind::kEager) ? message.data.size() : 0;
}

Delivery::Result Delivery::DeliverArriving(const Descriptor& announced, IncomingId* id) {
  if (IsOverBudget(kNoteBytes)) {
    return Result::kQuota;
  }
  const Descriptor noted = NotePushed(announced, id);
  if (waiting_.empty() && TryPush(noted, {})) {
    return Result::kTaken;
  }
  if (++waiting_messages_ > max_waiting_) {
    return Result::kOverflow;
  }
  waiting_.push_back({noted, {}});
  return Flush();
}

Delivery::Result Delivery::DeliverPushed(const Descriptor& announced,
                                         std::span<const std::byte> data) {
  IncomingId id{};
  if (const Result result = DeliverArriving(announced, &id); result != Result::kTaken) {
    return result;
  }
  std::byte* const memory = TryHold(id);
  if (memory == nullptr) {
    return Result::kQuota;
  }
  std::copy(data.begin(), data.end(), memory);
  Park(id);
  return Result::kTaken;
}

std::byte* Delivery::TryHold(IncomingId id) {
  Incoming* const incoming = incoming_.Find(id);
  if (incoming == nullptr || IsOverBudget(incoming->size_bytes)) {
    return nullptr;
  }
  parked_bytes_ += incoming->size_bytes;
  incoming->parked = ParkedBytes(incoming->size_bytes);
  return incoming->parked.data();
}

Incoming* Delivery::FindArriving(IncomingId id) {
  Incoming* const incoming = incoming_.Find(id);
  return incoming != nullptr && incoming->kind == Incoming::Kind::kArriving ? incoming : nullptr;
}

// It waits in line even where there is room: the RTS may be in front of it, with its data.
Delivery::Result Delivery::Retract(const Descriptor& retract) {
  if (waiting_retractions_ >= incoming_.size() + waiting_messages_) {
    return Result::kTaken;  // more than there is to retract
  }
  waiting_.push_back({retract, {}});
  ++waiting_retractions_;
  return Flush();
}

void Delivery::Hint(const Descriptor& descriptor) {
  if (waiting_.empty() && shm::LaneConsumer(layout_).Backlog() < shm::kLaneSlots / 2 &&
      lane_.TryPush(descriptor)) {
    news_ = true;
  }
}

Delivery::Result Delivery::DeliverCarried(const Descriptor& announced,
                                          std::span<const std::byte> data) {
  if (waiting_.empty() && TryLand(announced, data)) {
    return Result::kTaken;
  }
  if (++waiting_messages_ > max_waiting_) {
    return Result::kOverflow;
  }
  waiting_.push_back({announced, {data.begin(), data.end()}});
  carried_bytes_ += data.size();
  if (carried_bytes_ > kMaxCarriedBytes) {
    DropData(waiting_.back());
  }
  return Flush();
}

// Delivers an RTS's data as an eager message, if there is room now.
bool Delivery::TryLand(const Descriptor& announced, std::span<const std::byte> data) {
  Descriptor eager = announced;
  eager.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  std::memset(eager.payload, 0, sizeof(eager.payload));
  if (!TryPush(eager, data)) {
    return false;
  }
  NoteLanded(announced);
  return true;
}

void Delivery::NoteLanded(const Descriptor& announced) {
  urgent_ = true;  // as the RTS would be
  shm::RemoteRts rts;
  std::memcpy(&rts, announced.payload, sizeof(rts));
  landed_.push_back({announced.source, rts.send_request, rts.send_generation});
  landed_bytes_ += announced.size_bytes;
}

std::byte* Delivery::TryReserve(uint64_t size_bytes, uint32_t* cell) {
  if (!waiting_.empty() || size_bytes <= shm::kInlineBytes || size_bytes > shm::kRunBytes) {
    return nullptr;
  }
  *cell = lane_.TryTakeCells(shm::CellsFor(size_bytes));
  return *cell == shm::kNoCell ? nullptr : reinterpret_cast<std::byte*>(lane_.Cell(*cell));
}

Delivery::Result Delivery::DeliverReserved(const Descriptor& announced, uint32_t cell) {
  if (!waiting_.empty() || !lane_.HasRoom()) {  // others came meanwhile
    const auto* const data = reinterpret_cast<const std::byte*>(lane_.Cell(cell));
    const std::vector<std::byte> copy(data, data + announced.size_bytes);
    ReturnReserved(cell, announced.size_bytes);
    return DeliverCarried(announced, copy);
  }
  Descriptor eager = announced;
  eager.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  std::memset(eager.payload, 0, sizeof(eager.payload));
  PushInCells(eager, cell);
  NoteLanded(announced);
  return Result::kTaken;
}

void Delivery::ReturnReserved(uint32_t cell, uint64_t size_bytes) {
  for (uint32_t i = 0; i < shm::CellsFor(size_bytes); ++i) {
    lane_.ReturnCell(cell + i);
  }
}

// The message becomes an RTS as any other.
void Delivery::DropData(Message& message) {
  carried_bytes_ -= message.data.size();
  message.data.clear();
  message.descriptor = Note(message.descriptor);
}

Delivery::Result Delivery::Flush() {
  while (!waiting_.empty()) {
    const Result result = Pass(waiting_.front());
    if (result != Result::kTaken) {
      return result == Result::kOverflow ? Result::kTaken : result;
    }
    Pop();
  }
  return Result::kTaken;
}

void Delivery::Pop() {
  const Descriptor& first = waiting_.front().descriptor;
  waiting_messages_ -= IsMessage(first) ? 1 : 0;
  waiting_retractions_ -= IsKind(first, DescriptorKind::kRetract) ? 1 : 0;
  held_bytes_ -= HeldBytes(waiting_.front());
  waiting_.pop_front();
}

// kOverflow: it has to wait on.
Delivery::Result Delivery::Pass(Message& next) {
  if (IsKind(next.descriptor, DescriptorKind::kRetract)) {
    return PassRetraction(next.descriptor);
  }
  const bool carried = IsKind(next.descriptor, DescriptorKind::kRemoteRts) && !next.data.empty();
  if (carried && TryLand(next.descriptor, next.data)) {
    carried_bytes_ -= next.data.size();
    return Result::kTaken;
  }
  if (!carried && TryPush(next.descriptor, next.data)) {
    return Result::kTaken;
  }
  // A rank that holds all cells may need what waits behind before it gives one back.
  if (!ShouldPark(next)) {
    return Result::kOverflow;
  }
  if (!carried) {
    return Park(next);
  }
  DropData(next);
  return TryPush(next.descriptor, {}) ? Result::kTaken : Result::kOverflow;
}

// The rank knows the RTS by the number of the note.
Delivery::Result Delivery::PassRetraction(const Descriptor& retract) {
  shm::RemoteRts rts;
  std::memcpy(&rts, retract.payload, sizeof(rts));
  const auto found = by_send_.find(RtsKey(retract.source, rts.send_request));
  Incoming* const incoming = found == by_send_.end() ? nullptr : incoming_.Find(found->second);
  if (incoming == nullptr || incoming->send_generation != rts.send_generation ||
      incoming->retracting) {
    return Result::kTaken;
  }
  Descriptor named = retract;
  rts.key = static_cast<uint64_t>(found->second);
  std::memcpy(named.payload, &rts, sizeof(rts));
  if (!TryPush(named, {})) {
    return Result::kOverflow;
  }
  incoming->retracting = true;
  return Result::kTaken;
}

bool Delivery::TryPush(const Descriptor& descriptor, std::span<const std::byte> data) {
  if (data.size() > shm::kInlineBytes) {
    return TryPushInCell(descriptor, data);
  }
  Descriptor pushed = descriptor;
  if (IsKind(descriptor, DescriptorKind::kEager)) {
    pushed.flags = 0;
    std::copy(data.begin(), data.end(), reinterpret_cast<std::byte*>(pushed.payload));
  }
  if (!lane_.TryPush(pushed)) {
    return false;
  }
  NotePushed(descriptor);
  return true;
}

bool Delivery::TryPushInCell(const Descriptor& descriptor, std::span<const std::byte> data) {
  if (!lane_.HasRoom()) {
    return false;
  }
  const uint32_t cell = lane_.TryTakeCells(shm::CellsFor(data.size()));
  if (cell == shm::kNoCell) {
    return false;
  }
  std::memcpy(lane_.Cell(cell), data.data(), data.size());
  PushInCells(descriptor, cell);
  return true;
}

// There is room.
void Delivery::PushInCells(const Descriptor& descriptor, uint32_t cell) {
  Descriptor pushed = descriptor;
  pushed.flags = shm::kFlagCell;
  pushed.cell = static_cast<uint16_t>(cell);
  lane_.TryPush(pushed);  // no other producer takes it
  after_last_cell_ = shm::LoadRelaxed(layout_->producer.tail);
  NotePushed(descriptor);
}

void Delivery::NotePushed(const Descriptor& descriptor) {
  news_ = true;
  // Eager messages can wait for the rank's next call, unless the lane fills up meanwhile.
  urgent_ = urgent_ || !IsKind(descriptor, DescriptorKind::kEager);
}

// Every message that took a cell was drained, and still no cell came back.
bool Delivery::RankHoldsAllCells() const {
  // Pairs with LaneConsumer::Pop and Journal::Commit.
  return shm::LoadAcquire(layout_->consumer.head) >= after_last_cell_;
}

bool Delivery::ShouldPark(const Message& message) {
  return message.data.size() > shm::kInlineBytes && RankHoldsAllCells() && lane_.HasRoom();
}

// Pushes a request-to-send in the message's place.
Delivery::Result Delivery::Park(Message& message) {
  // Its data is counted as what waits until it is parked.
  if (IsOverBudget(message.data.size() - HeldBytes(message) + kNoteBytes)) {
    return Result::kQuota;
  }
  parked_bytes_ += message.data.size();
  const IncomingId id = incoming_.Insert();
  Incoming& incoming = *incoming_.Find(id);
  incoming.kind = Incoming::Kind::kParked;
  incoming.source = message.descriptor.source;
  incoming.size_bytes = message.data.size();
  incoming.parked = ParkedBytes(message.data.size());
  std::copy(message.data.begin(), message.data.end(), incoming.parked.data());
  shm::RemoteRts rts{};
  rts.key = static_cast<uint64_t>(id);
  Descriptor descriptor = message.descriptor;
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kRemoteRts);
  descriptor.flags = shm::kFlagSourcePrivate;
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  lane_.TryPush(descriptor);
  NotePushed(descriptor);
  return Result::kTaken;
}

// Keeps what the RTS says; the rank gets the number of the note.
Descriptor Delivery::Note(const Descriptor& announced) {
  shm::RemoteRts rts;
  std::memcpy(&rts, announced.payload, sizeof(rts));
  const IncomingId id = incoming_.Insert();
  Incoming& incoming = *incoming_.Find(id);
  incoming.kind = (announced.flags & shm::kFlagSourcePrivate) != 0 ? Incoming::Kind::kPrivate
                                                                   : Incoming::Kind::kHeap;
  incoming.source = announced.source;
  incoming.send_request = rts.send_request;
  incoming.send_generation = rts.send_generation;
  incoming.key = rts.key;
  incoming.address = rts.where.address;
  incoming.size_bytes = announced.size_bytes;
  by_send_[RtsKey(announced.source, rts.send_request)] = id;
  Count();
  rts.key = static_cast<uint64_t>(id);
  rts.where = {};
  Descriptor noted = announced;
  std::memcpy(noted.payload, &rts, sizeof(rts));
  return noted;
}

// As Note, for a pushed message, which cannot be fetched from its sender.
Descriptor Delivery::NotePushed(const Descriptor& announced, IncomingId* id) {
  *id = incoming_.Insert();
  Incoming& incoming = *incoming_.Find(*id);
  incoming.kind = Incoming::Kind::kArriving;
  incoming.source = announced.source;
  incoming.size_bytes = announced.size_bytes;
  Count();
  shm::RemoteRts rts{};
  rts.key = static_cast<uint64_t>(*id);
  Descriptor noted = announced;
  std::memcpy(noted.payload, &rts, sizeof(rts));
  return noted;
}

void Delivery::Forget(IncomingId id) {
  if (const Incoming* incoming = incoming_.Find(id); incoming != nullptr) {
    parked_bytes_ -= incoming->parked.size();
    EraseRts(id, *incoming);
  }
}

void Delivery::EraseRts(IncomingId id, const Incoming& incoming) {
  const auto found = by_send_.find(RtsKey(incoming.source, incoming.send_request));
  if (found != by_send_.end() && found->second == id) {
    by_send_.erase(found);
  }
  incoming_.Erase(id);
  Count();
}

ParkedBytes Delivery::TakeParked(IncomingId id) {
  Incoming* incoming = incoming_.Find(id);
  parked_bytes_ -= incoming->parked.size();
  ParkedBytes bytes = std::move(incoming->parked);
  incoming_.Erase(id);
  Count();
  return bytes;
}

bool Delivery::HasRtsOf(uint32_t source) {
  bool any = false;
  incoming_.ForEach([&](IncomingId, const Incoming& incoming) {
    any |= incoming.source == source && incoming.is_fetched();
  });
  return any;
}

void Delivery::ForgetRtsOf(uint32_t source) {
  incoming_.ForEach([&](IncomingId id, const Incoming& incoming) {
    if (incoming.source == source && incoming.is_fetched()) {
      EraseRts(id, incoming);
    }
  });
}

void Delivery::DropWaitingOf(uint32_t source) {
  std::erase_if(waiting_, [&](const Message& message) {
    const bool counted = IsMessage(message.descriptor);
    const bool retracts = IsKind(message.descriptor, DescriptorKind::kRetract);
    const bool lost = message.descriptor.source == source &&
                      (counted || retracts || IsKind(message.descriptor, DescriptorKind::kCredit) ||
                       IsKind(message.descriptor, DescriptorKind::kSwitch));
    waiting_retractions_ -= lost && retracts ? 1 : 0;
    held_bytes_ -= lost ? HeldBytes(message) : 0;
    if (lost && counted) {
      if (message.data.empty()) {
        ForgetPushed(message.descriptor);
      }
      --waiting_messages_;
      carried_bytes_ -=
          IsKind(message.descriptor, DescriptorKind::kRemoteRts) ? message.data.size() : 0;
    }
    return lost;
  });
}

// If it is one, and the rank will not hear of it any more.
void Delivery::ForgetPushed(const Descriptor& noted) {
  if (IsKind(noted, DescriptorKind::kRemoteRts) && (noted.flags & shm::kFlagPushed) != 0) {
    shm::RemoteRts rts;
    std::memcpy(&rts, noted.payload, sizeof(rts));
    const IncomingId id{rts.key};
    const Incoming* const incoming = incoming_.Find(id);
    // The transport may be writing there: it stays until the session ends.
    if (incoming != nullptr && incoming->kind != Incoming::Kind::kArriving) {
      Forget(id);
    }
  }
}

bool Delivery::MustReport(bool more_came) {
  if (landed_.empty()) {
    return false;
  }
  // Without pairing: a hint.
  const bool rank_waits = wake_.HasVisitors();
  return !more_came || !rank_waits || landed_bytes_ >= kMaxUnreportedBytes ||
         ++unreported_turns_ == kMaxUnreportedTurns;
}

bool Delivery::Announce() {
  wake_.PublishLane(lane_index_);
  const bool crowded = shm::LaneConsumer(layout_).Backlog() > shm::kLaneSlots / 2;
  const bool must_look = urgent_ || crowded || !waiting_.empty();
  news_ = urgent_ = false;
  return must_look && wake_.MustAttend();
}

}  // namespace ferry::progress
