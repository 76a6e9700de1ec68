#include "internode/rma/one_sided_rings.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "internode/rma/one_sided.h"
#include "internode/rndv/rndv_rts.h"
#include "shm/atomic_operation.h"
#include "shm/word_copy.h"

namespace ferry::progress {
namespace {

using shm::OneSidedOperation;

// The most bytes that the short gets of a rank's rings may await from one peer, whose daemon keeps
// the bytes that the link cannot take.
constexpr uint64_t kMostGetBytes = uint64_t{shm::kAnswers} * shm::kCellBytes;

// Returns the bytes of the answer to an operation, apart from the report that it is over.
uint64_t AnswerBytes(bool wants_answer, uint64_t get_bytes) {
  return wants_answer || get_bytes != 0 ? kAnswerBytes + get_bytes : 0;
}

PacketHeader HeaderOf(const ServedRank& rank, const RingCall& call) {
  PacketHeader header{};
  header.kind = static_cast<uint8_t>(PacketKind::kOneSided);
  header.source = rank.rank();
  header.destination = call.peer;
  header.stream = static_cast<uint8_t>(OneSidedStream::kRings);
  header.context = shm::RegionOf(call.segment);
  header.size_bytes = call.size_bytes;
  return header;
}

WireOneSided WireOf(const RingCall& call, OneSidedOperation operation) {
  WireOneSided wire{};
  wire.operation = static_cast<uint8_t>(operation);
  wire.width = call.width;
  wire.wants_answer = call.wants_answer ? 1 : 0;
  wire.region = shm::RegionOf(call.segment);
  wire.offset = call.offset;
  wire.operand = call.operand;
  wire.compare = call.compare;
  if (call.has_signal()) {
    wire.signal = static_cast<uint8_t>(call.signal.update);
    wire.signal_region = shm::RegionOf(call.signal.segment);
    wire.operand = call.signal.value;
    wire.compare = call.signal.offset;
  }
  return wire;
}

// The rank's own bytes of a put or get, if CPUs reach them.
ErrorCode FindOwn(ServedRank& rank, const shm::Location& here, uint64_t size_bytes, bool is_write,
                  std::byte** bytes) {
  const ServedRegion* const region = rank.FindRegion(here, size_bytes);
  if (region == nullptr || (is_write && region->memory.lent)) {
    return ErrorCode::kInvalidBuffer;
  }
  if (region->memory.by_stream) {
    return ErrorCode::kUnsupported;
  }
  *bytes = region->memory.base + here.address;
  return ErrorCode::kOk;
}

// Brings what a get has got to where it belongs.
ErrorCode Store(ServedRank& rank, const shm::Location& here, std::span<const std::byte> data,
                uint64_t* value) {
  if (here.region == 0) {
    *value = 0;
    std::memcpy(value, data.data(), std::min(data.size(), sizeof(*value)));
    return ErrorCode::kOk;
  }
  std::byte* own = nullptr;
  const ErrorCode code = FindOwn(rank, here, data.size(), /*is_write=*/true, &own);
  if (code == ErrorCode::kOk) {
    shm::CopyWords(own, data.data(), data.size());
  }
  return code;
}

}  // namespace

// ---- In memory of this node ---------------------------------------------------------------------

ErrorCode OneSidedRings::CarryOutForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                                         uint64_t* value) {
  std::span<const std::byte> data;
  if (call.is_put() && call.here.region == 0) {
    data = std::as_bytes(std::span(&call.operand, 2)).first(call.size_bytes);
  } else if (call.is_put()) {
    std::byte* own = nullptr;
    if (const ErrorCode code = FindOwn(rank, call.here, call.size_bytes, /*is_write=*/false, &own);
        code != ErrorCode::kOk) {
      return code;
    }
    data = {own, call.size_bytes};
  }
  std::span<const std::byte> found;
  PacketHeader header = HeaderOf(rank, call);
  header.tag = static_cast<int32_t>(shm::RegionOf(call.signal.segment));
  const ErrorCode code = memory_.CarryOut(*rank.job, header, WireOf(call, call.operation), data,
                                          now_ns, value, &found);
  return code == ErrorCode::kOk && call.is_get() ? Store(rank, call.here, found, value) : code;
}

