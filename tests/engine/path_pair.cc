#include "tests/engine/path_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;

namespace {

DescriptorKind KindOf(const Descriptor& descriptor) {
  return static_cast<DescriptorKind>(descriptor.kind);
}

uint32_t Other(uint32_t side) { return 1 - side; }

template <typename... Values>
void Append(std::string* key, const Values&... values) {
  ((*key += std::to_string(static_cast<uint64_t>(values)) + ","), ...);
}

// Without the stamp. Addresses differ from run to run.
void AppendDescriptor(std::string* key, const Descriptor& descriptor) {
  Append(key, descriptor.kind, descriptor.flags, descriptor.tag, descriptor.size_bytes);
  const bool names_memory = KindOf(descriptor) == DescriptorKind::kRemoteRts ||
                            KindOf(descriptor) == DescriptorKind::kRtr ||
                            KindOf(descriptor) == DescriptorKind::kWithdraw ||
                            KindOf(descriptor) == DescriptorKind::kPut;
  key->append(reinterpret_cast<const char*>(descriptor.payload),
              names_memory ? offsetof(shm::RemoteRts, where) : shm::kInlineBytes);
}

}  // namespace

PathPair::PathPair(const EngineOptions& options, const NodeOptions& node) {
  for (uint32_t side = 0; side < 2; ++side) {
    nodes_[side] = std::make_unique<TestNode>(node, options);
  }
  Restart();
}

void PathPair::Restart() {
  state_ = {};
  for (uint32_t side = 0; side < 2; ++side) {
    nodes_[side]->Restart();
    workers_[side] = std::make_unique<TestRank>(*nodes_[side], 0, Runner::kWorker);
    engine(side).sends().OpenLane(kPeer);
  }
}

void PathPair::UseLink(uint32_t side) {
  Effects effects;
  (void)engine(side).paths().UseLink(kPeer, effects);
  TakeCommands(side);
}

void PathPair::LeaveLink(uint32_t side) {
  Effects effects;
  engine(side).paths().LeaveLink(kPeer, effects);
  TakeCommands(side);
}

// ---- Packets -----------------------------------------------------------------------------------

bool PathPair::Passes(Core core, uint32_t side) const {
  return core == Core::kDaemon ? state_.life[side] == Life::kUp
                               : state_.has_end[side] && !state_.is_lost;
}

bool PathPair::CanDeliver(Core core, uint32_t to) const {
  const Half& half = At(core, to);
  if (half.arriving.empty() || state_.is_dead[to] ||
      !(core == Core::kDaemon ? state_.life[to] != Life::kCut : state_.has_end[to])) {
    return false;
  }
  const shm::LaneLayout& lane = *LaneTo(core, to);
  const Packet& next = half.arriving.front();
  const bool takes_cell = next.descriptor.kind == static_cast<uint8_t>(DescriptorKind::kEager) &&
                          next.data.size() > shm::kInlineBytes;
  return half.results.empty() && lane.producer.tail - lane.consumer.head < shm::kLaneSlots &&
         (!takes_cell || std::count(std::begin(lane.cell_state), std::end(lane.cell_state),
                                    static_cast<uint8_t>(shm::CellState::kFree)) != 0);
}

shm::LaneLayout* PathPair::LaneTo(Core core, uint32_t side) const {
  const InboxView& inbox = view(side).inbox;
  return inbox.lane(inbox.local_size + static_cast<uint32_t>(core));
}

