#include "internode/core/rank_commands.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/descriptor_check.h"
#include "engine/engine_options.h"
#include "internode/rndv/rndv_rts.h"
#include "shm/atomic.h"

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

DescriptorKind KindOf(const Descriptor& command) {
  return static_cast<DescriptorKind>(command.kind);
}

// Returns true for a command that ends an RTS that came to the rank.
bool EndsRts(const Descriptor& command) {
  return KindOf(command) == DescriptorKind::kRndvGet ||
         KindOf(command) == DescriptorKind::kRetracted;
}

// Returns true for a command that may overtake messages.
bool IsApart(const Descriptor& command) {
  return EndsRts(command) || KindOf(command) == DescriptorKind::kCredit ||
         KindOf(command) == DescriptorKind::kLinkWanted;
}

bool TakesCell(const Descriptor& command) {
  return (command.flags & shm::kFlagCell) != 0 && (KindOf(command) == DescriptorKind::kEager ||
                                                   KindOf(command) == DescriptorKind::kOneSided);
}

// The command of that number; null: not written yet.
const Descriptor* CommandAt(const ServedRank& rank, uint64_t number) {
  const Descriptor& slot = rank.seat.commands->slots[number % shm::kLaneSlots];
  // Pairs with LaneProducer::Publish, as LaneConsumer::Peek.
  return shm::LoadAcquire(slot.stamp) == shm::StampOf(number) ? &slot : nullptr;
}

template <typename Payload>
Payload PayloadOf(const Descriptor& command) {
  Payload payload;
  std::memcpy(&payload, command.payload, sizeof(payload));
  return payload;
}

// The RTS that says the same as a kPut, and the same request.
Descriptor RtsOf(const Descriptor& put) {
  const auto words = PayloadOf<shm::PutCommand>(put);
  Descriptor announced = put;
  announced.kind = static_cast<uint8_t>(DescriptorKind::kRemoteRts);
  announced.flags = put.flags & shm::kFlagSynchronous;
  const shm::RemoteRts rts{words.send_request, words.send_generation, 0, words.where};
  std::memcpy(announced.payload, &rts, sizeof(rts));
  return announced;
}

// `begun_ns`: before it went out, since its receiver may have it before this thread goes on.
[[gnu::cold, gnu::noinline]] void TraceEager(const ServedRank& rank, const Descriptor& command,
                                             uint64_t message, uint64_t begun_ns, ErrorCode code) {
  if (code == ErrorCode::kWouldBlock) {
    return;  // it is tried again
  }
  TraceRecord record =
      RecordOf(*rank.job, TraceKind::kEagerSend, rank.rank(), command.destination, begun_ns);
  record.message = message;
  record.bytes = command.size_bytes;
  record.error = TraceError(code);
  rank.job->trace.Put(record);
}

// Out of line: while no trace is recorded, a message costs a load and a branch, and no registers.
template <typename Send>
[[gnu::cold, gnu::noinline]] ErrorCode SendTraced(const ServedRank& rank, const Descriptor& command,
                                                  const Send& send) {
  const uint64_t begun_ns = MonotonicNs();
  const ErrorCode code = send();
  TraceEager(rank, command, 0, begun_ns, code);
  return code;
}

}  // namespace

RankCommands::Outcome RankCommands::Drain(ServedRank& rank, uint32_t budget, uint64_t now_ns) {
  Outcome outcome;
  const bool was_held = std::exchange(rank.held, false);
  rank.asks_too_much = false;
  while (outcome.handled < budget) {
    const Descriptor* next = rank.commands.Peek();
    if (next == nullptr) {
      break;
    }
    const Descriptor command = *next;  // once: the rank can still write to it
    if (IsApart(command) && *rank.commands.HeadWord() < rank.ahead) {
      // It was carried out while a message before it was held.
    } else if (KindOf(command) == DescriptorKind::kRtr && *rank.commands.HeadWord() < rank.ahead) {
      // A rendezvous get for the same receive may have overtaken it: it is a hint, and goes for
      // nothing.
    } else if (EndsRts(command)) {
      outcome.violation = EndRts(rank, command, now_ns);
    } else if (KindOf(command) == DescriptorKind::kAccuse) {
      outcome.violation = Judge(rank, PayloadOf<shm::Accusation>(command), &outcome.verdict);
    } else {
      outcome.violation = Check(rank, command);
      if (!outcome.violation && KindOf(command) == DescriptorKind::kRtr) {
        outcome.violation = rtrs_.SendRtr(rank, command, now_ns);
      } else if (!outcome.violation && KindOf(command) == DescriptorKind::kWithdraw) {
        outcome.violation = rtrs_.Withdraw(rank, command, now_ns);
      } else if (!outcome.violation && Forward(rank, command, now_ns) == Step::kHeld) {
        rank.held = true;
        break;
      }
    }
    if (outcome.violation) {
      break;
    }
    if (TakesCell(command)) {
      rank.commands.ReleaseCell(command.cell);
    }
    rank.commands.Pop();
    rank.claim.Drop();
    ++outcome.handled;
    outcome.made_room |= NoticeRoom(rank);
    if (outcome.verdict) {
      break;
    }
  }
  // The wait for memory has a deadline of its own. A first attempt may follow a long sleep, in
  // which nothing was held.
  if (!rank.held || !was_held || outcome.handled != 0 || rank.claim.waiting()) {
    rank.held_since_ns = now_ns;
  }
  if (rank.held) {
    LookAhead(rank, now_ns, &outcome);
  } else {
    rank.claim.Drop();  // whatever it was for is not the next command any more
  }
  return outcome;
}

