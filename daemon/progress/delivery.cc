#include "daemon/progress/delivery.h"

#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::daemon {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

constexpr uint32_t kNoRank = ~uint32_t{0};

bool IsKind(const Descriptor& descriptor, DescriptorKind kind) {
  return descriptor.kind == static_cast<uint8_t>(kind);
}

// A message of a remote rank, which its credits count; the rest are answers to this rank.
bool IsMessage(const Descriptor& descriptor) {
  return IsKind(descriptor, DescriptorKind::kEager) ||
         IsKind(descriptor, DescriptorKind::kRemoteRts);
}

}  // namespace

Delivery::Delivery(shm::InboxLayout* inbox, uint32_t local_size, uint64_t max_waiting,
                   uint64_t max_parked_bytes)
    : layout_(reinterpret_cast<shm::LaneLayout*>(
          reinterpret_cast<std::byte*>(inbox) + shm::InboxLaneOffset(shm::DaemonLane(local_size)))),
      lane_index_(shm::DaemonLane(local_size)),
      lane_(layout_),
      wake_(&inbox->wake),
      max_waiting_(max_waiting),
      max_parked_bytes_(max_parked_bytes) {
  lane_.Open(kNoRank);
  after_last_cell_ = shm::LoadRelaxed(layout_->producer.tail);
}

Delivery::Result Delivery::Deliver(const Descriptor& descriptor, std::span<const std::byte> data) {
  if (waiting_.empty() && TryPush(descriptor, data)) {
    return Result::kTaken;
  }
  if (IsMessage(descriptor) && ++waiting_messages_ > max_waiting_) {
    return Result::kOverflow;
  }
  waiting_.push_back({descriptor, {data.begin(), data.end()}});
  return Flush();
}

Delivery::Result Delivery::Flush() {
  while (!waiting_.empty()) {
    Message& next = waiting_.front();
    if (!TryPush(next.descriptor, next.data)) {
      if (!ShouldPark(next)) {
        return Result::kTaken;
      }
      if (const Result result = Park(next); result != Result::kTaken) {
        return result;
      }
    }
    waiting_messages_ -= IsMessage(waiting_.front().descriptor) ? 1 : 0;
    waiting_.pop_front();
  }
  return Result::kTaken;
}

bool Delivery::TryPush(const Descriptor& descriptor, std::span<const std::byte> data) {
  if (data.size() > shm::kInlineBytes) {
    return TryPushInCell(descriptor, data);
  }
  Descriptor pushed = descriptor;
  if (IsKind(descriptor, DescriptorKind::kEager)) {
    pushed.flags = 0;
    std::memcpy(pushed.payload, data.data(), data.size());
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
  const uint32_t cell = lane_.TryTakeCell();
  if (cell == shm::kNoCell) {
    return false;
  }
  std::memcpy(lane_.Cell(cell), data.data(), data.size());
  Descriptor pushed = descriptor;
  pushed.flags = shm::kFlagCell;
  pushed.cell = static_cast<uint16_t>(cell);
  lane_.TryPush(pushed);  // there is room, and no other producer
  after_last_cell_ = shm::LoadRelaxed(layout_->producer.tail);
  NotePushed(descriptor);
  return true;
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

// Pushes a request-to-send in the message's place. It names no request (0): Pulls knows by that
// where the bytes are.
Delivery::Result Delivery::Park(Message& message) {
  if (parked_bytes_ + message.data.size() > max_parked_bytes_) {
    return Result::kQuota;
  }
  parked_bytes_ += message.data.size();
  const ParkedId id = parked_.Insert();
  *parked_.Find(id) = std::move(message.data);
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

bool Delivery::Announce() {
  wake_.PublishLane(lane_index_);
  const bool crowded = shm::LaneConsumer(layout_).Backlog() > shm::kLaneSlots / 2;
  const bool must_look = urgent_ || crowded || !waiting_.empty();
  news_ = urgent_ = false;
  return must_look && wake_.MustAttend();
}

const std::vector<std::byte>* Delivery::Parked(ParkedId id) { return parked_.Find(id); }

void Delivery::Unpark(ParkedId id) {
  if (const auto* data = parked_.Find(id); data != nullptr) {
    parked_bytes_ -= data->size();
    parked_.Erase(id);
  }
}

}  // namespace ferry::daemon
