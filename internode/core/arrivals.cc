#include "internode/core/arrivals.h"

#include <algorithm>
#include <cstring>

#include "engine/engine_options.h"

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

Descriptor DescriptorOf(const PacketHeader& header, DescriptorKind kind) {
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(kind);
  descriptor.flags = header.flags;
  descriptor.source = header.source;
  descriptor.destination = header.destination;
  descriptor.context = header.context;
  descriptor.tag = header.tag;
  descriptor.size_bytes = header.size_bytes;
  return descriptor;
}

// The most data that comes pushed: as much as an engine lets out at a time.
constexpr uint64_t kMostPushed = 1 << 20;

Descriptor RtsOf(const PacketHeader& header, const WireRts& wire) {
  Descriptor descriptor = DescriptorOf(header, DescriptorKind::kRemoteRts);
  descriptor.flags &= static_cast<uint8_t>(~kFlagDataPushed);
  const shm::RemoteRts rts{wire.send_request, wire.send_generation, wire.key, {0, 0, wire.address}};
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  return descriptor;
}

uint64_t MostData(bool is_pushed) { return is_pushed ? kMostPushed : shm::kRunBytes; }

// Of one job, for ranks that have not attached: others know of these only a moment before they
// have.
constexpr uint64_t kMostEarlyBytes = 64ULL << 20;

// Of a rank that has not left in good order.
bool IsDeath(ErrorCode error) {
  switch (error) {
    case ErrorCode::kPeerDied:
    case ErrorCode::kAborted:
    case ErrorCode::kWorkerDied:
    case ErrorCode::kDaemonDied:
    case ErrorCode::kNodeUnreachable:
      return true;
    default:
      return false;
  }
}