void PathPair::Deliver(Core core, uint32_t to) {
  Half& half = At(core, to);
  Packet packet = std::move(half.arriving.front());
  half.arriving.pop_front();
  if (packet.says_death) {
    nodes_[to]->MarkDead(0, kPeer);
    return;
  }
  Descriptor& descriptor = packet.descriptor;
  if (KindOf(descriptor) == DescriptorKind::kRemoteRts) {
    auto rts = PayloadOf<shm::RemoteRts>(descriptor);
    const uint64_t key = half.next_key++;
    half.incoming[key] = {rts.send_request, rts.send_generation, packet.address, packet.data,
                          (descriptor.flags & shm::kFlagPushed) != 0};
    rts.key = key;
    rts.where = {};
    SetPayload(&descriptor, rts);
    packet.data.clear();
  } else if (KindOf(descriptor) == DescriptorKind::kRetract) {
    auto rts = PayloadOf<shm::RemoteRts>(descriptor);
    const auto announced =
        std::find_if(half.incoming.begin(), half.incoming.end(), [&](auto& entry) {
          return entry.second.send_request == rts.send_request &&
                 entry.second.send_generation == rts.send_generation;
        });
    if (announced == half.incoming.end()) {
      return;  // it was fetched
    }
    rts.key = announced->first;
    SetPayload(&descriptor, rts);
  } else if (KindOf(descriptor) == DescriptorKind::kRtr ||
             KindOf(descriptor) == DescriptorKind::kWithdraw) {
    DeliverRtr(to, &packet);
  } else if (KindOf(descriptor) == DescriptorKind::kPut) {
    const auto put = PayloadOf<shm::PutCommand>(descriptor);
    half.rtr_receives.erase({put.receive, put.generation});
    Push(core, to, descriptor, {});
    Result(core, to, DescriptorKind::kRndvGetDone, put.receive, put.generation, ErrorCode::kOk);
    return;
  } else if (KindOf(descriptor) == DescriptorKind::kWithdrawn) {
    const auto result = PayloadOf<shm::TransferResult>(descriptor);
    half.rtr_receives.erase({result.request, result.generation});
  } else if (KindOf(descriptor) == DescriptorKind::kSendDone) {
    const auto result = PayloadOf<shm::TransferResult>(descriptor);
    std::erase_if(half.by_rts, [&](const shm::TransferResult& announced) {
      return announced.request == result.request && announced.generation == result.generation;
    });
  }
  Push(core, to, descriptor, packet.data);
}

void PathPair::Push(Core core, uint32_t side, const Descriptor& descriptor,
                    const std::string& data) {
  shm::LaneProducer producer(LaneTo(core, side));
  Descriptor pushed = descriptor;
  pushed.source = kPeer;
  pushed.destination = 0;
  pushed.flags &= ~shm::kFlagCell;
  if (data.size() > shm::kInlineBytes) {
    pushed.cell = static_cast<uint16_t>(producer.TryTakeCell());
    ASSERT_NE(pushed.cell, static_cast<uint16_t>(shm::kNoCell));
    std::memcpy(producer.Cell(pushed.cell), data.data(), data.size());
    pushed.flags |= shm::kFlagCell;
  } else if (!data.empty()) {
    std::memcpy(pushed.payload, data.data(), data.size());
  }
  ASSERT_TRUE(producer.TryPush(pushed));
  const InboxView& inbox = view(side).inbox;
  shm::Wake(inbox.wake()).PublishLane(inbox.local_size + static_cast<uint32_t>(core));
}

void PathPair::Send(Core core, uint32_t side, Packet packet) {
  const bool is_closed = core == Core::kLink && !state_.has_end[Other(side)];
  if (Passes(core, side) && !is_closed) {
    At(core, Other(side)).arriving.push_back(std::move(packet));
  }
}

void PathPair::Result(Core core, uint32_t side, DescriptorKind kind, uint32_t request,
                      uint32_t generation, ErrorCode error) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(kind);
  SetPayload(&descriptor,
             shm::TransferResult{request, generation, static_cast<int32_t>(error), 0, {}});
  At(core, side).results.push_back(descriptor);
  PushResults(core, side);
}

void PathPair::PushResults(Core core, uint32_t side) {
  std::deque<Descriptor>& results = At(core, side).results;
  while (!results.empty() && shm::LaneProducer(LaneTo(core, side)).HasRoom()) {
    Push(core, side, results.front(), {});
    results.pop_front();
  }
}

// ---- Commands ----------------------------------------------------------------------------------

