#include "daemon/progress/puts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "daemon/progress/records.h"

namespace ferry::daemon {

using shm::Descriptor;
using shm::DescriptorKind;

namespace {

constexpr uint32_t kPiecesUnderWay = 4;    // of one put
constexpr uint32_t kWritesUnderWay = 32;   // of all: the transport's other slots are for others
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
      command.size_bytes == 0 || found == nullptr || found->memory.region->by_stream) {
    return ErrorCode::kNotFound;
  }
  ServedRegion& region = *found;
  if (const ErrorCode code = registrations_.Hold(region.memory, words.where.address,
                                                 command.size_bytes, UseFor::kTransfer, now_ns,
                                                 &rank.claim);
      code != ErrorCode::kOk) {  // an offer of it ends as it should
    return code == ErrorCode::kWouldBlock ? code : ErrorCode::kNotFound;
  }
  const PacketHeader header = HeaderOf(rank, command, PacketKind::kPut);
  const WirePut wire{receive, words.send_request, words.send_generation};
  if (const ErrorCode code = outbound_.Send(*rank.job, header, BytesOf(wire), now_ns);
      code != ErrorCode::kOk) {
    return code;
  }
  const PutId id = puts_.Insert();
  Put& put = *puts_.Find(id);
  put.rank = &rank;
  put.request = words.send_request;
  put.generation = words.send_generation;
  put.destination = command.destination;
  put.receive = receive;
  put.region = &region;
  put.claim = std::move(rank.claim);
  put.source = region.memory.base() + words.where.address;
  put.remote_address = note->address;
  put.key = note->key;
  put.size_bytes = std::min(command.size_bytes, note->size_bytes);
  put.heard_ns = now_ns;
  put.begun_ns = rank.job->trace.Now(now_ns);
  ++rank.operations;
  ++region.users;
  *note = {};  // one message for each advert
  Step(id, put, now_ns);
  return ErrorCode::kOk;
}

// Begins as many pieces as may be.
void Puts::Step(PutId id, Put& put, uint64_t now_ns) {
  while (!put.queued && put.error == ErrorCode::kOk && put.begun_bytes < put.size_bytes &&
         put.under_way < kPiecesUnderWay) {
    const ErrorCode code = BeginPiece(id, put, now_ns);
    if (code == ErrorCode::kWouldBlock) {
      put.queued = true;
      wants_slot_.push_back(static_cast<uint64_t>(id));
    } else {
      put.error = code;
    }
  }
  EndIfDone(id, put, now_ns);
}

ErrorCode Puts::BeginPiece(PutId id, Put& put, uint64_t now_ns) {
  if (writes_ >= kWritesUnderWay) {
    return ErrorCode::kWouldBlock;
  }
  const PutPieceId piece_id = pieces_.Insert();
  Piece& piece = *pieces_.Find(piece_id);
  piece.self = piece_id;
  piece.put = id;
  piece.offset = put.begun_bytes;
  piece.size_bytes = std::min(kWriteBytes, put.size_bytes - put.begun_bytes);
  piece.begun_ns = put.rank->job->trace.Now(now_ns);
  const Link& link = *put.rank->job->RouteTo(put.destination).link;
  transport::RmaRequest write;
  write.peer = link.peer;
  write.local = put.source + put.begun_bytes;
  write.region = put.claim.handle();
  write.remote_address = put.remote_address + put.begun_bytes;
  write.key = put.key;
  write.bytes = piece.size_bytes;
  write.context = reinterpret_cast<uint64_t>(&piece) | kWriteContext;
  write.rail = put.rank->nearest_rail;
  const ErrorCode code = link.failure != ErrorCode::kOk
                             ? link.failure
                             : transport_.Write(write, transport::Placement::kRemote, now_ns);
  if (code != ErrorCode::kOk) {
    pieces_.Erase(piece_id);
    return code;
  }
  ++writes_;
  ++put.under_way;
  put.begun_bytes += piece.size_bytes;
  return code;
}