// Returns true for a packet that the core of a rank sends by a direct link. Only daemons send the
// rest: ends of ranks, receives that are announced by an RTR, pairs.
bool IsOfRanks(PacketKind kind) {
  switch (kind) {
    case PacketKind::kEager:
    case PacketKind::kRemoteRts:
    case PacketKind::kCredit:
    case PacketKind::kSendDone:
    case PacketKind::kRndvGet:
    case PacketKind::kBlockReady:
    case PacketKind::kBlockDone:
    case PacketKind::kRetract:
    case PacketKind::kSwitch:
    case PacketKind::kOneSided:
    case PacketKind::kOneSidedDone:
    case PacketKind::kOneSidedRts:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Arrivals::Trouble> Arrivals::OnPacket(const Packet& packet, uint64_t now_ns) {
  Job* job = Admit(packet.header);
  if (job == nullptr) {
    // A job may be over here before all that is said of its end has come.
    dropped_ += packet.header.kind == static_cast<uint8_t>(PacketKind::kEnded) ? 0 : 1;
    return std::nullopt;
  }
  if (from_ranks_ && !IsOfRanks(static_cast<PacketKind>(packet.header.kind))) {
    ++dropped_;
    return std::nullopt;
  }
  return Handle(*job, packet, now_ns);
}

// Null when the packet is not from whom it says.
Job* Arrivals::Admit(const PacketHeader& header) {
  Job* job = directory_.FindJobByKey(header.job_key);
  if (job == nullptr || header.source_node >= job->routes.size()) {
    return nullptr;
  }
  const Route& route = job->routes[header.source_node];
  const bool genuine = route.link != nullptr && route.link->failure == ErrorCode::kOk &&
                       route.receive_key == header.key && job->IsRank(header.source) &&
                       job->plan.node_of_rank[header.source] == header.source_node &&
                       job->IsRank(header.destination) && job->IsLocal(header.destination);
  if (!genuine) {
    return nullptr;
  }
  if (route.is_returning) [[unlikely]] {
    hooks_.on_returned(*job, header.source_node);
  }
  return job;
}

std::optional<Arrivals::Trouble> Arrivals::Handle(Job& job, const Packet& packet, uint64_t now_ns) {
  ServedRank* rank = job.served[packet.header.destination];
  const uint32_t source = packet.header.source;
  switch (static_cast<PacketKind>(packet.header.kind)) {
    case PacketKind::kEager:
    case PacketKind::kRemoteRts:
      return HandleMessage(job, packet, now_ns);
    case PacketKind::kCredit:
      return HandleCredit(job, packet);
    case PacketKind::kSwitch:
      return HandleMarker(job, packet);
    case PacketKind::kSendDone:
      HandleResult(job, packet, now_ns);
      return std::nullopt;
    case PacketKind::kRetract:
      return HandleRetract(job, packet);
    case PacketKind::kEnded:
      return HandleEnded(job, packet);
    case PacketKind::kParted:
      if (rank != nullptr) {
        rank->partings[source].is_there = true;
        hooks_.on_parted(*rank, source);
      }
      return std::nullopt;
    case PacketKind::kRndvGet:
      if (const auto rndv_get = BodyOf<WireRndvGet>(packet.body); rndv_get && rank != nullptr) {
        staged_sends_.OnRndvGet(*rank, source, *rndv_get, now_ns);
      } else if (rndv_get) {
        WireBlock refusal{};
        refusal.rndv_get = rndv_get->rndv_get;
        refusal.error = static_cast<int32_t>(ErrorCode::kPeerDied);
        outbound_.Post(job, PacketKind::kBlockReady, packet.header.destination, source, refusal,
                       now_ns);
      }
      return std::nullopt;
    case PacketKind::kBlockReady:
      if (const auto block = BodyOf<WireBlock>(packet.body); block && rank != nullptr) {
        rndv_gets_.OnBlockReady(*rank, source, *block, now_ns);
      }
      return std::nullopt;
    case PacketKind::kBlockDone:
      if (const auto done = BodyOf<WireBlockDone>(packet.body)) {
        staged_sends_.OnBlockDone(job, packet.header.destination, source, *done, now_ns);
      }
      return std::nullopt;
    case PacketKind::kPut:
      return HandlePut(job, packet, now_ns);
    case PacketKind::kRtr:
    case PacketKind::kWithdraw:
    case PacketKind::kWithdrawn:
    case PacketKind::kPutDone:
      HandleReceiverFirst(job, packet, now_ns);
      return std::nullopt;
    case PacketKind::kOneSided:
    case PacketKind::kOneSidedDone:
    case PacketKind::kOneSidedRts:
      HandleOneSided(job, packet, now_ns);
      return std::nullopt;
    default:
      dropped_ += extension_ != nullptr && extension_->OnPacket(job, packet) ? 0 : 1;
      return std::nullopt;
  }
}

void Arrivals::HandleOneSided(Job& job, const Packet& packet, uint64_t now_ns) {
  const PacketHeader& header = packet.header;
  if (header.kind == static_cast<uint8_t>(PacketKind::kOneSided)) {
    if (one_sided_.memory().OnPacket(job, packet, now_ns)) {
      return;
    }
  } else if (header.kind == static_cast<uint8_t>(PacketKind::kOneSidedRts)) {
    if (const auto rts = HeadOf<WireOneSidedRts>(packet.body)) {
      return one_sided_.OnRts(job, header, *rts, packet.body.subspan(sizeof(WireOneSidedRts)),
                              now_ns);
    }
  } else if (const auto done = HeadOf<WireOneSidedDone>(packet.body)) {
    if (one_sided_.OnDone(job, header, *done, packet.body.subspan(sizeof(WireOneSidedDone)))) {
      return;
    }
  }
  ++dropped_;
}

// All but the message itself.
void Arrivals::HandleReceiverFirst(Job& job, const Packet& packet, uint64_t now_ns) {
  const PacketHeader& header = packet.header;
  ServedRank* rank = job.served[header.destination];
  if (header.kind == static_cast<uint8_t>(PacketKind::kRtr)) {
    const auto rtr = BodyOf<WireRtr>(packet.body);
    if (!rtr || header.tag < 0) {
      ++dropped_;
    } else if (rank != nullptr && !rank->IsStaleFrom(header.source)) {
      // Else it finds out without.
      rndv_puts_.OnRtr(*rank, header, *rtr);
    }
    return;
  }
  if (header.kind == static_cast<uint8_t>(PacketKind::kPutDone)) {
    const auto done = BodyOf<WirePutDone>(packet.body);
    if (!done) {
      ++dropped_;
    } else if (rank != nullptr) {
      rtrs_.OnPutDone(*rank, header.source, *done, now_ns);
    }
    return;
  }
  const auto receive = BodyOf<WireReceive>(packet.body);
  if (!receive) {
    ++dropped_;
  } else if (header.kind == static_cast<uint8_t>(PacketKind::kWithdraw)) {
    rndv_puts_.OnWithdraw(job, header.destination, header.source, *receive, now_ns);
  } else if (rank != nullptr) {
    rtrs_.OnWithdrawn(*rank, header.source, *receive);
  }
}

std::optional<Arrivals::Trouble> Arrivals::HandlePut(Job& job, const Packet& packet,
                                                     uint64_t now_ns) {
  const PacketHeader& header = packet.header;
  const auto put = BodyOf<WirePut>(packet.body);
  if (!put || header.tag < 0) {
    ++dropped_;
    return std::nullopt;
  }
  ServedRank* rank = job.served[header.destination];
  if (rank == nullptr) {
    return std::nullopt;  // gone: its sender hears of it
  }
  if (!rtrs_.OnPut(*rank, header.source, *put, now_ns)) {
    if (rank->StateOf(header.source) != ErrorCode::kOk) {
      return std::nullopt;  // the receive has ended with its source
    }
    return Trouble{&job, nullptr, ErrorCode::kCorrupt,
                   "rank " + std::to_string(header.source) + " writes into a receive that rank " +
                       std::to_string(header.destination) + " has announced to it by no RTR"};
  }
  Descriptor descriptor = DescriptorOf(header, DescriptorKind::kPut);
  const shm::PutCommand words{
      put->send_request, put->send_generation, put->receive.request, put->receive.generation, {}};
  std::memcpy(descriptor.payload, &words, sizeof(words));
  return Deliver(job, descriptor, {});
}

std::optional<Arrivals::Trouble> Arrivals::HandleMessage(Job& job, const Packet& packet,
                                                         uint64_t now_ns) {
  const PacketHeader& header = packet.header;
  if (header.kind == static_cast<uint8_t>(PacketKind::kEager)) {
    if (header.tag < 0 || header.size_bytes > shm::kCellBytes ||
        header.size_bytes != packet.body.size()) {
      ++dropped_;
      return std::nullopt;
    }
    return Deliver(job, DescriptorOf(header, DescriptorKind::kEager), packet.body);
  }
  const auto wire = HeadOf<WireRts>(packet.body);
  if (!wire || header.tag < 0 || wire->send_request == 0) {
    ++dropped_;
    return std::nullopt;
  }
  const std::span<const std::byte> data = packet.body.subspan(sizeof(WireRts));
  const bool pushed = (header.flags & kFlagDataPushed) != 0;
  if ((!data.empty() && (data.size() != header.size_bytes || data.size() > MostData(pushed) ||
                         (header.flags & shm::kFlagSourcePrivate) != 0)) ||
      (pushed && data.empty())) {
    ++dropped_;
    return std::nullopt;
  }
  if (pushed) {  // its sender waits for no answer
    return Deliver(job, RtsOf(header, *wire), data, Data::kPushed);
  }
  if (job.ended[header.destination] != ErrorCode::kOk) {
    const WireResult result{wire->send_request, wire->send_generation,
                            static_cast<int32_t>(ErrorCode::kPeerDied), 0};
    outbound_.Post(job, PacketKind::kSendDone, header.destination, header.source, result, now_ns);
    return std::nullopt;
  }
  return Deliver(job, RtsOf(header, *wire), data);
}

std::optional<Arrivals::Head> Arrivals::FindHead(std::span<const std::byte> frame,
                                                 uint64_t attachment_bytes) {
  Head head;
  std::span<const std::byte> rest = frame;
  while (TakePacket(&rest)) {
  }
  head.before = frame.first(frame.size() - rest.size());
  if (rest.size() != sizeof(PacketHeader) + sizeof(WireRts)) {
    return std::nullopt;
  }
  PacketHeader header;
  std::memcpy(&header, rest.data(), sizeof(header));
  const WireRts wire = *BodyOf<WireRts>(rest.subspan(sizeof(header)));
  head.is_pushed = (header.flags & kFlagDataPushed) != 0;
  if (header.magic != kPacketMagic || header.version != kPacketVersion ||
      header.kind != static_cast<uint8_t>(PacketKind::kRemoteRts) ||
      (header.flags & shm::kFlagSourcePrivate) != 0 || header.tag < 0 || wire.send_request == 0 ||
      header.size_bytes != attachment_bytes || attachment_bytes == 0 ||
      attachment_bytes > MostData(head.is_pushed) ||
      header.body_bytes != sizeof(WireRts) + attachment_bytes) {
    return std::nullopt;
  }
  Job* const job = Admit(header);
  head.rank = job == nullptr ? nullptr : job->served[header.destination];
  if (head.rank == nullptr || head.rank->ended || head.rank->IsStaleFrom(header.source) ||
      job->ended[header.destination] != ErrorCode::kOk) {
    return std::nullopt;
  }
  head.link = job->RouteTo(header.source).link;
  head.rts = RtsOf(header, wire);
  return head;
}

std::optional<Arrivals::Trouble> Arrivals::OnHead(const Head& head, IncomingId* id) {
  CountMessage(*head.rank->job, head.rts);
  if (head.rank->job->trace.on()) [[unlikely]] {
    TraceDelivery(*head.rank->job, head.rts);
  }
  return head.is_pushed
             ? Judge(*head.rank, head.rts.source, head.rank->delivery.DeliverArriving(head.rts, id))
             : std::nullopt;
}

std::optional<Arrivals::Trouble> Arrivals::HandleCredit(Job& job, const Packet& packet) {
  const auto wire = BodyOf<WireCredit>(packet.body);
  if (!wire) {
    ++dropped_;
    return std::nullopt;
  }
  Descriptor descriptor = DescriptorOf(packet.header, DescriptorKind::kCredit);
  const shm::CreditReturn credit{wire->count, wire->flags, wire->bytes, wire->epoch, {}};
  std::memcpy(descriptor.payload, &credit, sizeof(credit));
  return Deliver(job, descriptor, {});
}

// Goes where messages go, and so behind all of them.
std::optional<Arrivals::Trouble> Arrivals::HandleMarker(Job& job, const Packet& packet) {
  const auto wire = BodyOf<WireSwitch>(packet.body);
  if (!wire) {
    ++dropped_;
    return std::nullopt;
  }
  Descriptor descriptor = DescriptorOf(packet.header, DescriptorKind::kSwitch);
  const shm::SwitchMarker marker{wire->epoch, 0, {}};
  std::memcpy(descriptor.payload, &marker, sizeof(marker));
  return Deliver(job, descriptor, {});
}

// The retraction takes the way of messages, and so comes behind the RTS. It is found by source and
// request, so that no rank retracts an RTS of another one.
std::optional<Arrivals::Trouble> Arrivals::HandleRetract(Job& job, const Packet& packet) {
  const auto wire = BodyOf<WireSend>(packet.body);
  if (!wire || packet.header.tag < 0 || wire->request == 0) {
    ++dropped_;
    return std::nullopt;
  }
  Descriptor descriptor = DescriptorOf(packet.header, DescriptorKind::kRetract);
  shm::RemoteRts rts{};
  rts.send_request = wire->request;
  rts.send_generation = wire->generation;
  std::memcpy(descriptor.payload, &rts, sizeof(rts));
  return Deliver(job, descriptor, {});
}

// A leave goes where messages go, and so behind all of them.
std::optional<Arrivals::Trouble> Arrivals::HandleEnded(Job& job, const Packet& packet) {
  const uint32_t source = packet.header.source;
  const auto wire = BodyOf<WireEnded>(packet.body);
  const auto error = static_cast<ErrorCode>(wire ? wire->error : 0);
  if (error != ErrorCode::kNotFound && !IsDeath(error)) {
    ++dropped_;
    return std::nullopt;
  }
  if (job.ended[source] != ErrorCode::kOk) {
    return std::nullopt;
  }
  hooks_.on_ended(job, source, error);
  if (error != ErrorCode::kNotFound) {
    return std::nullopt;
  }
  for (const uint32_t rank : job.rank_of_local) {
    Descriptor descriptor = DescriptorOf(packet.header, DescriptorKind::kLeft);
    descriptor.destination = rank;
    if (auto trouble = Deliver(job, descriptor, {})) {
      return trouble;
    }
  }
  return std::nullopt;
}

void Arrivals::HandleResult(Job& job, const Packet& packet, uint64_t now_ns) {
  const auto wire = BodyOf<WireResult>(packet.body);
  if (!wire) {
    ++dropped_;
    return;
  }
  staged_sends_.OnResult(job, packet.header.destination, packet.header.source, *wire, now_ns);
  ServedRank* const rank = job.served[packet.header.destination];
  if (rank != nullptr && wire->send_request >= kFirstOneSidedRts) {
    one_sided_.OnResult(*rank, packet.header.source, *wire);
  } else if (rank != nullptr) {
    rank->Answer(DescriptorKind::kSendDone, packet.header.source, wire->send_request,
                 wire->send_generation, static_cast<ErrorCode>(wire->error));
  }
}

// Counts a message of a rank in the job's NodeTraffic. Descriptors of other kinds are words between
// the daemons, and are not counted.
void Arrivals::CountMessage(Job& job, const Descriptor& descriptor) {
  if (descriptor.kind == static_cast<uint8_t>(DescriptorKind::kEager) ||
      descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRemoteRts) ||
      descriptor.kind == static_cast<uint8_t>(DescriptorKind::kPut)) {
    NodeTraffic& traffic = job.RouteTo(descriptor.source).traffic;
    ++traffic.messages_received;
    traffic.bytes_received += descriptor.size_bytes;
  }
}

void Arrivals::TraceDelivery(const Job& job, const Descriptor& descriptor) {
  if (descriptor.kind == static_cast<uint8_t>(DescriptorKind::kCredit) ||
      descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRetract) ||
      descriptor.kind == static_cast<uint8_t>(DescriptorKind::kSwitch) ||
      descriptor.kind == static_cast<uint8_t>(DescriptorKind::kLeft)) {
    return;
  }
  TraceRecord record =
      RecordOf(job, TraceKind::kDelivery, descriptor.destination, descriptor.source, MonotonicNs());
  record.bytes = descriptor.size_bytes;
  if (descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRemoteRts)) {
    shm::RemoteRts rts;
    std::memcpy(&rts, descriptor.payload, sizeof(rts));
    record.message = TraceMessage(rts.send_request, rts.send_generation);
  }
  job.trace.Put(record);
}