void PathPair::TakeCommands(uint32_t side) {
  shm::SessionLayout& session = *view(side).layout;
  for (const Core core : kCores) {
    PushResults(core, side);
    shm::LaneConsumer lane(core == Core::kLink ? &session.to_link : &session.to_daemon);
    while (const Descriptor* next = lane.Peek()) {
      const Descriptor command = *next;
      lane.Pop();
      TakeCommand(core, side, command);
      if ((command.flags & shm::kFlagCell) != 0) {
        lane.ReleaseCell(command.cell);
      }
    }
  }
}

void PathPair::TakeCommand(Core core, uint32_t side, const Descriptor& command) {
  shm::SessionLayout& session = *view(side).layout;
  shm::LaneConsumer lane(core == Core::kLink ? &session.to_link : &session.to_daemon);
  Packet packet;
  packet.descriptor = command;
  switch (KindOf(command)) {
    case DescriptorKind::kEager: {
      const uint8_t* data =
          (command.flags & shm::kFlagCell) != 0 ? lane.Cell(command.cell) : command.payload;
      packet.data.assign(reinterpret_cast<const char*>(data), command.size_bytes);
      Send(core, side, packet);
      break;
    }
    case DescriptorKind::kRemoteRts:
      Rts(core, side, packet);
      break;
    case DescriptorKind::kRndvGet:
      RndvGet(core, side, command);
      break;
    case DescriptorKind::kRtr: {
      EXPECT_EQ(core, Core::kDaemon);
      const auto words = PayloadOf<shm::RtrWords>(command);
      if (Passes(core, side)) {
        At(core, side).rtr_receives.insert({words.receive, words.generation});
      }
      Send(core, side, packet);
      break;
    }
    case DescriptorKind::kWithdraw:
      EXPECT_EQ(core, Core::kDaemon);
      Withdraw(side, command);
      break;
    case DescriptorKind::kPut:
      EXPECT_EQ(core, Core::kDaemon);
      Put(side, command);
      break;
    case DescriptorKind::kCredit:
    case DescriptorKind::kSwitch:
      Send(core, side, packet);
      break;
    case DescriptorKind::kRetract: {
      const auto rts = PayloadOf<shm::RemoteRts>(command);
      const std::vector<shm::TransferResult>& by_rts = At(core, side).by_rts;
      if (std::any_of(by_rts.begin(), by_rts.end(), [&](const shm::TransferResult& announced) {
            return announced.request == rts.send_request &&
                   announced.generation == rts.send_generation;
          })) {  // else it is over: what was pushed is
        Send(core, side, packet);
      }
      break;
    }
    case DescriptorKind::kRetracted: {
      const auto rts = PayloadOf<shm::RemoteRts>(command);
      if (At(core, side).incoming.erase(rts.key) != 0) {
        packet.descriptor.kind = static_cast<uint8_t>(DescriptorKind::kSendDone);
        SetPayload(&packet.descriptor,
                   shm::TransferResult{rts.send_request,
                                       rts.send_generation,
                                       static_cast<int32_t>(ErrorCode::kCancelled),
                                       0,
                                       {}});
        Send(core, side, packet);
      }
      break;
    }
    case DescriptorKind::kLinkWanted: {
      EXPECT_EQ(core, Core::kDaemon);
      const auto matter = static_cast<shm::LinkMatter>(PayloadOf<shm::LinkCommand>(command).matter);
      state_.told[side].push_back(matter);
      if (matter == shm::LinkMatter::kBroken && IsUp(side) && !is_dead(Other(side))) {
        Cut();
      }
      break;
    }
    default:
      ADD_FAILURE() << "a command of kind " << int{command.kind};
  }
}