void Puts::OnWriteComplete(uint64_t context, ErrorCode code, uint64_t now_ns) {
  const Piece piece = *reinterpret_cast<Piece*>(context & ~kWriteContext);
  pieces_.Erase(piece.self);
  Put& put = *puts_.Find(piece.put);
  --writes_;
  --put.under_way;
  put.heard_ns = now_ns;
  if (put.rank->job->trace.on()) {
    Trace(put, piece, code);
  }
  if (code == ErrorCode::kOk) {
    put.done_bytes += piece.size_bytes;
  } else {
    put.uncertain |= code != ErrorCode::kInvalidBuffer;  // that one was refused
    put.error = put.error == ErrorCode::kOk ? code : put.error;
  }
  Step(piece.put, put, now_ns);
}

// Goes on in order, until one of them is queued again.
void Puts::Advance(uint64_t now_ns) {
  for (size_t n = wants_slot_.size(); n > 0; --n) {
    const PutId id{wants_slot_.front()};
    wants_slot_.pop_front();
    Put* put = puts_.Find(id);
    if (put == nullptr) {
      continue;
    }
    put->queued = false;
    Step(id, *put, now_ns);
    put = puts_.Find(id);
    if (put != nullptr && put->queued) {
      return;
    }
  }
}

// ---- Ending ------------------------------------------------------------------------------------

void Puts::EndIfDone(PutId id, Put& put, uint64_t now_ns) {
  if (put.under_way == 0 && (put.error != ErrorCode::kOk || put.done_bytes >= put.size_bytes)) {
    End(id, put, now_ns);
  }
}

void Puts::End(PutId id, Put& put, uint64_t now_ns) {
  ServedRank& rank = *put.rank;
  if (rank.job->trace.on()) {
    Trace(put, {}, put.error);
  }
  const WirePutDone done{put.receive, static_cast<int32_t>(put.error), put.uncertain ? 1U : 0U};
  outbound_.Post(*rank.job, PacketKind::kPutDone, rank.rank(), put.destination, done, now_ns);
  --rank.operations;
  --put.region->users;
  rank.Answer(DescriptorKind::kSendDone, put.destination, put.request, put.generation, put.error);
  puts_.Erase(id);
}

template <typename Predicate>
void Puts::FailIf(ErrorCode error, uint64_t now_ns, Predicate&& matches) {
  puts_.ForEach([&](PutId id, Put& put) {
    if (matches(put)) {
      put.error = put.error == ErrorCode::kOk ? error : put.error;
      EndIfDone(id, put, now_ns);
    }
  });
}

void Puts::FailOf(const ServedRank* rank, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [rank](const Put& put) { return put.rank == rank; });
}

void Puts::FailTo(const Job* job, uint32_t destination, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [job, destination](const Put& put) {
    return put.rank->job == job && put.destination == destination;
  });
}

void Puts::FailFrom(const ServedRegion* region, ErrorCode error, uint64_t now_ns) {
  FailIf(error, now_ns, [region](const Put& put) { return put.region == region; });
}

// ---- Trace -------------------------------------------------------------------------------------

// An empty piece stands for the put as a whole.
void Puts::Trace(const Put& put, const Piece& piece, ErrorCode error) {
  const bool whole = piece.size_bytes == 0;
  TraceRecord record =
      RecordOf(*put.rank->job, whole ? TraceKind::kPut : TraceKind::kWrite, put.rank->rank(),
               put.destination, whole ? put.begun_ns : piece.begun_ns);
  record.end_ns = MonotonicNs();
  record.message = TraceMessage(put.request, put.generation);
  record.offset = piece.offset;
  record.bytes = whole ? put.size_bytes : piece.size_bytes;
  record.place = whole ? TracePlace::kProgressThread : TracePlace::kNic;
  record.error = TraceError(error);
  put.rank->job->trace.Put(record);
}

void Puts::TraceUnfinished() {
  puts_.ForEach([](PutId, const Put& put) {
    if (put.rank->job->trace.on()) {
      Trace(put, {}, ErrorCode::kWouldBlock);
    }
  });
}

// ---- Looking in --------------------------------------------------------------------------------

void Puts::Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports) {
  puts_.ForEach([&](PutId, const Put& put) {
    if (put.rank == &rank) {
      TransferReport report{false, put.request, put.destination, put.done_bytes, put.size_bytes};
      report.silent_ns = now_ns - std::min(now_ns, put.heard_ns);
      report.wants = put.queued ? "a slot of the network" : nullptr;
      reports->push_back(report);
    }
  });
}

}  // namespace ferry::daemon