std::optional<Arrivals::Trouble> Arrivals::Deliver(Job& job, const Descriptor& descriptor,
                                                   std::span<const std::byte> data, Data is) {
  CountMessage(job, descriptor);
  const uint32_t destination = descriptor.destination;
  if (job.trace.on()) [[unlikely]] {
    TraceDelivery(job, descriptor);
  }
  if (ServedRank* rank = job.served[destination]; rank != nullptr) {
    const bool is_stale = rank->IsStaleFrom(descriptor.source) &&
                          descriptor.kind != static_cast<uint8_t>(DescriptorKind::kLeft);
    if (rank->ended || is_stale) {
      return std::nullopt;
    }
    return Judge(*rank, descriptor.source,
                 is == Data::kPushed ? rank->delivery.DeliverPushed(descriptor, data)
                                     : rank->delivery.Deliver(descriptor, data));
  }
  if (job.ended[destination] != ErrorCode::kOk) {
    return std::nullopt;
  }
  std::deque<Message>& early = job.early[destination];
  if (early.size() > 2 * uint64_t{job.remote_ranks} * engine::kRemoteWindow) {
    return Trouble{&job, nullptr, ErrorCode::kCorrupt,
                   "more messages for rank " + std::to_string(destination) +
                       ", which has not attached, than its peers have credit for"};
  }
  // An RTS goes without its data, which its sender keeps, unless it is pushed.
  const bool keeps =
      descriptor.kind != static_cast<uint8_t>(DescriptorKind::kRemoteRts) || is == Data::kPushed;
  job.early_bytes += sizeof(Message) + (keeps ? data.size() : 0);
  if (job.early_bytes > kMostEarlyBytes) {
    return Trouble{&job, nullptr, ErrorCode::kLimitExceeded,
                   "more than " + std::to_string(kMostEarlyBytes >> 20) +
                       " MiB of messages have come for ranks that have not attached"};
  }
  early.push_back({descriptor, {data.begin(), keeps ? data.end() : data.begin()}});
  return std::nullopt;
}

