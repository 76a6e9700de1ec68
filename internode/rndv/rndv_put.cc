#include "internode/rndv/rndv_put.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ferry::progress {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

constexpr uint32_t kPiecesUnderWay = 4;    // of one put
constexpr uint64_t kWriteBytes = 1 << 20;  // longest piece

}  // namespace

// ---- Notes -------------------------------------------------------------------------------------

void Puts::OnAdvert(ServedRank& rank, const PacketHeader& header, const WireAdvert& advert) {
  if (rank.ended || advert.receive.request == 0 || header.size_bytes == 0) {
    return;
  }
  AdvertNotes& notes = rank.notes[header.source];
  const auto same = [&](const AdvertNote& note) {
    return note.receive != 0 && ((note.context == header.context && note.tag == header.tag) ||
                                 note.receive == advert.receive.request);
  };
  // One for the same messages, or of an earlier use of the request, can only be outlived.
  for (AdvertNote& note : notes.notes) {
    note = same(note) ? AdvertNote() : note;
  }
  notes.notes[notes.next++ % notes.notes.size()] = {
      advert.receive.request, advert.receive.generation,
      header.context,         header.tag,
      header.size_bytes,      advert.key,
      advert.address};
  Descriptor hint{};
  hint.kind = static_cast<uint8_t>(DescriptorKind::kAdvert);
  hint.source = header.source;
  hint.destination = header.destination;
  hint.context = header.context;
  hint.tag = header.tag;
  hint.size_bytes = header.size_bytes;
  const shm::AdvertWords words{advert.receive.request, advert.receive.generation, advert.seen, {}};
  std::memcpy(hint.payload, &words, sizeof(words));
  rank.delivery.Hint(hint);
}

AdvertNote* Puts::FindNote(ServedRank& rank, uint32_t receiver, const WireReceive& receive) {
  const auto found = rank.notes.find(receiver);
  if (found == rank.notes.end() || receive.request == 0) {
    return nullptr;
  }
  for (AdvertNote& note : found->second.notes) {
    if (note.receive == receive.request && note.generation == receive.generation) {
      return &note;
    }
  }
  return nullptr;
}

// Ends an advert: the rank sends nothing more by it, and what it has sent was announced before this
// answer.
void Puts::OnWithdraw(Job& job, uint32_t source, uint32_t receiver, const WireReceive& receive,
                      uint64_t now_ns) {
  if (ServedRank* rank = job.served[source]; rank != nullptr) {
    if (AdvertNote* note = FindNote(*rank, receiver, receive); note != nullptr) {
      *note = {};
    }
    Descriptor hint{};
    hint.kind = static_cast<uint8_t>(DescriptorKind::kWithdraw);
    hint.source = receiver;
    hint.destination = source;
    const shm::AdvertWords words{receive.request, receive.generation, 0, {}};
    std::memcpy(hint.payload, &words, sizeof(words));
    rank->delivery.Hint(hint);
  }
  outbound_.Post(job, PacketKind::kWithdrawn, source, receiver, receive, now_ns);
}

void Puts::ForgetNotes(Job& job, uint32_t receiver) {
  for (ServedRank* rank : job.served) {
    if (rank != nullptr) {
      rank->notes.erase(receiver);
    }
  }
}

// ---- Writing -----------------------------------------------------------------------------------

ErrorCode Puts::Start(ServedRank& rank, const Descriptor& command, uint64_t now_ns) {
  shm::PutCommand words;
  std::memcpy(&words, command.payload, sizeof(words));
  const WireReceive receive{words.receive, words.generation};
  AdvertNote* const note = FindNote(rank, command.destination, receive);
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
  if (code != ErrorCode::kOk) {  // an offer of it ends as it should, or is staged
    return code == ErrorCode::kWouldBlock ? code : ErrorCode::kNotFound;
  }
  const PacketHeader header = HeaderOf(rank, command, PacketKind::kPut);
  const WirePut wire{receive, words.send_request, words.send_generation};
  if (const ErrorCode code = outbound_.Send(*rank.job, header, BytesOf(wire), now_ns);
      code != ErrorCode::kOk) {
    return code;
  }
  const TransferId id = Insert(rank, now_ns);
  Put& put = *transfers_.Find(id);
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
  *note = {};  // one message for each advert
  Step(id, put, now_ns);
  return ErrorCode::kOk;
}

bool Puts::MayBegin(const Put& put) {
  return put.begun_bytes < put.size_bytes && put.under_way < kPiecesUnderWay;
}

ErrorCode Puts::BeginPiece(TransferId id, Put& put, uint64_t now_ns) {
  if (!slots_.MayTake(FlowOf(put))) {
    return ErrorCode::kWouldBlock;
  }
  Piece& piece = InsertPiece(id, put, now_ns);
  const engine::Block next = NextRange(put, kWriteBytes);
  piece.offset = next.offset_bytes;
  piece.size_bytes = next.size_bytes;
  const Link& link = *put.job->RouteTo(put.peer).link;
  transport::RmaRequest write = RmaOf(put, piece);
  write.remote_address = put.remote_address + piece.offset;
  write.key = put.key;
  write.context = reinterpret_cast<uint64_t>(&piece) | kWriteContext;
  const ErrorCode code = link.failure != ErrorCode::kOk
                             ? link.failure
                             : transport_.Write(write, transport::Placement::kRemote, now_ns);
  if (code != ErrorCode::kOk) {
    pieces_.Erase(piece.self);
    return code;
  }
  slots_.Take(FlowOf(put));
  ++put.under_way;
  put.begun_bytes += piece.size_bytes;
  return code;
}

void Puts::OnWriteComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  const Piece& piece = *reinterpret_cast<Piece*>(context & ~kWriteContext);
  Put& put = *transfers_.Find(piece.transfer);
  slots_.Give(FlowOf(put));
  put.heard_ns = now_ns;
  TracePiece(put, piece, TraceKind::kWrite, code);
  // An invalid buffer was refused.
  put.uncertain |= code != ErrorCode::kOk && code != ErrorCode::kInvalidBuffer;
  EndPiece(piece, code, now_ns);
}

void Puts::OnEnd(const Put& put, ServedRank* rank, uint64_t now_ns) {
  const WirePutDone done{put.receive, static_cast<int32_t>(put.error), put.uncertain ? 1U : 0U};
  outbound_.Post(*put.job, PacketKind::kPutDone, put.here, put.peer, done, now_ns);
  rank->Answer(DescriptorKind::kSendDone, put.peer, put.request, put.generation, put.error);
}

}  // namespace ferry::progress