// A pushed message is complete once the core has it.
void PathPair::Rts(Core core, uint32_t side, Packet packet) {
  const auto rts = PayloadOf<shm::RemoteRts>(packet.descriptor);
  if (!Passes(core, side)) {
    if (!(core == Core::kLink && state_.is_lost &&
          state_.has_end[side])) {  // else it is told with the loss
      Result(core, side, DescriptorKind::kSendDone, rts.send_request, rts.send_generation,
             ErrorCode::kLinkDown);
      return;
    }
    At(core, side).by_rts.push_back({rts.send_request, rts.send_generation, 0, 0, {}});
    return;
  }
  packet.address = rts.where.address;
  if ((packet.descriptor.flags & shm::kFlagPushed) != 0) {
    packet.data.assign(reinterpret_cast<const char*>(packet.address), packet.descriptor.size_bytes);
    Result(core, side, DescriptorKind::kSendDone, rts.send_request, rts.send_generation,
           ErrorCode::kOk);
  } else {
    At(core, side).by_rts.push_back({rts.send_request, rts.send_generation, 0, 0, {}});
  }
  Send(core, side, packet);
}

void PathPair::RndvGet(Core core, uint32_t side, const Descriptor& command) {
  const auto rndv_get = PayloadOf<shm::RndvGetCommand>(command);
  const shm::TransferLayout& transfer = *view(side).inbox.transfer(rndv_get.transfer);
  Half& half = At(core, side);
  const auto found = half.incoming.find(transfer.remote_key);
  const bool is_there =
      found != half.incoming.end() && (Passes(core, side) || found->second.is_pushed);
  if (!is_there) {
    Result(core, side, DescriptorKind::kRndvGetDone, rndv_get.transfer, rndv_get.generation,
           ErrorCode::kLinkDown);
    return;
  }
  const Incoming& incoming = found->second;
  EXPECT_EQ(incoming.send_request, transfer.remote_request) << "an RTS of the other core";
  EXPECT_EQ(incoming.send_generation, transfer.remote_generation);
  const shm::RequestLayout& slot = rank(side).slot(rndv_get.transfer);
  std::memcpy(
      reinterpret_cast<void*>(slot.buffer.address),
      incoming.is_pushed ? incoming.pushed.data() : reinterpret_cast<const char*>(incoming.address),
      command.size_bytes);
  Result(core, side, DescriptorKind::kRndvGetDone, rndv_get.transfer, rndv_get.generation,
         ErrorCode::kOk);
  if (!incoming.is_pushed) {
    Packet answer;
    answer.descriptor.kind = static_cast<uint8_t>(DescriptorKind::kSendDone);
    SetPayload(&answer.descriptor,
               shm::TransferResult{incoming.send_request, incoming.send_generation, 0, 0, {}});
    Send(core, side, answer);
  }
  half.incoming.erase(found);
}

// Receivers take RTRs back; where no source can write any more, at once.
void PathPair::Withdraw(uint32_t side, const Descriptor& command) {
  const auto words = PayloadOf<shm::RtrWords>(command);
  Half& half = At(Core::kDaemon, side);
  if ((command.flags & shm::kFlagMatched) != 0) {
    half.rtr_receives.erase({words.receive, words.generation});
  } else if (!Passes(Core::kDaemon, side)) {
    Result(Core::kDaemon, side, DescriptorKind::kWithdrawn, words.receive, words.generation,
           ErrorCode::kOk);
    return;
  }
  Packet packet;
  packet.descriptor = command;
  Send(Core::kDaemon, side, packet);
}

// At the sender's side.
void PathPair::DeliverRtr(uint32_t to, Packet* packet) {
  Half& half = At(Core::kDaemon, to);
  auto words = PayloadOf<shm::RtrWords>(packet->descriptor);
  if (KindOf(packet->descriptor) == DescriptorKind::kRtr) {
    half.rtrs[{words.receive, words.generation}] = words.where.address;
  } else {
    half.rtrs.erase({words.receive, words.generation});
    if ((packet->descriptor.flags & shm::kFlagMatched) == 0) {
      Packet answer;
      answer.descriptor.kind = static_cast<uint8_t>(DescriptorKind::kWithdrawn);
      SetPayload(&answer.descriptor,
                 shm::TransferResult{words.receive, words.generation, 0, 0, {}});
      Send(Core::kDaemon, to, answer);
    }
  }
  words.where = {};
  SetPayload(&packet->descriptor, words);
}