std::optional<Arrivals::Trouble> Arrivals::DeliverEarly(ServedRank& rank) {
  const auto found = rank.job->early.find(rank.rank());
  if (found == rank.job->early.end()) {
    return std::nullopt;
  }
  const std::deque<Message> early = std::move(found->second);
  rank.job->early.erase(found);
  for (const Message& message : early) {
    const bool pushed =
        message.descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRemoteRts) &&
        !message.data.empty();
    if (auto trouble = Judge(rank, message.descriptor.source,
                             pushed ? rank.delivery.DeliverPushed(message.descriptor, message.data)
                                    : rank.delivery.Deliver(message.descriptor, message.data))) {
      return trouble;
    }
  }
  return std::nullopt;
}

std::optional<Arrivals::Trouble> Arrivals::Judge(ServedRank& rank, uint32_t source,
                                                 Delivery::Result result) {
  switch (result) {
    case Delivery::Result::kTaken:
      return std::nullopt;
    case Delivery::Result::kOverflow:
      return Trouble{rank.job, nullptr, ErrorCode::kCorrupt,
                     "more messages for rank " + std::to_string(rank.rank()) +
                         " than its peers have credit for",
                     source};
    case Delivery::Result::kQuota:
      break;
  }
  return Trouble{rank.job, &rank, ErrorCode::kLimitExceeded,
                 "too many unexpected messages: the daemon holds no more of them; post receives "
                 "earlier"};
}

}  // namespace ferry::progress
