#include "internode/rndv/rndv_put.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

constexpr uint32_t kFragmentsUnderWay = 4;  // of one put
constexpr uint64_t kWriteBytes = 1 << 20;   // longest fragment

}  // namespace

// ---- Notes -------------------------------------------------------------------------------------

void RndvPuts::OnRtr(ServedRank& rank, const PacketHeader& header, const WireRtr& rtr) {
  if (rank.ended || rtr.receive.request == 0 || header.size_bytes == 0) {
    return;
  }
  RtrNotes& notes = rank.notes[header.source];
  const auto same = [&](const RtrNote& note) {
    return note.receive != 0 && ((note.context == header.context && note.tag == header.tag) ||
                                 note.receive == rtr.receive.request);
  };
  // A note for the same messages, or of an earlier use of the request, is out of date: drop it.
  for (RtrNote& note : notes.notes) {
    note = same(note) ? RtrNote() : note;
  }
  notes.notes[notes.next++ % notes.notes.size()] = {rtr.receive.request, rtr.receive.generation,
                                                    header.context,      header.tag,
                                                    header.size_bytes,   rtr.key,
                                                    rtr.address};
  Descriptor hint{};
  hint.kind = static_cast<uint8_t>(DescriptorKind::kRtr);
  hint.source = header.source;
  hint.destination = header.destination;
  hint.context = header.context;
  hint.tag = header.tag;
  hint.size_bytes = header.size_bytes;
  const shm::RtrWords words{rtr.receive.request, rtr.receive.generation, rtr.seen, {}};
  std::memcpy(hint.payload, &words, sizeof(words));
  rank.delivery.Hint(hint);
}

RtrNote* RndvPuts::FindNote(ServedRank& rank, uint32_t receiver, const WireReceive& receive) {
  const auto found = rank.notes.find(receiver);
  if (found == rank.notes.end() || receive.request == 0) {
    return nullptr;
  }
  for (RtrNote& note : found->second.notes) {
    if (note.receive == receive.request && note.generation == receive.generation) {
      return &note;
    }
  }
  return nullptr;
}

// Ends an RTR: the rank sends nothing more by it, and what it has sent was announced before this
// answer.
void RndvPuts::OnWithdraw(Job& job, uint32_t source, uint32_t receiver, const WireReceive& receive,
                          uint64_t now_ns) {
  if (ServedRank* rank = job.served[source]; rank != nullptr) {
    if (RtrNote* note = FindNote(*rank, receiver, receive); note != nullptr) {
      *note = {};
    }
    Descriptor hint{};
    hint.kind = static_cast<uint8_t>(DescriptorKind::kWithdraw);
    hint.source = receiver;
    hint.destination = source;
    const shm::RtrWords words{receive.request, receive.generation, 0, {}};
    std::memcpy(hint.payload, &words, sizeof(words));
    rank->delivery.Hint(hint);
  }
  outbound_.Post(job, PacketKind::kWithdrawn, source, receiver, receive, now_ns);
}

void RndvPuts::ForgetNotes(Job& job, uint32_t receiver) {
  job.ForEachServed([receiver](ServedRank& rank) { rank.notes.erase(receiver); });
}

// ---- Writing -----------------------------------------------------------------------------------