// Without the RTR it is an RTS.
void PathPair::Put(uint32_t side, const Descriptor& command) {
  const auto put = PayloadOf<shm::PutCommand>(command);
  Half& half = At(Core::kDaemon, side);
  const auto rtr = half.rtrs.find({put.receive, put.generation});
  Packet packet;
  packet.descriptor = command;
  if (rtr == half.rtrs.end() || !Passes(Core::kDaemon, side)) {
    packet.descriptor.kind = static_cast<uint8_t>(DescriptorKind::kRemoteRts);
    SetPayload(&packet.descriptor,
               shm::RemoteRts{put.send_request, put.send_generation, 0, put.where});
    Rts(Core::kDaemon, side, packet);
    return;
  }
  EXPECT_TRUE(At(Core::kDaemon, Other(side)).rtr_receives.contains(rtr->first))
      << "it writes into a receive that has got another message";
  std::memcpy(reinterpret_cast<void*>(rtr->second),
              reinterpret_cast<const void*>(put.where.address), command.size_bytes);
  half.rtrs.erase(rtr);
  auto told = put;
  told.where = {};
  SetPayload(&packet.descriptor, told);
  Send(Core::kDaemon, side, packet);
  Result(Core::kDaemon, side, DescriptorKind::kSendDone, put.send_request, put.send_generation,
         ErrorCode::kOk);
}

// ---- Faults ------------------------------------------------------------------------------------

void PathPair::Die(uint32_t side) {
  state_.is_dead[side] = true;
  state_.is_lost = true;
  Packet last;
  last.says_death = true;
  if (Passes(Core::kDaemon, side)) {
    At(Core::kDaemon, Other(side)).arriving.push_back(std::move(last));
  } else {
    nodes_[Other(side)]->MarkDead(0, kPeer);
  }
}

void PathPair::Cut() {
  for (uint32_t side = 0; side < 2; ++side) {
    state_.life[side] = Life::kCut;
    At(Core::kDaemon, side).arriving.clear();
  }
}

void PathPair::Notice(uint32_t side) {
  state_.life[side] = Life::kDown;
  EndHalf(Core::kDaemon, side, ErrorCode::kLinkDown);
  nodes_[side]->MarkDead(0, kPeer, ErrorCode::kLinkDown);
}

bool PathPair::CanReturn(uint32_t side) const {
  const auto has_let_go = [this](uint32_t one) {
    return state_.life[one] == Life::kUp ||
           (state_.life[one] == Life::kDown &&
            view(one).layout->deaths_applied == view(one).inbox.wake()->death_epoch);
  };
  return state_.life[side] == Life::kDown && has_let_go(0) && has_let_go(1);
}

void PathPair::Return(uint32_t side) {
  state_.life[side] = Life::kUp;
  nodes_[side]->MarkDead(0, kPeer, ErrorCode::kOk);
}

void PathPair::LoseLink() {
  state_.is_lost = true;
  for (uint32_t side = 0; side < 2; ++side) {
    At(Core::kLink, side).arriving.clear();
  }
}

void PathPair::EndLink(uint32_t side) {
  state_.has_end[side] = false;
  At(Core::kLink, side).arriving.clear();
  EndHalf(Core::kLink, side, ErrorCode::kLinkDown);
  Effects effects;
  engine(side).paths().FailLink(kPeer, effects);
  TakeCommands(side);
}

void PathPair::OpenLink() {
  state_.is_lost = false;
  state_.has_end = {true, true};
}

// The core ends its work for the peer: requests that wait for an answer get one. Pushed messages
// have arrived.
void PathPair::EndHalf(Core core, uint32_t side, ErrorCode error) {
  Half& half = At(core, side);
  for (const shm::TransferResult& announced : std::exchange(half.by_rts, {})) {
    Result(core, side, DescriptorKind::kSendDone, announced.request, announced.generation, error);
  }
  for (const auto& [request, generation] : std::exchange(half.rtr_receives, {})) {
    Result(core, side, DescriptorKind::kWithdrawn, request, generation, ErrorCode::kOk);
  }
  half.rtrs.clear();
  std::erase_if(half.incoming, [](const auto& entry) { return !entry.second.is_pushed; });
}