// ---- Leaving for another node -------------------------------------------------------------------

ErrorCode OneSidedRings::BeginForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                                      Claim* claim, bool* is_long) {
  *is_long = false;
  if (const ErrorCode ended = rank.StateOf(call.peer); ended != ErrorCode::kOk) {
    return ended;
  }
  if (shm::IsAtomic(call.operation)) {
    return BeginShort(rank, call, now_ns);
  }
  bool is_by_stream = (call.segment & shm::kSegmentByStream) != 0;
  if (call.here.region != 0) {
    const ServedRegion* const region = rank.FindRegion(call.here, call.size_bytes);
    if (region == nullptr || (call.is_get() && region->memory.lent)) {
      return ErrorCode::kInvalidBuffer;
    }
    is_by_stream |= region->memory.by_stream;
  } else if (is_by_stream) {
    return ErrorCode::kUnsupported;  // no bytes are fetched from a request
  }
  if (call.size_bytes <= shm::kCellBytes && !is_by_stream) {
    return BeginShort(rank, call, now_ns);
  }
  *is_long = true;
  return call.is_put() ? BeginLongPut(rank, call, now_ns, claim) : BeginLongGet(rank, call, now_ns);
}

ErrorCode OneSidedRings::BeginShort(ServedRank& rank, const RingCall& call, uint64_t now_ns) {
  RingStream& stream = rank.one_sided.ring_streams[call.peer];
  const uint64_t get_bytes = call.is_get() ? call.size_bytes : 0;
  const uint64_t answer_bytes = AnswerBytes(call.wants_answer, get_bytes);
  NodeUse& node = rank.job->UseOf(call.peer);
  const Link* const link = rank.job->RouteTo(call.peer).link;
  if ((get_bytes != 0 && stream.get_bytes + get_bytes > kMostGetBytes) ||
      (answer_bytes != 0 && link != nullptr && !node.MayAskBytes(answer_bytes, link->routes))) {
    return ErrorCode::kWouldBlock;
  }
  WireOneSided wire = WireOf(call, call.operation);
  wire.size_bytes = static_cast<uint32_t>(call.size_bytes);
  PacketHeader header = HeaderOf(rank, call);
  header.context = 0;
  header.size_bytes = 0;
  header.number = stream.counts.begun + 1;
  std::span<const std::byte> data;
  if (call.is_put() && call.here.region != 0) {
    std::byte* own = nullptr;
    if (const ErrorCode code = FindOwn(rank, call.here, call.size_bytes, /*is_write=*/false, &own);
        code != ErrorCode::kOk) {
      return code;
    }
    if (call.size_bytes <= shm::kInlinePutBytes && !call.has_signal()) {
      std::memcpy(&wire.operand, own, std::min<uint64_t>(call.size_bytes, sizeof(wire.operand)));
      if (call.size_bytes > sizeof(wire.operand)) {
        std::memcpy(&wire.compare, own + sizeof(wire.operand),
                    call.size_bytes - sizeof(wire.operand));
      }
    } else {
      data = {own, call.size_bytes};
    }
  }
  const ErrorCode code = outbound_.SendJoined(*rank.job, header, BytesOf(wire), data, now_ns);
  if (code == ErrorCode::kOk) {
    stream.counts.begun = header.number;
    stream.flights.push_back({header.number, call.token, call.wants_answer, get_bytes, call.here});
    stream.get_bytes += get_bytes;
    if (stream.flights.size() == 1) {
      stream.use = CountedUse(&node.bytes_asked, 0);
    }
    stream.use.Grow(answer_bytes);
  }
  return code;
}