ErrorCode RndvPuts::Start(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  shm::PutCommand words;
  std::memcpy(&words, command.payload, sizeof(words));
  const WireReceive receive{words.receive, words.generation};
  RtrNote* const note = FindNote(rank, command.destination, receive);
  ServedRegion* const found = rank.FindRegion(words.where, command.size_bytes);
  if (note == nullptr || note->context != command.context || note->tag != command.tag ||
      command.size_bytes == 0 || found == nullptr) {
    return ErrorCode::kNotFound;
  }
  ServedRegion& region = *found;
  ClaimableRegion& memory = region.memory;
  const ErrorCode code =
      memory.by_stream ? registrations_.HoldDevice(memory, words.where.address, command.size_bytes,
                                                   UseFor::kTransfer, now_ns, &rank.claim)
                       : registrations_.Hold(memory, words.where.address, command.size_bytes,
                                             UseFor::kTransfer, now_ns, &rank.claim);
  if (code != ErrorCode::kOk) {  // an RTS of it ends as it should, or is staged
    return code == ErrorCode::kWouldBlock ? code : ErrorCode::kNotFound;
  }
  const PacketHeader header = HeaderOf(rank, command, PacketKind::kPut);
  const WirePut wire{receive, words.send_request, words.send_generation};
  if (const ErrorCode code = outbound_.Send(*rank.job, header, BytesOf(wire), now_ns);
      code != ErrorCode::kOk) {
    return code;
  }
  const TransferId id = Insert(rank, now_ns);
  RndvPut& put = *transfers_.Find(id);
  put.peer = command.destination;
  put.request = put.send_request = words.send_request;
  put.generation = put.send_generation = words.send_generation;
  put.receive = receive;
  put.claim = std::move(rank.claim);
  put.mapped = memory.begin() + words.where.address;
  UseRegion(&region, &put);
  if (memory.by_stream) {
    depot_.CountDevice(/*is_direct=*/true);
  }
  put.remote_address = note->address;
  put.key = note->key;
  put.size_bytes = std::min(command.size_bytes, note->size_bytes);
  *note = {};  // one message for each RTR
  Step(id, put, now_ns);
  return ErrorCode::kOk;
}

bool RndvPuts::MayBegin(const RndvPut& put) {
  return put.begun_bytes < put.size_bytes && put.under_way < kFragmentsUnderWay;
}

ErrorCode RndvPuts::BeginFragment(TransferId id, RndvPut& put, uint64_t now_ns) {
  if (!slots_.MayTake(FlowOf(put))) {
    return ErrorCode::kWouldBlock;
  }
  Fragment& fragment = InsertFragment(id, put, now_ns);
  const engine::Block next = NextRange(put, kWriteBytes);
  fragment.offset = next.offset_bytes;
  fragment.size_bytes = next.size_bytes;
  const Link& link = *put.job->RouteTo(put.peer).link;
  transport::RmaRequest write = RmaOf(put, fragment);
  write.remote_address = put.remote_address + fragment.offset;
  write.key = put.key;
  write.context = reinterpret_cast<uint64_t>(&fragment) | kWriteContext;
  const ErrorCode code = link.failure != ErrorCode::kOk
                             ? link.failure
                             : transport_.Write(write, transport::Placement::kRemote, now_ns);
  if (code != ErrorCode::kOk) {
    fragments_.Erase(fragment.self);
    return code;
  }
  slots_.Take(FlowOf(put));
  ++put.under_way;
  put.begun_bytes += fragment.size_bytes;
  return code;
}

void RndvPuts::OnWriteComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  const Fragment& fragment = *reinterpret_cast<Fragment*>(context & ~kWriteContext);
  RndvPut& put = *transfers_.Find(fragment.transfer);
  slots_.Give(FlowOf(put));
  put.heard_ns = now_ns;
  TracePiece(put, fragment, TraceKind::kWrite, code);
  // An invalid buffer was refused.
  put.uncertain |= code != ErrorCode::kOk && code != ErrorCode::kInvalidBuffer;
  EndFragment(fragment, code, now_ns);
}

void RndvPuts::OnEnd(const RndvPut& put, ServedRank* rank, uint64_t now_ns) {
  const WirePutDone done{put.receive, static_cast<int32_t>(put.error), put.uncertain ? 1U : 0U};
  outbound_.Post(*put.job, PacketKind::kPutDone, put.here, put.peer, done, now_ns);
  rank->Answer(DescriptorKind::kSendDone, put.peer, put.request, put.generation, put.error);
}

}  // namespace ferry::progress
