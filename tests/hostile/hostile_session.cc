#include "tests/hostile/hostile_session.h"

#include <unistd.h>

#include <array>
#include <cstring>

#include "engine/session_view.h"
#include "shm/atomic.h"
#include "shm/lane.h"

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
  (void)rank_.SendRegion(1, kHeapBytes);
  return true;
}

shm::TransferLayout* HostileSession::transfer(uint64_t index) {
  return reinterpret_cast<shm::TransferLayout*>(inbox_map_.base() +
                                                shm::InboxTransferOffset(local_size_)) +
         index;
}

std::pair<std::byte*, size_t> HostileSession::Area(Dice& dice) {
  switch (dice.Below(5)) {
    case 0:
      return {session_map_.base(), 16'384};
    case 1:
      return {session_map_.base() + offsetof(shm::SessionLayout, to_daemon), 20'480};
    case 2:
      return {session_map_.base(), session_map_.size_bytes()};
    case 3:
      return {inbox_map_.base(), 4096};
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

void HostileSession::Ring() {
  shm::FetchOr(session()->daemon_wake.activity[0], ~uint64_t{0}, std::memory_order_seq_cst);
  const uint64_t one = 1;
  (void)!write(doorbell_.get(), &one, sizeof(one));
}

}  // namespace ferry::hostile