void RankCommands::LookAhead(ServedRank& rank, uint64_t now_ns, Outcome* outcome) {
  const uint64_t head = *rank.commands.HeadWord();
  for (rank.ahead = std::max(rank.ahead, head + 1);
       rank.ahead - head < shm::kLaneSlots && !outcome->violation; ++rank.ahead) {
    const Descriptor* next = CommandAt(rank, rank.ahead);
    if (next == nullptr) {
      return;
    }
    const Descriptor command = *next;  // once: the rank can still write to it
    if (!IsApart(command)) {
      // The ways that are missing open side by side.
      if (rank.job->IsRank(command.destination) && !rank.job->IsLocal(command.destination)) {
        outbound_.WantWay(*rank.job, command.destination);
      }
      continue;
    }
    if (EndsRts(command)) {
      outcome->violation = EndRts(rank, command, now_ns);
    } else {
      outcome->violation = Check(rank, command);
      if (!outcome->violation && Forward(rank, command, now_ns) == Step::kHeld) {
        return;
      }
    }
    ++outcome->handled;
  }
}

// An error text when no correct rank writes this.
std::optional<std::string> RankCommands::Check(const ServedRank& rank,
                                               const Descriptor& command) const {
  const Job& job = *rank.job;
  // Only where it is needed: it takes as long as all the rest.
  const auto what = [&] { return "a command of kind " + std::to_string(command.kind); };
  if (!job.IsRank(command.destination) ||
      (job.IsLocal(command.destination) && !OneSided::MayStayHere(rank, command))) {
    return what() + " goes to rank " + std::to_string(command.destination) +
           ", which is on no other node";
  }
  switch (KindOf(command)) {
    case DescriptorKind::kEager: {
      const bool in_cell = (command.flags & shm::kFlagCell) != 0;
      if (command.tag < 0 || command.size_bytes > (in_cell ? shm::kCellBytes : shm::kInlineBytes) ||
          (in_cell && !shm::LaneConsumer::IsCell(command.cell))) {
        return "an eager message of " + std::to_string(command.size_bytes) + " bytes, cell " +
               std::to_string(command.cell) + ", tag " + std::to_string(command.tag);
      }
      return std::nullopt;
    }
    case DescriptorKind::kRemoteRts: {
      const auto rts = PayloadOf<shm::RemoteRts>(command);
      if (command.tag < 0 || rts.send_request == 0 ||
          rts.send_request >= rank.session->request_limit ||
          (rts.where.region == 0) != ((command.flags & shm::kFlagSourcePrivate) != 0)) {
        return "an RTS by request " + std::to_string(rts.send_request) + " of region " +
               std::to_string(rts.where.region) + ", tag " + std::to_string(command.tag);
      }
      return std::nullopt;
    }
    case DescriptorKind::kPut: {
      const auto put = PayloadOf<shm::PutCommand>(command);
      if (command.tag < 0 || put.send_request == 0 ||
          put.send_request >= rank.session->request_limit || put.where.region == 0) {
        return "a message by request " + std::to_string(put.send_request) + " from region " +
               std::to_string(put.where.region) + " into a receive that an RTR named, tag " +
               std::to_string(command.tag);
      }
      return std::nullopt;
    }
    case DescriptorKind::kRetract: {
      const auto rts = PayloadOf<shm::RemoteRts>(command);
      if (command.tag < 0 || rts.send_request == 0 ||
          rts.send_request >= rank.session->request_limit) {
        return "a retraction of request " + std::to_string(rts.send_request) + ", tag " +
               std::to_string(command.tag);
      }
      return std::nullopt;
    }
    case DescriptorKind::kOneSided:
      return OneSided::Check(rank, command);
    case DescriptorKind::kLinkWanted:
      if (!rank.is_by_daemon() || PayloadOf<shm::LinkCommand>(command).matter >
                                      static_cast<uint32_t>(shm::LinkMatter::kReturned)) {
        return what() + ", matter " + std::to_string(PayloadOf<shm::LinkCommand>(command).matter) +
               ", about its direct link to rank " + std::to_string(command.destination);
      }
      return std::nullopt;
    case DescriptorKind::kRtr:
    case DescriptorKind::kWithdraw:  // RTRs looks closer
    case DescriptorKind::kCredit:
    case DescriptorKind::kSwitch:
      return std::nullopt;
    default:
      return what();
  }
}