ErrorCode OneSidedRings::BeginLongPut(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                                      Claim* claim) {
  if (!OneSided::MayAskLong(rank, call.peer)) {
    return ErrorCode::kWouldBlock;
  }
  SentRts announced;
  announced.generation = rank.one_sided.lent_generation + 1;
  announced.destination = call.peer;
  announced.size_bytes = call.size_bytes;
  announced.begun_ns = rank.job->trace.Now(now_ns);
  WireRts wire{0, announced.generation, 0, 0};
  if (const ErrorCode code =
          AnnounceRegion(registrations_, rank, call.here, now_ns, claim, &announced, &wire);
      code != ErrorCode::kOk) {
    return code;
  }
  transport::Attachment data;
  if (MayCarry(outbound_, rank, announced)) {
    announced.carried_bytes = call.size_bytes;
    data = {announced.region->memory.base + call.here.address, announced.carried_bytes,
            claim->handle()};
  }
  PacketHeader header = HeaderOf(rank, call);
  header.flags = announced.state == SentRts::State::kHeap ? 0 : shm::kFlagSourcePrivate;
  WireOneSided words = WireOf(call, OneSidedOperation::kLongPut);
  if (!call.has_signal()) {
    words.operand = words.compare = 0;
  }
  wire.send_request = announced.lent = rank.TakeRts();
  const ErrorCode code = one_sided_.SendLongPut(rank, header, words, wire, data, now_ns);
  if (code != ErrorCode::kOk) {
    rank.GiveRts(announced.lent);
  } else {
    rank.one_sided.lent_generation = announced.generation;
    announced.claim = std::move(*claim);
    rank.one_sided.ring_transfers.push_back(
        {call.token, call.peer, wire.send_request, wire.send_generation, false, false,
         call.size_bytes, call.here, CountedUse(&rank.job->UseOf(call.peer).long_asked, 1)});
    staged_sends_.OnRts(rank, wire.send_request, std::move(announced));
  }
  return code;
}

ErrorCode OneSidedRings::BeginLongGet(ServedRank& rank, const RingCall& call, uint64_t now_ns) {
  if (!OneSided::MayAskLong(rank, call.peer)) {
    return ErrorCode::kWouldBlock;
  }
  const uint32_t number = rank.one_sided.ring_gets + 1;
  const uint32_t request = kRingGets + number % (UINT32_MAX - kRingGets);
  WireOneSided wire = WireOf(call, OneSidedOperation::kLongGet);
  wire.operand = request;
  wire.compare = number;
  const ErrorCode code =
      outbound_.SendParts(*rank.job, HeaderOf(rank, call), BytesOf(wire), {}, now_ns);
  if (code == ErrorCode::kOk) {
    rank.one_sided.ring_gets = number;
    rank.one_sided.ring_transfers.push_back(
        {call.token, call.peer, request, number, true, false, call.size_bytes, call.here,
         CountedUse(&rank.job->UseOf(call.peer).long_asked, 1)});
  }
  return code;
}

// ---- Ends ---------------------------------------------------------------------------------------

// An operation with an answer gets one even if it fails: so no earlier operation that still waits
// for its answer can be over.
void OneSidedRings::OnDone(ServedRank& rank, uint32_t peer, const WireOneSidedDone& done,
                           std::span<const std::byte> data) {
  const auto found = rank.one_sided.ring_streams.find(peer);
  if (found == rank.one_sided.ring_streams.end() || done.number <= found->second.counts.done ||
      done.number > found->second.counts.begun) {
    return;  // it was given up when the link was cut
  }
  RingStream& stream = found->second;
  stream.counts.done = done.number;
  while (!stream.flights.empty() && stream.flights.front().number <= done.number) {
    const RingFlight flight = stream.flights.front();
    stream.flights.pop_front();
    stream.get_bytes -= flight.size_bytes;
    stream.use.Shrink(AnswerBytes(flight.wants_answer, flight.size_bytes));
    ErrorCode error = ErrorCode::kOk;
    uint64_t value = 0;
    if (flight.number == done.number) {
      error = static_cast<ErrorCode>(done.error);
      value = done.value;
      if (error == ErrorCode::kOk && flight.size_bytes != 0 && flight.token.ring != 0) {
        error = data.size() == flight.size_bytes ? Store(rank, flight.here, data, &value)
                                                 : ErrorCode::kCorrupt;
      }
    } else if (flight.wants_answer) {
      error = ErrorCode::kCorrupt;
    }
    on_ring_end(rank, flight.token, error, value);
  }
}