void PathPair::Settle() {
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t side = 0; side < 2; ++side) {
      for (const Core core : kCores) {
        while (CanDeliver(core, side)) {
          Deliver(core, side);
          moved = true;
        }
      }
      if (!state_.is_dead[side]) {
        moved |= rank(side).Progress() != 0;
        TakeCommands(side);
      }
    }
  }
}

// ---- Key ---------------------------------------------------------------------------------------

std::string PathPair::KeyOf(uint32_t side) const {
  std::string key;
  const SessionView& own = view(side);
  const shm::SessionLayout& session = *own.layout;
  const shm::PeerWords& peer = own.by_rank.peers[kPeer];
  Append(&key, peer.queue_first, peer.queue_last, peer.sent, peer.credited, peer.drained,
         peer.returned, peer.dead, peer.cut, peer.path, peer.path_epoch, peer.inward_path,
         peer.marker_owed, peer.pushed, peer.pushed_credited, peer.pushed_taken,
         peer.pushed_returned, own.by_rank.links[kPeer].state);
  Append(&key, session.queued_sends, session.control_first, session.link_control_first,
         session.credits_owed, session.withdrawals, session.link_duties, session.linked_peers,
         session.deaths_applied, own.inbox.wake()->death_epoch, own.by_rank.rtrs[kPeer].sent,
         own.by_rank.rtrs[kPeer].taken, own.by_rank.rtrs[kPeer].held);
  Append(&key, static_cast<int>(state_.life[side]), state_.is_dead[side], state_.has_end[side],
         state_.told[side].size());
  for (const RankEngine* one : {&(*nodes_[side])[0].engine(), &workers_[side]->engine()}) {
    Append(&key, one->LaneOf(shm::kAnySource));
  }
  for (uint32_t request = 1; request < session.request_fresh; ++request) {
    const shm::RequestLayout& slot = *own.request(request);
    Append(&key, slot.state, slot.flags, slot.error, slot.message_bytes, slot.lane, slot.rtr,
           slot.link_end, slot.next);
    key.append(reinterpret_cast<const char*>(slot.payload), shm::kInlineBytes);
  }
  key += '|';
  const auto* const entries = reinterpret_cast<const shm::MatchEntry*>(own.match() + 1);
  for (uint32_t entry = 1; entry < own.match()->fresh; ++entry) {
    const shm::MatchEntry& one = entries[entry];
    if (one.state != 0) {
      Append(&key, entry, one.state, one.sequence, one.request, one.lane, one.kind, one.flags);
      key.append(reinterpret_cast<const char*>(one.payload), shm::kInlineBytes);
    }
  }
  for (const Core core : kCores) {
    key += '|';
    const shm::LaneLayout& lane = *LaneTo(core, side);
    for (uint64_t n = lane.consumer.head; n < lane.producer.tail; ++n) {
      AppendDescriptor(&key, lane.slots[n % shm::kLaneSlots]);
    }
    const Half& half = At(core, side);
    Append(&key, half.next_key, half.by_rts.size(), half.results.size());
    for (const auto& [request, generation] : half.rtr_receives) {
      Append(&key, 'a', request, generation);
    }
    for (const auto& [receive, address] : half.rtrs) {
      Append(&key, 'b', receive.first, receive.second);
    }
    for (const auto& [number, incoming] : half.incoming) {
      Append(&key, number, incoming.send_request, incoming.send_generation);
    }
    for (const Packet& packet : half.arriving) {
      Append(&key, packet.says_death);
      AppendDescriptor(&key, packet.descriptor);
      key += packet.data;
    }
  }
  return key;
}

std::string PathPair::Key() const {
  return KeyOf(0) + '#' + KeyOf(1) + (state_.is_lost ? "lost" : "");
}

}  // namespace ferry::engine