// A rank says that a peer of the node wrote what no correct one writes. All ranks of the job on
// this node can write to that lane, so this proves nothing against a rank that means ill to its own
// job; but it keeps a rank that is merely mistaken from ending another.
std::optional<std::string> RankCommands::Judge(const ServedRank& rank,
                                               const shm::Accusation& accusation,
                                               std::optional<Verdict>* verdict) const {
  const Job& job = *rank.job;
  if (!rank.is_by_daemon() || accusation.lane >= job.rank_of_local.size()) {
    return "it accuses lane " + std::to_string(accusation.lane) + ", which is no peer's";
  }
  ServedRank* accused = job.served[job.rank_of_local[accusation.lane]];
  if (accused == nullptr || accused->ended) {
    return std::nullopt;  // it is gone, and the others know or will soon
  }
  const shm::LaneConsumer lane(reinterpret_cast<shm::LaneLayout*>(
      rank.session->inbox_map.base() + shm::InboxLaneOffset(accusation.lane)));
  Verdict found;
  found.accused = accused;
  if (const Descriptor* head = lane.Peek(); head != nullptr) {
    const Descriptor descriptor = *head;
    found.guilty = !engine::IsPlausibleFromPeer(descriptor, accused->session->request_limit);
    found.text = "its lane to rank " + std::to_string(rank.rank()) + " holds " +
                 engine::Describe(descriptor) + ", which no correct library writes";
  }
  *verdict = std::move(found);
  return std::nullopt;
}

RankCommands::Step RankCommands::Forward(ServedRank& rank, const Descriptor& command,
                                         uint64_t now_ns) {
  // Stale: written before the rank noticed that it is parted from its peer. OneSided checks its own
  // commands.
  const bool is_stale =
      rank.IsPartedFrom(command.destination) && KindOf(command) != DescriptorKind::kOneSided;
  ErrorCode code = is_stale ? ErrorCode::kLinkDown : ErrorCode::kOk;
  switch (is_stale ? DescriptorKind::kNone : KindOf(command)) {
    case DescriptorKind::kNone:
      break;
    case DescriptorKind::kEager:
      code = SendEager(rank, command, now_ns);
      break;
    case DescriptorKind::kRemoteRts:
      code = SendRts(rank, command, now_ns);
      break;
    case DescriptorKind::kPut:
      code = StartPut(rank, command, now_ns);
      break;
    case DescriptorKind::kRetract:
      code = SendRetraction(rank, command, now_ns);
      break;
    case DescriptorKind::kOneSided:
      return (OneSided::IsLongPut(command) ? StartLongPut(rank, command, now_ns)
                                           : one_sided_.Start(rank, command, now_ns))
                 ? Step::kDone
                 : Step::kHeld;
    case DescriptorKind::kSwitch:
      code = SendMarker(rank, command, now_ns);
      break;
    case DescriptorKind::kLinkWanted:
      if (hooks_.on_link_wanted) {
        hooks_.on_link_wanted(
            rank.session->job_id, rank.rank(), command.destination,
            static_cast<shm::LinkMatter>(PayloadOf<shm::LinkCommand>(command).matter));
      }
      break;
    default:
      code = SendCredit(rank, command, now_ns);
      break;
  }
  if (code == ErrorCode::kWouldBlock) {
    return Step::kHeld;
  }
  if (code == ErrorCode::kOk &&
      (KindOf(command) == DescriptorKind::kEager || KindOf(command) == DescriptorKind::kRemoteRts ||
       KindOf(command) == DescriptorKind::kPut)) {
    NodeTraffic& traffic = rank.job->RouteTo(command.destination).traffic;
    ++traffic.messages_sent;
    traffic.bytes_sent += command.size_bytes;
  }
  // An eager message to a node that is gone is lost, as if it had been on its way; the rank learns
  // of the node's end by itself. An RTS waits for an answer.
  if (code != ErrorCode::kOk && KindOf(command) == DescriptorKind::kRemoteRts) {
    RefuseRts(rank, command, code);
  } else if (code != ErrorCode::kOk && KindOf(command) == DescriptorKind::kPut) {
    RefuseRts(rank, RtsOf(command), code);
  }
  return Step::kDone;
}

