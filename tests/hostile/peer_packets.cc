#include "tests/hostile/peer_packets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/lane_layout.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::hostile {

using progress::HeadOf;
using progress::PacketHeader;
using progress::PacketKind;
using progress::WireOneSided;
using progress::WireReceive;
using shm::OneSidedOperation;

namespace {

constexpr size_t kMemoryBytes = 4 << 20;
constexpr size_t kMostUnanswered = 256;
constexpr uint32_t kRegion = 1;  // of the rank there
constexpr uint32_t kWordBytes = 8;
// So much of a message of the transport do packets fill.
constexpr size_t kMostFrameBytes = 16'000;
constexpr size_t kMostBodyBytes = 9000;

bool IsAnswer(PacketKind kind) {
  switch (kind) {
    case PacketKind::kSendDone:
    case PacketKind::kBlockReady:
    case PacketKind::kWithdrawn:
    case PacketKind::kOneSidedDone:
    case PacketKind::kOneSidedRts:
      return true;
    default:
      return false;
  }
}

bool IsWord(const progress::Packet& packet) {
  const auto done = HeadOf<progress::WireOneSidedDone>(packet.body);
  return packet.header.kind == static_cast<uint8_t>(PacketKind::kOneSidedDone) && done &&
         done->error == 0 && packet.body.size() == sizeof(*done) + kWordBytes;
}

template <typename T>
std::span<const std::byte> BytesOfValue(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace

PeerPackets::PeerPackets(LyingNode& node, Dice& dice)
    : node_(node), dice_(dice), memory_(kMemoryBytes) {
  auto region = node_.fabric().RegisterMemory(
      memory_.data(), memory_.size(),
      transport::Access::kRemoteRead | transport::Access::kRemoteWrite);
  region_ = region.ok() ? *region : transport::MemoryRegion{};
}

PeerPackets::~PeerPackets() = default;

bool PeerPackets::Face(const daemon::NodeContact& daemon, const PacketKeys& keys) {
  const std::string& fabric_address = daemon.fabric_address;
  if (peer_ == transport::kUnknownPeer || fabric_address != fabric_address_) {
    const auto* bytes = reinterpret_cast<const std::byte*>(fabric_address.data());
    const auto peer = node_.fabric().AddPeer({bytes, fabric_address.size()}, daemon.link);
    if (!peer.ok()) {
      return false;
    }
    if (peer_ != transport::kUnknownPeer) {
      (void)node_.fabric().RemovePeer(peer_).ok();
    }
    peer_ = *peer;
    fabric_address_ = fabric_address;
  }
  keys_ = keys;
  unanswered_.clear();
  number_ = 0;
  return true;
}

// ---- Packets that it sends ----

PacketHeader PeerPackets::Header(PacketKind kind) {
  PacketHeader header{};
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  header.kind = static_cast<uint8_t>(kind);
  header.key = keys_.send_key;
  header.job_key = keys_.job_key;
  header.source_node = 1;
  header.source = 1;
  return header;
}

void PeerPackets::Send(PacketHeader header, std::span<const std::byte> body) {
  header.body_bytes = static_cast<uint32_t>(body.size());
  const ErrorCode code =
      node_.fabric().SendMessage(peer_, progress::BytesOf(header), body, 0, MonotonicNs());
  sent_ += code == ErrorCode::kOk ? 1 : 0;
  is_full_ = code == ErrorCode::kWouldBlock;
}

template <typename Body>
void PeerPackets::Say(PacketKind kind, const Body& body, std::span<const std::byte> data) {
  std::vector<std::byte> bytes(sizeof(body) + data.size());
  std::memcpy(bytes.data(), &body, sizeof(body));
  std::copy(data.begin(), data.end(), bytes.begin() + sizeof(body));
  PacketHeader header = Header(kind);
  header.size_bytes = data.empty() ? dice_.Below(70'000) : data.size();
  header.tag = static_cast<int32_t>(dice_.Below(4));
  header.flags = static_cast<uint8_t>(dice_.OneIn(4) ? dice_.Any() : 0);
  header.number = NextNumber();
  if (dice_.OneIn(8)) {
    dice_.Spoil(&header);
  }
  if (dice_.OneIn(8) && !bytes.empty()) {  // too short
    bytes.resize(dice_.Below(bytes.size()));
  }
  Send(header, bytes);
}

uint64_t PeerPackets::NextNumber() { return dice_.OneIn(8) ? dice_.Number() : ++number_; }

progress::WireRts PeerPackets::Rts() {
  return {1 + static_cast<uint32_t>(dice_.Below(63)), dice_.Mostly<uint32_t>(1),
          dice_.Mostly<uint64_t>(region_.key), dice_.Mostly<uint64_t>(region_.remote_base)};
}

WireOneSided PeerPackets::Operation(bool is_long) {
  WireOneSided wire{};
  wire.operation = static_cast<uint8_t>(
      is_long ? static_cast<uint64_t>(OneSidedOperation::kLongPut) + dice_.Below(2)
              : dice_.Below(shm::kOneSidedOperations + 1));
  wire.signal = static_cast<uint8_t>(dice_.OneIn(4) ? dice_.Below(4) : 0);
  wire.width = dice_.Mostly<uint8_t>(static_cast<uint8_t>(1U << dice_.Below(4)));
  wire.wants_answer = static_cast<uint8_t>(dice_.Below(2));
  wire.region = dice_.Mostly<uint32_t>(kRegion);
  wire.size_bytes = dice_.Mostly<uint32_t>(static_cast<uint32_t>(dice_.Below(17)));
  // Of an accumulate: type, operation and elements.
  wire.signal_region =
      dice_.OneIn(2) ? kRegion
                     : static_cast<uint32_t>(dice_.Below(15) | dice_.Below(20) << 8 | 0x7f << 16);
  wire.offset = dice_.Mostly<uint64_t>(8 * dice_.Below(4096));
  wire.operand = dice_.Mostly<uint64_t>(Request());
  wire.compare = dice_.Mostly<uint64_t>(8 * dice_.Below(4096));
  return wire;
}

void PeerPackets::SayOneSided() {
  std::vector<std::byte> body;
  const auto append = [&body](std::span<const std::byte> bytes) {
    body.insert(body.end(), bytes.begin(), bytes.end());
  };
  PacketHeader header = Header(PacketKind::kOneSided);
  header.stream = static_cast<uint8_t>(dice_.OneIn(4) ? dice_.Below(3) : 0);
  if (dice_.OneIn(4)) {
    append(BytesOfValue(Operation(/*is_long=*/true)));
    header.size_bytes = dice_.Mostly<uint64_t>(1 + dice_.Below(1 << 20));
    if (dice_.OneIn(2)) {
      append(BytesOfValue(Rts()));
    }
  } else {
    header.number = NextNumber();
    for (uint64_t count = 1 + dice_.Below(6); count > 0; --count) {
      const WireOneSided wire = Operation(/*is_long=*/false);
      append(BytesOfValue(wire));
      if (dice_.OneIn(3)) {
        const std::vector<std::byte> data((wire.size_bytes + 7) / 8 * 8 % kMostBodyBytes);
        append(data);
      }
    }
  }
  if (dice_.OneIn(8)) {
    dice_.Spoil(&header);
  }
  body.resize(std::min(body.size(), kMostFrameBytes));
  Send(header, body);
}

void PeerPackets::SayAnything() {
  const auto kind = static_cast<PacketKind>(dice_.Below(kPacketKinds + 1));
  const std::vector<std::byte> data(dice_.OneIn(2) ? 0 : 1 + dice_.Below(kMostBodyBytes));
  const WireReceive receive{Request(), Request()};
  const uint64_t channel = dice_.Below(4);
  const auto error = static_cast<int32_t>(dice_.OneIn(2) ? 0 : dice_.Below(40));
  switch (kind) {
    case PacketKind::kEager:
    case PacketKind::kPairData: {
      PacketHeader header = Header(kind);
      header.size_bytes = dice_.Mostly<uint64_t>(data.size());
      header.tag = static_cast<int32_t>(dice_.Below(4));
      return Send(header, std::span(data).first(std::min<size_t>(data.size(), shm::kCellBytes)));
    }
    case PacketKind::kRemoteRts:
      return Say(kind, Rts(), data);
    case PacketKind::kCredit:
      return Say(kind, progress::WireCredit{static_cast<uint32_t>(dice_.Number()),
                                            static_cast<uint32_t>(dice_.Below(4)),
                                            static_cast<uint32_t>(dice_.Number()), Request()});
    case PacketKind::kSendDone:
      return Say(kind, progress::WireResult{Request(), Request(), error, 0});
    case PacketKind::kRndvGet:
      return Say(kind, progress::WireRndvGet{dice_.Number(), Request(), Request(), dice_.Number(),
                                             static_cast<uint32_t>(dice_.Number()),
                                             static_cast<uint32_t>(dice_.Number())});
    case PacketKind::kBlockReady:
      return Say(kind, progress::WireBlock{dice_.Below(64), dice_.Number(), dice_.Number(),
                                           region_.key, dice_.Mostly(region_.remote_base),
                                           static_cast<uint32_t>(dice_.Number()), error});
    case PacketKind::kBlockDone:
      return Say(kind, progress::WireBlockDone{dice_.Below(64)});
    case PacketKind::kRtr:
      return Say(kind, progress::WireRtr{receive, dice_.Below(4), region_.key,
                                         dice_.Mostly(region_.remote_base)});
    case PacketKind::kWithdraw:
    case PacketKind::kWithdrawn:
    case PacketKind::kRetract:
      return Say(kind, receive);
    case PacketKind::kPut:
      return dice_.OneIn(8) ? Say(kind, progress::WirePut{receive, Request(), Request()})
                            : void();  // it ends the job
    case PacketKind::kPutDone:
      return Say(kind, progress::WirePutDone{receive, error, dice_.OneIn(2) ? 1U : 0U});
    case PacketKind::kPairWindow:
      return Say(kind, progress::WirePairWindow{channel, region_.key, region_.remote_base});
    case PacketKind::kPairClear:
    case PacketKind::kPairArrived:
      return Say(kind, progress::WirePair{channel, dice_.Below(4)});
    case PacketKind::kPairEnd:
      return Say(kind, progress::WirePairEnd{channel, error, 0, dice_.Below(4)});
    case PacketKind::kPairNic:
      return Say(kind, progress::WirePairNic{channel, region_.key, region_.remote_base,
                                             dice_.OneIn(2) ? 1U : 0U,
                                             static_cast<uint32_t>(dice_.Number())});
    case PacketKind::kEnded:
      return dice_.OneIn(32) ? Say(kind, progress::WireEnded{static_cast<uint32_t>(error), 0})
                             : void();  // the rank says nothing more
    case PacketKind::kParted:
      return dice_.OneIn(32) ? Say(kind, progress::WireEnded{static_cast<uint32_t>(error), 0})
                             : void();
    case PacketKind::kSwitch:
      return Say(kind, progress::WireSwitch{Request(), 0});
    case PacketKind::kOneSided:
      return SayOneSided();
    case PacketKind::kOneSidedDone:
      return Say(kind,
                 progress::WireOneSidedDone{dice_.Below(64), dice_.Any(), error,
                                            static_cast<uint32_t>(dice_.Below(3))},
                 data);
    case PacketKind::kOneSidedRts:
      return Say(kind, progress::WireOneSidedRts{{Request(), Request()}, Rts()}, data);
    default:
      return Say(kind, dice_.Any(), data);
  }
}

bool PeerPackets::SayGet() {
  PacketHeader header = Header(PacketKind::kOneSided);
  header.number = ++number_;
  WireOneSided wire{};
  wire.operation = static_cast<uint8_t>(OneSidedOperation::kGet);
  wire.wants_answer = 1;
  wire.region = kRegion;
  wire.size_bytes = kWordBytes;
  const uint64_t before = sent_;
  Send(header, BytesOfValue(wire));
  return sent_ > before;
}

uint32_t PeerPackets::SayGets(uint32_t bytes_of_each) {
  PacketHeader header = Header(PacketKind::kOneSided);
  header.number = number_ + 1;
  std::vector<std::byte> body;
  uint32_t count = 0;
  for (; body.size() + sizeof(WireOneSided) <= kMostFrameBytes; ++count) {
    WireOneSided wire{};
    wire.operation = static_cast<uint8_t>(OneSidedOperation::kGet);
    wire.wants_answer = 1;
    wire.region = kRegion;
    wire.size_bytes = bytes_of_each;
    const auto bytes = BytesOfValue(wire);
    body.insert(body.end(), bytes.begin(), bytes.end());
  }
  number_ += count;
  Send(header, body);
  return count;
}

void PeerPackets::SayLongPut(uint64_t bytes) {
  PacketHeader header = Header(PacketKind::kOneSided);
  header.size_bytes = bytes;
  const struct {
    WireOneSided operation;
    progress::WireRts rts;
  } words{
      {.operation = static_cast<uint8_t>(OneSidedOperation::kLongPut),
       .signal = 0,
       .width = 0,
       .wants_answer = 1,
       .region = kRegion,
       .size_bytes = 0,
       .signal_region = 0,
       .offset = 0,
       .operand = Request(),
       .compare = 1},
      {1 + static_cast<uint32_t>(dice_.Any() % 1'000'000), 1, region_.key, region_.remote_base}};
  Send(header, BytesOfValue(words));
}

void PeerPackets::SayLongGet(uint64_t bytes) {
  PacketHeader header = Header(PacketKind::kOneSided);
  header.size_bytes = bytes;
  WireOneSided wire{};
  wire.operation = static_cast<uint8_t>(OneSidedOperation::kLongGet);
  wire.wants_answer = 1;
  wire.region = kRegion;
  wire.operand = 1 + dice_.Any() % 1'000'000;
  wire.compare = 1;
  Send(header, BytesOfValue(wire));
}

// ---- Packets that it receives, and answers ----

void PeerPackets::Listen(int budget) { node_.fabric().Poll(*this, budget, MonotonicNs()); }
void PeerPackets::Push() { node_.fabric().Flush(MonotonicNs()); }

void PeerPackets::OnReceive(transport::PeerId, std::span<const std::byte> message) {
  while (const auto packet = progress::TakePacket(&message)) {
    const PacketHeader& header = packet->header;
    if (header.job_key != keys_.job_key || header.kind >= kPacketKinds) {
      continue;  // of an earlier job
    }
    words_read_ += IsWord(*packet) ? 1 : 0;
    answers_ += IsAnswer(static_cast<PacketKind>(header.kind)) ? 1 : 0;
    if (unanswered_.size() >= kMostUnanswered) {
      unanswered_.pop_front();
    }
    unanswered_.push_back({header, {packet->body.begin(), packet->body.end()}});
  }
}

bool PeerPackets::AnswerSomething() {
  if (unanswered_.empty()) {
    return false;
  }
  const size_t which = dice_.OneIn(2) ? 0 : dice_.Below(unanswered_.size());
  Answer(unanswered_[which]);
  if (!dice_.OneIn(3)) {  // else it will be answered again
    unanswered_.erase(unanswered_.begin() + static_cast<ptrdiff_t>(which));
  }
  return true;
}

void PeerPackets::AnswerOneSided(const Heard& heard) {
  const PacketHeader& header = heard.header;
  const auto wire = HeadOf<WireOneSided>(heard.body);
  if (!wire) {
    return;
  }
  if (header.number == 0) {
    const progress::WireOneSidedRts rts{
        {static_cast<uint32_t>(wire->operand), static_cast<uint32_t>(wire->compare)}, Rts()};
    return Say(PacketKind::kOneSidedRts, rts);
  }
  const std::vector<std::byte> data(
      wire->operation == static_cast<uint8_t>(OneSidedOperation::kGet) && !dice_.OneIn(4)
          ? std::min<size_t>(wire->size_bytes, shm::kCellBytes)
          : dice_.Below(64));
  Say(PacketKind::kOneSidedDone,
      progress::WireOneSidedDone{header.number + dice_.Below(2), dice_.Any(),
                                 static_cast<int32_t>(dice_.OneIn(2) ? 0 : dice_.Below(40)),
                                 header.stream},
      data);
}

void PeerPackets::Answer(const Heard& heard) {
  const PacketHeader& header = heard.header;
  const auto error = static_cast<int32_t>(dice_.OneIn(2) ? 0 : dice_.Below(40));
  switch (static_cast<PacketKind>(header.kind)) {
    case PacketKind::kRemoteRts:
      if (const auto rts = HeadOf<progress::WireRts>(heard.body); rts && dice_.OneIn(2)) {
        Say(PacketKind::kRndvGet,
            progress::WireRndvGet{dice_.Below(8), rts->send_request, rts->send_generation,
                                  dice_.Mostly(header.size_bytes), progress::kShortestBlockBytes,
                                  static_cast<uint32_t>(dice_.Below(3))});
      } else if (rts) {
        Say(PacketKind::kSendDone,
            progress::WireResult{rts->send_request, rts->send_generation, error, 0});
      }
      return;
    case PacketKind::kRndvGet:
      if (const auto rndv_get = HeadOf<progress::WireRndvGet>(heard.body)) {
        Say(PacketKind::kBlockReady,
            progress::WireBlock{rndv_get->rndv_get, dice_.Below(4), dice_.Mostly<uint64_t>(0),
                                region_.key, region_.remote_base,
                                dice_.Mostly(static_cast<uint32_t>(rndv_get->size_bytes)), error});
      }
      return;
    case PacketKind::kBlockReady:
      if (const auto block = HeadOf<progress::WireBlock>(heard.body)) {
        Say(PacketKind::kBlockDone, progress::WireBlockDone{block->block});
      }
      return;
    case PacketKind::kRtr:
      if (const auto rtr = HeadOf<progress::WireRtr>(heard.body); rtr && dice_.OneIn(2)) {
        Say(PacketKind::kPut, progress::WirePut{rtr->receive, Request(), Request()});
      } else if (rtr) {
        Say(PacketKind::kPutDone, progress::WirePutDone{rtr->receive, error, 0});
      }
      return;
    case PacketKind::kWithdraw:
      if (const auto receive = HeadOf<WireReceive>(heard.body)) {
        Say(PacketKind::kWithdrawn, *receive);
      }
      return;
    case PacketKind::kRetract:
      if (const auto send = HeadOf<progress::WireSend>(heard.body)) {
        Say(PacketKind::kSendDone,
            progress::WireResult{send->request, send->generation,
                                 static_cast<int32_t>(ErrorCode::kCancelled), 0});
      }
      return;
    case PacketKind::kOneSided:
      return AnswerOneSided(heard);
    case PacketKind::kOneSidedRts:
      if (const auto rts = HeadOf<progress::WireOneSidedRts>(heard.body)) {
        Say(PacketKind::kSendDone,
            progress::WireResult{rts->rts.send_request, rts->rts.send_generation, error, 0});
      }
      return;
    case PacketKind::kEager:
      return Say(PacketKind::kCredit,
                 progress::WireCredit{1 + static_cast<uint32_t>(dice_.Below(3)), 0,
                                      static_cast<uint32_t>(header.size_bytes), 0});
    default:
      return Send(header, heard.body);  // its own words, which have keys of the other direction
  }
}

}  // namespace ferry::hostile
