#include "tests/hostile/hostile_session.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <iterator>

#include "engine/session_view.h"
#include "shm/atomic.h"
#include "shm/lane.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/mpsc_ring.h"

namespace ferry::hostile {

using daemon::Answer;

bool HostileSession::Enter(const std::string& attach_socket, std::string* why_not) {
  if (const Status connected = rank_.Connect(attach_socket); !connected.ok()) {
    *why_not = connected.message();
    return false;
  }
  Answer answer = rank_.Attach();
  const engine::SegmentPlan plan{number_, size_, local_size_, daemon::kTestRequests,
                                 daemon::kTestMatches};
  session_fd_ = std::move(*shm::CreateSegment("hostile-session", plan.session_bytes()));
  inbox_fd_ = std::move(*shm::CreateSegment("hostile-inbox", plan.inbox_bytes()));
  session_map_ = std::move(*shm::MapSegment(session_fd_.get(), 0));
  inbox_map_ = std::move(*shm::MapSegment(inbox_fd_.get(), 0));
  engine::InitializeSegments(plan, static_cast<uint32_t>(getpid()), session_map_.base(),
                             inbox_map_.base());
  if (answer.code() == ErrorCode::kOk && !answer.hang_up) {
    attach::SegmentsRequest request{};
    request.header = rank_.Header(attach::Kind::kSegments);
    request.session_bytes = plan.session_bytes();
    request.inbox_bytes = plan.inbox_bytes();
    answer = rank_.Ask(request, {session_fd_.get(), inbox_fd_.get()});
  }
  if (answer.code() != ErrorCode::kOk || answer.packet.fds.empty()) {
    *why_not = answer.hang_up ? "it hung up" : answer.text();
    return false;
  }
  doorbell_ = std::move(answer.packet.fds[0]);
  heap_fd_ = std::move(*shm::CreateSegment("hostile-heap", kHeapBytes));
  heap_ = std::move(*shm::MapSegment(heap_fd_.get(), kHeapBytes));
  (void)rank_.SendRegion(1, kHeapBytes, heap_fd_.get());
  return true;
}

shm::TransferLayout* HostileSession::transfer(uint64_t index) {
  return reinterpret_cast<shm::TransferLayout*>(inbox_map_.base() +
                                                shm::InboxTransferOffset(local_size_)) +
         index;
}

std::pair<std::byte*, size_t> HostileSession::Area(Dice& dice) {
  const auto by_rank = shm::PlacesOfSession(size_, daemon::kTestRequests);
  switch (dice.Below(6)) {
    case 0:
      return {session_map_.base(), 16'384};
    case 1:
      return {session_map_.base() + offsetof(shm::SessionLayout, to_daemon), 20'480};
    case 2:
      return {session_map_.base(), session_map_.size_bytes()};
    case 3:
      return {inbox_map_.base(), 4096};
    case 4:
      return {session_map_.base() + by_rank.peers, by_rank.match - by_rank.peers};
    default:
      return {inbox_map_.base(), inbox_map_.size_bytes()};
  }
}

void HostileSession::PushCommands(Dice& dice) {
  constexpr uint64_t kKinds = static_cast<uint64_t>(shm::DescriptorKind::kLinkWanted) + 1;
  shm::LaneProducer lane(&session()->to_daemon);
  for (uint64_t count = 1 + dice.Below(16); count > 0; --count) {
    shm::Descriptor command{};
    command.kind = static_cast<uint8_t>(dice.Below(kKinds + 1));
    command.flags = static_cast<uint8_t>(dice.OneIn(2) ? 0 : dice.Below(16));
    command.source = dice.Mostly<uint32_t>(static_cast<uint32_t>(dice.Below(size_)));
    command.destination = dice.Mostly<uint32_t>(static_cast<uint32_t>(dice.Below(size_)));
    command.tag = dice.Mostly<int32_t>(static_cast<int32_t>(dice.Below(4)));
    command.size_bytes = dice.Mostly<uint64_t>(dice.Below(70'000));
    if (dice.OneIn(2)) {
      command.cell = static_cast<uint16_t>(lane.TryTakeCell());
    }
    // Requests, generations, regions and addresses lie in words of four and eight bytes.
    std::array<uint32_t, sizeof(command.payload) / 4> words{};
    for (uint32_t& word : words) {
      word = static_cast<uint32_t>(dice.OneIn(3) ? dice.Number() : dice.Below(3));
    }
    std::memcpy(command.payload, words.data(), sizeof(command.payload));
    dice.Spoil(&command);
    lane.TryPush(command);
  }
}

// Of whatever else it is told here, it takes no notice.
void HostileSession::ReadOrders() {
  constexpr size_t kMostOrders = 16;
  pollfd waiting{rank_.socket(), POLLIN, 0};
  for (int i = 0; i < 8 && poll(&waiting, 1, 0) == 1 && (waiting.revents & POLLHUP) == 0; ++i) {
    daemon::SocketPacket packet;
    const auto received = daemon::ReceivePacket(rank_.socket(), &packet);
    if (!received.ok() || *received != daemon::Received::kPacket) {
      return;
    }
    if (const auto* order = packet.As<attach::LinkOrder>(); order != nullptr) {
      orders_.push_back(*order);
      if (orders_.size() > kMostOrders) {
        orders_.pop_front();
      }
    }
  }
}

attach::LinkReply HostileSession::ReplyTo(const attach::LinkOrder& order, Dice& dice) {
  // The answer of a correct rank to an order of each kind.
  constexpr attach::LinkEvent kRight[] = {
      attach::LinkEvent::kReturned, attach::LinkEvent::kOpened, attach::LinkEvent::kUsed,
      attach::LinkEvent::kReturned, attach::LinkEvent::kEnded,  attach::LinkEvent::kLost};
  attach::LinkReply reply{};
  reply.header = rank_.Header(attach::Kind::kLinkReply);
  reply.event = dice.OneIn(3) ? static_cast<uint32_t>(dice.Below(8))
                              : static_cast<uint32_t>(kRight[order.op % std::size(kRight)]);
  reply.peer = order.peer;
  reply.link = order.link;
  reply.code = static_cast<int32_t>(dice.OneIn(4) ? dice.Below(40) : 0);
  reply.flags = static_cast<uint32_t>(dice.Below(2));
  // Its own endpoint is said to be where the peer's is, or anywhere.
  reply.address_bytes = static_cast<uint32_t>(dice.OneIn(4) ? dice.Number() : 40);
  std::memcpy(reply.address, order.address, sizeof(reply.address));
  if (dice.OneIn(2)) {
    const std::string address = dice.Text(attach::kLinkAddressBytes);
    std::memcpy(reply.address, address.data(), address.size());
  }
  const std::string text = dice.Text(sizeof(reply.text));
  std::memcpy(reply.text, text.data(), text.size());
  return reply;
}

void HostileSession::AbuseLinks(Dice& dice) {
  ReadOrders();
  if (orders_.empty() || dice.OneIn(3)) {
    shm::LaneProducer lane(&session()->to_daemon);
    shm::Descriptor command{};
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kLinkWanted);
    command.source = number_;
    command.destination = dice.Mostly<uint32_t>(size_ - 1 - number_ % size_);
    const shm::LinkCommand words{static_cast<uint32_t>(dice.OneIn(2) ? 0 : dice.Below(4)), 0, {}};
    std::memcpy(command.payload, &words, sizeof(words));
    lane.TryPush(command);
  }
  attach::LinkOrder unasked{};
  unasked.op = static_cast<uint32_t>(dice.Below(7));
  unasked.peer = dice.Mostly<uint32_t>(static_cast<uint32_t>(dice.Below(size_)));
  unasked.link = dice.Below(4);
  const bool answers = !orders_.empty() && !dice.OneIn(8);
  attach::LinkReply reply = ReplyTo(answers ? orders_[dice.Below(orders_.size())] : unasked, dice);
  if (dice.OneIn(8)) {
    dice.Spoil(&reply);
  }
  for (uint64_t count = dice.OneIn(4) ? 2 : 1; count > 0; --count) {
    (void)daemon::SendPacket(rank_.socket(), reply).ok();
  }
  if (answers && dice.OneIn(2)) {
    orders_.pop_front();
  }
}

void HostileSession::AbuseRings(Dice& dice) {
  constexpr uint32_t kSlots = 64;
  constexpr uint64_t kRingBytes = 64 << 10;
  const uint64_t which = dice.Below(shm::kMaxRings);
  shm::RingWords& words = session()->rings[which];
  const uint64_t offset = which % 8 * kRingBytes;
  auto* const layout = reinterpret_cast<shm::MpscRingLayout*>(heap_.base() + offset);
  if (dice.OneIn(4)) {
    std::memset(static_cast<void*>(layout), 0, shm::MpscRing::SizeBytes(kSlots));
    (void)shm::MpscRing::Initialize(layout, kSlots).ok();
    layout->completions = kSlots;
    layout->region = 1;
    layout->completions_offset = offset + shm::MpscRing::SizeBytes(kSlots);
    words.region = dice.Mostly<uint32_t>(1);
    words.offset = dice.Mostly<uint64_t>(offset);
    words.capacity = dice.Mostly<uint32_t>(kSlots);
    shm::StoreRelease(words.life, dice.Mostly<uint32_t>(words.life + 1));
    shm::FetchAdd(session()->rings_changed, uint64_t{1}, std::memory_order_seq_cst);
  }
  auto* const slots = reinterpret_cast<shm::MpscSlot*>(layout + 1);
  for (uint64_t count = 1 + dice.Below(8); count > 0; --count) {
    const uint64_t ticket = shm::FetchAdd(layout->tickets, 1, std::memory_order_relaxed);
    shm::RingOperation request{};
    request.kind = static_cast<uint32_t>(dice.Below(12));
    request.completion_region = dice.Mostly<uint32_t>(1);
    request.completion =
        dice.Mostly<uint64_t>(layout->completions_offset + 16 * dice.Below(kSlots));
    request.region = dice.Mostly<uint32_t>(1);
    request.operation = static_cast<uint8_t>(dice.Below(16));
    request.width = dice.Mostly<uint8_t>(8);
    request.flags = static_cast<uint16_t>(dice.Below(4));
    request.operand = dice.Mostly<uint64_t>(8 * dice.Below(1024));
    request.there = dice.Mostly<uint64_t>(8 * dice.Below(1024));
    request.rank = dice.Mostly<uint32_t>(static_cast<uint32_t>(dice.Below(size_)));
    request.segment = dice.Mostly<uint32_t>(1);
    request.compare = dice.Mostly<uint64_t>(dice.Below(16));
    if (dice.OneIn(4)) {
      dice.Spoil(&request);
    }
    shm::MpscSlot& slot = slots[ticket % kSlots];
    std::memcpy(slot.payload, &request, sizeof(request));
    shm::StoreRelease(slot.number, dice.Mostly<uint64_t>(ticket + 1));
  }
  if (dice.OneIn(8)) {
    dice.Spoil(layout);
  }
}

void HostileSession::Ring() {
  shm::FetchOr(session()->daemon_wake.activity[0], ~uint64_t{0}, std::memory_order_seq_cst);
  const uint64_t one = 1;
  (void)!write(doorbell_.get(), &one, sizeof(one));
}

}  // namespace ferry::hostile