namespace {

// Takes the transfer that is meant out of the list; its request is 0 if there is none.
template <typename Is>
RingTransfer Take(ServedRank& rank, Is&& is) {
  auto& all = rank.one_sided.ring_transfers;
  const auto found = std::find_if(all.begin(), all.end(), is);
  if (found == all.end()) {
    return {};
  }
  RingTransfer taken = std::move(*found);
  if (&*found != &all.back()) {
    *found = std::move(all.back());
  }
  all.pop_back();
  return taken;
}

}  // namespace

bool OneSidedRings::OnResult(ServedRank& rank, uint32_t peer, const WireResult& result) {
  const RingTransfer ended = Take(rank, [&](const RingTransfer& transfer) {
    return transfer.peer == peer && transfer.request == result.send_request &&
           transfer.generation == result.send_generation && !transfer.is_fetched;
  });
  if (ended.request != 0) {
    on_ring_end(rank, ended.token, static_cast<ErrorCode>(result.error), 0);
  }
  return ended.request != 0;
}

bool OneSidedRings::OnRts(ServedRank& rank, const PacketHeader& header,
                          const WireOneSidedRts& announced, std::span<const std::byte> data,
                          uint64_t now_ns) {
  for (RingTransfer& get : rank.one_sided.ring_transfers) {
    if (get.is_get && !get.is_fetched && get.peer == header.source &&
        get.request == announced.get.request && get.generation == announced.get.generation) {
      get.is_fetched = true;
      if (memory_.Land(rank, get.here, get.size_bytes, data)) {
        EndGet(rank, get.request, ErrorCode::kOk);
        memory_.EndRts(*rank.job, header, announced.rts, ErrorCode::kOk, now_ns);
        return true;
      }
      const bool is_private = (header.flags & shm::kFlagSourcePrivate) != 0;
      OneSidedEnd end;
      end.is_get = true;
      end.ring_get = get.request;
      const shm::Location here = get.here;  // the rendezvous get may end at once
      const uint64_t size_bytes = get.size_bytes;
      rndv_gets_.StartOneSided(rank, header.source,
                               is_private ? Incoming::Kind::kPrivate : Incoming::Kind::kHeap,
                               announced.rts, here, size_bytes, end, now_ns);
      return true;
    }
  }
  return false;
}

void OneSidedRings::EndGet(ServedRank& rank, uint32_t request, ErrorCode error) {
  const RingTransfer ended = Take(rank, [&](const RingTransfer& transfer) {
    return transfer.is_fetched && transfer.request == request;
  });
  if (ended.request != 0) {
    on_ring_end(rank, ended.token, error, 0);
  }
}

void OneSidedRings::FailWith(ServedRank& rank, uint32_t peer, ErrorCode error) {
  if (const auto found = rank.one_sided.ring_streams.find(peer);
      found != rank.one_sided.ring_streams.end()) {
    found->second.counts.done = found->second.counts.begun;
    found->second.get_bytes = 0;
    found->second.use = {};
    for (const RingFlight& flight : std::exchange(found->second.flights, {})) {
      on_ring_end(rank, flight.token, error, 0);
    }
  }
  // Of gets whose bytes are on their way here, the rendezvous get says the end.
  std::vector<RingTransfer> ended;
  std::erase_if(rank.one_sided.ring_transfers, [&](RingTransfer& transfer) {
    const bool is_over = transfer.peer == peer && !transfer.is_fetched;
    if (is_over) {
      ended.push_back(std::move(transfer));
    }
    return is_over;
  });
  for (const RingTransfer& transfer : ended) {
    on_ring_end(rank, transfer.token, error, 0);
  }
}

void OneSidedRings::ForgetRing(ServedRank& rank, uint64_t ring) {
  for (auto& [peer, stream] : rank.one_sided.ring_streams) {
    for (RingFlight& flight : stream.flights) {
      flight.token.ring = flight.token.ring == ring ? 0 : flight.token.ring;
    }
  }
  // A get whose bytes are on their way here stays listed until its rendezvous get has ended.
  std::erase_if(rank.one_sided.ring_transfers, [ring](RingTransfer& transfer) {
    const bool is_its = transfer.token.ring == ring;
    transfer.token.ring = is_its ? 0 : transfer.token.ring;
    return is_its && !transfer.is_fetched;
  });
}

}  // namespace ferry::progress