ErrorCode RankCommands::SendEager(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const uint8_t* data =
      (command.flags & shm::kFlagCell) != 0 ? rank.commands.Cell(command.cell) : command.payload;
  const auto send = [&] {
    return outbound_.Send(*rank.job, HeaderOf(rank, command, PacketKind::kEager),
                          std::as_bytes(std::span(data, command.size_bytes)), now_ns);
  };
  if (rank.job->trace.on()) [[unlikely]] {
    return SendTraced(rank, command, send);
  }
  return send();
}

ErrorCode RankCommands::SendRts(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const auto rts = PayloadOf<shm::RemoteRts>(command);
  PacketHeader header = HeaderOf(rank, command, PacketKind::kRemoteRts);
  WireRts wire{rts.send_request, rts.send_generation, 0, 0};
  SentRts announced;
  announced.generation = rts.send_generation;
  announced.destination = command.destination;
  announced.size_bytes = command.size_bytes;
  announced.begun_ns = rank.job->trace.Now(now_ns);
  shm::Location where = rts.where;
  announced.error = AnnounceMemory(private_memory_, registrations_, rank, &where, now_ns,
                                   &rank.claim, &announced, &wire);
  if (announced.error == ErrorCode::kWouldBlock) {
    return announced.error;
  }
  // As the receiver's engine has to count it, whether it is pushed or not.
  header.flags = command.flags & shm::kFlagPushed;
  if (announced.state != SentRts::State::kHeap) {
    // Without a state: the message must still match in its turn, so it goes on as an RTS whose data
    // cannot be fetched.
    header.flags |= shm::kFlagSourcePrivate;
  }
  if (pushes_.MayPush(command, announced)) {
    const ErrorCode code = pushes_.Send(rank, header, rts.send_request,
                                        DataOf(announced, where, rank.claim), &announced, now_ns);
    if (rank.job->trace.on()) [[unlikely]] {
      TraceEager(rank, command, TraceMessage(rts.send_request, rts.send_generation),
                 announced.begun_ns, code);
    }
    return code;
  }
  // Data that goes along may arrive before anybody asks for it, which ends the send.
  if ((command.flags & (shm::kFlagSynchronous | shm::kFlagPushed)) == 0 &&
      MayCarry(outbound_, rank, announced)) {
    announced.carried_bytes = command.size_bytes;
  }
  transport::Attachment data;
  if (announced.carried_bytes != 0) {
    data = DataOf(announced, where, rank.claim);
  }
  const ErrorCode code = outbound_.SendWith(*rank.job, header, BytesOf(wire), data, now_ns);
  if (code == ErrorCode::kOk) {
    announced.claim = std::move(rank.claim);
    staged_sends_.OnRts(rank, rts.send_request, std::move(announced));
  }
  return code;
}

// Once for each RTS. A message that was no RTS, or is none any more, ends without.
ErrorCode RankCommands::SendRetraction(ServedRank& rank, const Descriptor& command,
                                       uint64_t now_ns) {
  const auto rts = PayloadOf<shm::RemoteRts>(command);
  SentRts* const announced = rank.FindRts(rts.send_request);
  if (announced == nullptr || announced->generation != rts.send_generation ||
      announced->destination != command.destination || announced->retracted) {
    return ErrorCode::kOk;
  }
  const WireSend wire{rts.send_request, rts.send_generation};
  const ErrorCode code = outbound_.Send(*rank.job, HeaderOf(rank, command, PacketKind::kRetract),
                                        BytesOf(wire), now_ns);
  announced->retracted = code == ErrorCode::kOk;
  return code;
}

// The rank has matched an RTS, or gives it back.
std::optional<std::string> RankCommands::EndRts(ServedRank& rank, const Descriptor& command,
                                                uint64_t now_ns) {
  return KindOf(command) == DescriptorKind::kRndvGet ? StartRndvGet(rank, command, now_ns)
                                                     : EndRetracted(rank, command, now_ns);
}

std::optional<std::string> RankCommands::EndRetracted(ServedRank& rank, const Descriptor& command,
                                                      uint64_t now_ns) {
  const IncomingId id{PayloadOf<shm::RemoteRts>(command).key};
  const Incoming* const incoming = rank.delivery.Find(id);
  if (incoming == nullptr) {
    return std::nullopt;  // its source is gone, or was cut off
  }
  if (!incoming->retracting) {
    return "it gives back an RTS of rank " + std::to_string(incoming->source) +
           ", which has not retracted it";
  }
  const WireResult result{incoming->send_request, incoming->send_generation,
                          static_cast<int32_t>(ErrorCode::kCancelled), 0};
  outbound_.Post(*rank.job, PacketKind::kSendDone, rank.rank(), incoming->source, result, now_ns);
  rank.delivery.Forget(id);
  return std::nullopt;
}

// An RTR that was withdrawn meanwhile, or pushed out by others, makes it an RTS.
ErrorCode RankCommands::StartPut(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const ErrorCode code = rndv_puts_.Start(rank, command, now_ns);
  return code == ErrorCode::kNotFound ? SendRts(rank, RtsOf(command), now_ns) : code;
}

std::optional<std::string> RankCommands::StartRndvGet(ServedRank& rank, const Descriptor& command,
                                                      uint64_t now_ns) {
  const auto rndv_get = PayloadOf<shm::RndvGetCommand>(command);
  rtrs_.OnRndvGet(rank, rndv_get.transfer, rndv_get.generation);
  return rndv_gets_.Start(rank, rndv_get, now_ns);
}

// Goes where messages go, and so behind all of them.
ErrorCode RankCommands::SendMarker(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const WireSwitch marker{PayloadOf<shm::SwitchMarker>(command).epoch, 0};
  return outbound_.Send(*rank.job, HeaderOf(rank, command, PacketKind::kSwitch), BytesOf(marker),
                        now_ns);
}

ErrorCode RankCommands::SendCredit(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const auto words = PayloadOf<shm::CreditReturn>(command);
  const WireCredit credit{words.count, words.flags, words.bytes, words.epoch};
  return outbound_.Send(*rank.job, HeaderOf(rank, command, PacketKind::kCredit), BytesOf(credit),
                        now_ns);
}

// The bytes are announced to the other daemon as a message would be, and perhaps go along. False:
// try again.
bool RankCommands::StartLongPut(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  const auto words = PayloadOf<shm::OneSidedCommand>(command);
  shm::Location where = OneSided::PlaceHere(rank, command);
  WireRts wire{kFirstOneSidedRts + words.answer, words.serial, 0, 0};
  SentRts announced;
  announced.generation = words.serial;
  announced.destination = command.destination;
  announced.size_bytes = command.size_bytes;
  announced.begun_ns = rank.job->trace.Now(now_ns);
  if (const ErrorCode code = AnnounceMemory(private_memory_, registrations_, rank, &where, now_ns,
                                            &rank.claim, &announced, &wire);
      code != ErrorCode::kOk) {
    return code != ErrorCode::kWouldBlock && one_sided_.Refuse(rank, command, code);
  }
  transport::Attachment data;
  if (MayCarry(outbound_, rank, announced)) {
    announced.carried_bytes = command.size_bytes;
    data = DataOf(announced, where, rank.claim);
  }
  const uint8_t flags = announced.state == SentRts::State::kHeap ? 0 : shm::kFlagSourcePrivate;
  if (!one_sided_.StartLongPut(rank, command, flags, wire, data, now_ns)) {
    return false;
  }
  announced.claim = std::move(rank.claim);
  staged_sends_.OnRts(rank, wire.send_request, std::move(announced));
  return true;
}

void RankCommands::RefuseRts(ServedRank& rank, const Descriptor& command, ErrorCode error) {
  const auto rts = PayloadOf<shm::RemoteRts>(command);
  rank.Answer(DescriptorKind::kSendDone, command.destination, rts.send_request, rts.send_generation,
              error);
}

// As RankEngine::NoticeRoom.
bool RankCommands::NoticeRoom(ServedRank& rank) {
  const uint64_t head = *rank.commands.HeadWord();
  uint32_t& waiting = rank.seat.commands->producer.waiting;
  // Pairs with LaneProducer::AskForRoom: it stores `waiting`, then looks at the head again.
  if (head % engine::kRoomNoticeEvery != 0 || shm::Load(waiting, std::memory_order_seq_cst) == 0) {
    return false;
  }
  shm::StoreRelaxed(waiting, 0);
  return true;
}

}  // namespace ferry::progress
