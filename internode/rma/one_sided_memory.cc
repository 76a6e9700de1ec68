#include "internode/rma/one_sided_memory.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "internode/rma/one_sided_words.h"
#include "internode/rndv/rndv_rts.h"
#include "shm/atomic_operation.h"
#include "shm/word_copy.h"

namespace ferry::progress {
namespace {

using shm::OneSidedOperation;
using shm::SignalUpdate;

// Beyond so much, what comes waits for the elements' lock with all else that the core serves. A
// holder that runs has given the lock back long before.
constexpr uint64_t kMostHeldBytes = 8 << 20;

// The header's words, as they are for one of the operations of its packet.
void SetOperation(const WireOneSided& wire, uint64_t size_bytes, PacketHeader* header) {
  header->context = wire.region;
  header->tag = static_cast<int32_t>(wire.signal_region);
  header->size_bytes = size_bytes;
}

// Returns the number of bytes that follow a short operation in its packet.
size_t DataBytes(const WireOneSided& wire) {
  return HasData(wire.operation, static_cast<int32_t>(wire.signal_region)) &&
                 !IsDataInline(wire.signal, wire.size_bytes)
             ? wire.size_bytes
             : 0;
}

// Returns an operation's data: `behind`, or the bytes in its words.
std::span<const std::byte> DataOf(const WireOneSided& wire, std::span<const std::byte> behind) {
  return HasData(wire.operation, static_cast<int32_t>(wire.signal_region)) && behind.empty() &&
                 wire.signal == 0
             ? std::as_bytes(std::span(&wire.operand, 2)).first(wire.size_bytes)
             : behind;
}

void Update(std::byte* signal, uint8_t update, uint64_t value) {
  shm::UpdateSignal(*reinterpret_cast<uint64_t*>(signal), static_cast<SignalUpdate>(update), value);
}

}  // namespace

bool OneSidedMemory::Land(ServedRank& rank, shm::Location where, uint64_t size_bytes,
                          std::span<const std::byte> data) const {
  if (data.size() != size_bytes ||
      private_memory_.Locate(rank, size_bytes, NamedBy::kRank, &where) != ErrorCode::kOk) {
    return false;
  }
  std::byte* here = nullptr;
  if (where.region == 0) {
    here = private_memory_.At(rank, where.address, size_bytes);
  } else if (const ServedRegion* const region = rank.FindRegion(where, size_bytes);
             region != nullptr && !region->memory.by_stream && !region->memory.lent) {
    here = region->memory.base + where.address;
  }
  if (here != nullptr) {
    shm::CopyWords(here, data.data(), data.size());
  }
  return here != nullptr;
}

// Which CPUs may write to, or read. A number that names no region, 0, would be an address.
ErrorCode OneSidedMemory::FindMemory(ServedRank& rank, uint32_t region_id, uint64_t offset,
                                     uint64_t size_bytes, bool is_write, Memory* found) const {
  shm::Location where{region_id, 0, offset};
  if (region_id == 0) {
    return ErrorCode::kInvalidBuffer;
  }
  if (const ErrorCode code = private_memory_.Locate(rank, size_bytes, NamedBy::kPeer, &where);
      code != ErrorCode::kOk) {
    return code;
  }
  if (where.region == 0) {
    *found = {nullptr, private_memory_.At(rank, where.address, size_bytes)};
    return found->bytes != nullptr ? ErrorCode::kOk : ErrorCode::kInvalidBuffer;
  }
  ServedRegion* const region = rank.FindRegion(where, size_bytes);
  if (region == nullptr || (is_write && region->memory.lent)) {
    return ErrorCode::kInvalidBuffer;
  }
  *found = {region, region->memory.by_stream ? nullptr : region->memory.base + offset};
  return ErrorCode::kOk;
}

ErrorCode OneSidedMemory::FindBytes(ServedRank& rank, uint32_t region_id, uint64_t offset,
                                    uint64_t size_bytes, bool is_write, std::byte** bytes) const {
  Memory memory;
  const ErrorCode code = FindMemory(rank, region_id, offset, size_bytes, is_write, &memory);
  *bytes = memory.bytes;
  return code == ErrorCode::kOk && memory.bytes == nullptr ? ErrorCode::kUnsupported : code;
}

// Finds a word as FindBytes finds bytes. Memory that the program exposes may begin at any address.
ErrorCode OneSidedMemory::FindWord(ServedRank& rank, uint32_t region_id, uint64_t offset,
                                   uint64_t width, std::byte** word) const {
  const ErrorCode code = FindBytes(rank, region_id, offset, width, /*is_write=*/true, word);
  if (code == ErrorCode::kOk && offset % width != 0) {
    return ErrorCode::kInvalidArgument;
  }
  return code == ErrorCode::kOk && reinterpret_cast<uintptr_t>(*word) % width != 0
             ? ErrorCode::kUnsupported
             : code;
}

// Its holder may have been stopped, and other messages are not to wait for that.
bool OneSidedMemory::LockElements(const ServedRank& rank, uint32_t region_id,
                                  std::unique_lock<shm::ElementLock>* lock) const {
  shm::ElementLock* const elements =
      (region_id & shm::kSegmentPrivate) != 0 ? private_memory_.LockOf(rank, region_id) : nullptr;
  if (elements == nullptr) {
    return true;
  }
  *lock = std::unique_lock(*elements, std::defer_lock);
  if (waits_for_locks_) {
    lock->lock();
    return true;
  }
  return lock->try_lock();
}

// ---- What is held -------------------------------------------------------------------------------

// Of one rank with another the order of a stream stays.
bool OneSidedMemory::IsBehindHeld(const Job& job, const PacketHeader& header) const {
  return std::any_of(held_.begin(), held_.end(), [&](const Held& held) {
    return held.job == &job && held.header.source == header.source &&
           held.header.destination == header.destination && held.header.stream == header.stream;
  });
}

void OneSidedMemory::DropHeldBetween(const ServedRank& rank, uint32_t peer) {
  std::erase_if(held_, [&](const Held& held) {
    const bool is_dropped = held.job == rank.job && held.header.destination == rank.rank() &&
                            held.header.source == peer;
    held_bytes_ -= is_dropped ? held.body.size() : 0;
    return is_dropped;
  });
}

void OneSidedMemory::Hold(Job& job, const PacketHeader& header, std::span<const std::byte> body) {
  held_.push_back({&job, header, {body.begin(), body.end()}});
  held_bytes_ += body.size();
}

void OneSidedMemory::CarryOutHeld(uint64_t now_ns) {
  std::deque<Held> held = std::exchange(held_, {});
  held_bytes_ = 0;
  for (Held& each : held) {
    if (IsBehindHeld(*each.job, each.header)) {
      held_bytes_ += each.body.size();
      held_.push_back(std::move(each));
    } else {
      (void)CarryOutPacket(*each.job, {each.header, each.body}, now_ns);
    }
  }
}

bool OneSidedMemory::OnPacket(Job& job, const Packet& packet, uint64_t now_ns) {
  if (packet.header.stream >= kOneSidedStreams) {
    return false;
  }
  if (held_.empty()) [[likely]] {
    return CarryOutPacket(job, packet, now_ns);
  }
  if (held_bytes_ + packet.body.size() > kMostHeldBytes) {
    waits_for_locks_ = true;
    CarryOutHeld(now_ns);
    waits_for_locks_ = false;
  }
  if (IsBehindHeld(job, packet.header)) {
    Hold(job, packet.header, packet.body);
    return true;
  }
  return CarryOutPacket(job, packet, now_ns);
}

bool OneSidedMemory::CarryOutPacket(Job& job, const Packet& packet, uint64_t now_ns) {
  if (packet.header.number == 0) {
    return OnLong(job, packet, now_ns);
  }
  PacketHeader header = packet.header;  // of one operation after the other
  std::span<const std::byte> rest = packet.body;
  uint64_t untold = 0;  // the last one that was not reported
  bool is_sound = !rest.empty();
  while (is_sound && !rest.empty()) {
    const auto wire = HeadOf<WireOneSided>(rest);
    const size_t data_bytes = wire ? DataBytes(*wire) : 0;
    is_sound = wire && !IsLongOperation(wire->operation) &&
               data_bytes <= rest.size() - sizeof(*wire) &&
               AreWordsSound(wire->operation, wire->signal, wire->width, wire->size_bytes,
                             static_cast<int32_t>(wire->signal_region));
    if (!is_sound) {
      break;
    }
    SetOperation(*wire, wire->size_bytes, &header);
    const Performed performed =
        Perform(job, header, *wire, rest.subspan(sizeof(*wire), data_bytes), now_ns);
    if (performed == Performed::kHeld) {
      Hold(job, header, rest);
      break;
    }
    untold = performed == Performed::kTold ? 0 : header.number;
    ++header.number;
    rest = rest.subspan(std::min(rest.size(), sizeof(*wire) + data_bytes + PaddingOf(data_bytes)));
  }
  if (untold != 0) {
    NoteUntold(job, header, untold);
  }
  return is_sound;
}

// A long one, which has its packet for itself.
bool OneSidedMemory::OnLong(Job& job, const Packet& packet, uint64_t now_ns) {
  const auto wire = HeadOf<WireOneSided>(packet.body);
  PacketHeader header = packet.header;
  if (!wire || !IsLongOperation(wire->operation) ||
      !AreWordsSound(wire->operation, wire->signal, wire->width, header.size_bytes,
                     static_cast<int32_t>(wire->signal_region))) {
    return false;
  }
  const std::span<const std::byte> data = packet.body.subspan(sizeof(*wire));
  const bool has_size =
      IsPutOperation(wire->operation)
          ? data.size() == sizeof(WireRts) || data.size() == sizeof(WireRts) + header.size_bytes
          : data.empty();
  if (!has_size) {
    return false;
  }
  SetOperation(*wire, header.size_bytes, &header);
  uint64_t value = 0;
  std::span<const std::byte> found;
  if (const ErrorCode error = CarryOut(job, header, *wire, data, now_ns, &value, &found);
      error != ErrorCode::kOk) {
    TellOfLong(job, header, *wire, data, error, now_ns);
  }
  return true;
}

// Carries out one that is not long, and tells its end if it has failed, or a result.
OneSidedMemory::Performed OneSidedMemory::Perform(Job& job, const PacketHeader& header,
                                                  const WireOneSided& wire,
                                                  std::span<const std::byte> data,
                                                  uint64_t now_ns) {
  uint64_t value = 0;
  std::span<const std::byte> found;
  const ErrorCode error = CarryOut(job, header, wire, DataOf(wire, data), now_ns, &value, &found);
  if (error == ErrorCode::kWouldBlock) {
    return Performed::kHeld;
  }
  if (error == ErrorCode::kOk && wire.wants_answer == 0) {
    return Performed::kUntold;
  }
  Tell(job, header, {header.number, value, static_cast<int32_t>(error), header.stream}, found,
       now_ns);
  return Performed::kTold;
}

ErrorCode OneSidedMemory::CarryOutHere(ServedRank& rank, PacketHeader header,
                                       const WireOneSided& wire, std::span<const std::byte> data,
                                       uint64_t now_ns, uint64_t* value,
                                       std::span<const std::byte>* found) {
  SetOperation(wire, wire.size_bytes, &header);
  return CarryOut(*rank.job, header, wire, DataOf(wire, data), now_ns, value, found);
}

// It is told with others, at the end of the turn.
void OneSidedMemory::NoteUntold(Job& job, const PacketHeader& header, uint64_t number) {
  for (Untold& other : untold_) {
    if (other.job == &job && other.here == header.destination && other.source == header.source &&
        other.stream == header.stream) {
      other.number = number;
      return;
    }
  }
  untold_.push_back({&job, header.destination, header.source, header.stream, number});
}

ErrorCode OneSidedMemory::CarryOut(Job& job, const PacketHeader& header, const WireOneSided& wire,
                                   std::span<const std::byte> data, uint64_t now_ns,
                                   uint64_t* value, std::span<const std::byte>* found) {
  ServedRank* const rank = job.served[header.destination];
  if (const ErrorCode ended = job.EndOf(header.destination); ended != ErrorCode::kOk) {
    return ended;
  }
  if (rank == nullptr || rank->ended) {
    return rank == nullptr ? ErrorCode::kInvalidBuffer : ErrorCode::kPeerDied;
  }
  const auto operation = static_cast<OneSidedOperation>(wire.operation);
  std::byte* place = nullptr;
  if (shm::IsAtomic(operation)) {
    const ErrorCode code = FindWord(*rank, header.context, wire.offset, wire.width, &place);
    if (code == ErrorCode::kOk) {
      std::unique_lock<shm::ElementLock> lock;
      if (!LockElements(*rank, header.context, &lock)) {
        return ErrorCode::kWouldBlock;
      }
      *value = shm::ApplyAtomicAt(place, wire.width, operation, wire.operand, wire.compare);
      rank->delivery.NoteChange();
    }
    return code;
  }
  if (IsAccumulate(wire.operation)) {
    return Accumulate(*rank, header, wire, data, found);
  }
  std::byte* signal = nullptr;
  if (wire.signal != 0) {
    if (const ErrorCode code = FindWord(*rank, static_cast<uint32_t>(header.tag), wire.compare,
                                        sizeof(uint64_t), &signal);
        code != ErrorCode::kOk) {
      return code;
    }
  }
  if (IsLongOperation(wire.operation)) {
    return CarryOutLong(*rank, header, wire, data, now_ns);
  }
  const bool is_put = operation == OneSidedOperation::kPut;
  const ErrorCode code =
      FindBytes(*rank, header.context, wire.offset, header.size_bytes, is_put, &place);
  if (code != ErrorCode::kOk) {
    return code;
  }
  if (!is_put) {
    *found = {place, header.size_bytes};
    return code;
  }
  shm::CopyWords(place, data.data(), data.size());  // a ring's put may go to where it comes from
  if (signal != nullptr) {
    Update(signal, wire.signal, wire.operand);
  }
  rank->delivery.NoteChange();
  return code;
}

// Of elements that no CPU changes at once, ferryd's progress thread is the only one to change them,
// or the holder of their lock.
ErrorCode OneSidedMemory::Accumulate(ServedRank& rank, const PacketHeader& header,
                                     const WireOneSided& wire, std::span<const std::byte> data,
                                     std::span<const std::byte>* found) {
  const auto what = shm::Accumulation::Unpack(static_cast<uint32_t>(header.tag));
  std::unique_lock<shm::ElementLock> lock;
  if (!LockElements(rank, header.context, &lock)) {
    return ErrorCode::kWouldBlock;
  }
  // Then gaps are left alone, and behind the last one there may be nothing.
  const uint64_t end_gap_bytes = lock.owns_lock() ? what->end_gap_bytes() : 0;
  std::byte* place = nullptr;
  const ErrorCode code = FindBytes(rank, header.context, wire.offset,
                                   header.size_bytes - end_gap_bytes, /*is_write=*/true, &place);
  if (code != ErrorCode::kOk) {
    return code;
  }
  const bool is_alone = lock.owns_lock() || rank.is_by_daemon();
  const bool is_atomic = what->IsAtomicAt(reinterpret_cast<uint64_t>(place));
  if (!is_atomic && !is_alone) {
    return ErrorCode::kUnsupported;
  }
  std::byte* const before = wire.wants_answer != 0 ? accumulated_.data() : nullptr;
  const uint64_t count = header.size_bytes / what->element_bytes();
  if (is_atomic && !lock.owns_lock()) {
    what->Apply(place, data.data(), before, count);
  } else {
    what->ApplyAlone(place, data.data(), before, count);
  }
  *found = {before, before != nullptr ? header.size_bytes : 0};
  rank.delivery.NoteChange();
  return code;
}

// Begins it. `data` of a long put: WireRts, and perhaps the bytes.
ErrorCode OneSidedMemory::CarryOutLong(ServedRank& rank, const PacketHeader& header,
                                       const WireOneSided& wire, std::span<const std::byte> data,
                                       uint64_t now_ns) {
  const bool is_put = IsPutOperation(wire.operation);
  Memory memory;
  if (const ErrorCode code =
          FindMemory(rank, header.context, wire.offset, header.size_bytes, is_put, &memory);
      code != ErrorCode::kOk) {
    return code;
  }
  NodeUse& node = rank.job->UseOf(header.source);
  if ((is_put ? node.puts_fetched : node.rts_lent) >= kMostLongKept) {
    Outbound::Break(*rank.job->RouteTo(header.source).link,
                    "it has begun " + std::to_string(kMostLongKept) + " long " +
                        (is_put ? "puts" : "gets") +
                        " of one job, the most that a node may, and ends none of them");
    return ErrorCode::kOk;
  }
  if (!is_put) {
    Waiting get{rank.job, header, wire, {}, CountedUse(&node.rts_lent, 1)};
    if (!Lend(get, now_ns)) {
      waiting_.push_back(std::move(get));
    }
    return ErrorCode::kOk;
  }
  const WireRts announced = *HeadOf<WireRts>(data);
  const std::span<const std::byte> bytes = data.subspan(sizeof(WireRts));
  if (!bytes.empty() && memory.bytes != nullptr) {
    shm::CopyWords(memory.bytes, bytes.data(), bytes.size());
    if (wire.signal != 0) {
      std::byte* signal = nullptr;
      (void)FindWord(rank, static_cast<uint32_t>(header.tag), wire.compare, sizeof(uint64_t),
                     &signal);  // CarryOut has found it
      Update(signal, wire.signal, wire.operand);
    }
    rank.delivery.NoteChange();
    EndRts(*rank.job, header, announced, ErrorCode::kOk, now_ns);
    return ErrorCode::kOk;
  }
  const OneSidedEnd end{.signal = wire.signal,
                        .signal_region = static_cast<uint32_t>(header.tag),
                        .signal_offset = wire.compare,
                        .signal_value = wire.operand};
  const bool is_private = (header.flags & shm::kFlagSourcePrivate) != 0;
  rndv_gets_.StartOneSided(rank, header.source,
                           is_private ? Incoming::Kind::kPrivate : Incoming::Kind::kHeap, announced,
                           {header.context, 0, wire.offset}, header.size_bytes, end, now_ns);
  return ErrorCode::kOk;
}

// Announces the bytes of a long get. False: their memory is being registered. A get whose bytes
// cannot be announced is answered with the error.
bool OneSidedMemory::Lend(Waiting& get, uint64_t now_ns) {
  const PacketHeader& header = get.header;
  if (get.job->ended[header.source] != ErrorCode::kOk) {
    return true;  // the RTS would never be returned
  }
  ServedRank* const rank = get.job->served[header.destination];
  Memory memory;
  ErrorCode code = rank == nullptr || rank->ended
                       ? ErrorCode::kPeerDied
                       : FindMemory(*rank, header.context, get.wire.offset, header.size_bytes,
                                    /*is_write=*/false, &memory);
  SentRts announced;
  announced.destination = header.source;
  announced.size_bytes = header.size_bytes;
  WireOneSidedRts wire{
      {static_cast<uint32_t>(get.wire.operand), static_cast<uint32_t>(get.wire.compare)}, {}};
  shm::Location where{header.context, 0, get.wire.offset};
  if (code == ErrorCode::kOk && memory.region == nullptr) {
    where = {0, 0, reinterpret_cast<uint64_t>(memory.bytes)};
    code = AnnouncePrivate(private_memory_, *rank, where.address, now_ns, &get.claim, &announced,
                           &wire.rts);
  } else if (code == ErrorCode::kOk) {
    code = AnnounceRegion(registrations_, *rank, where, now_ns, &get.claim, &announced, &wire.rts);
  }
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (code != ErrorCode::kOk) {
    TellOfLong(*get.job, header, get.wire, {}, code, now_ns);
    return true;
  }
  OneSidedState& state = rank->one_sided;
  wire.rts.send_request = announced.lent = rank->TakeRts();
  wire.rts.send_generation = announced.generation = ++state.lent_generation;
  if (!CarryAlong(get, wire, where, &announced, now_ns)) {
    const uint8_t flags = announced.state == SentRts::State::kHeap ? 0 : shm::kFlagSourcePrivate;
    outbound_.Post(*get.job, PacketKind::kOneSidedRts, header.destination, header.source, wire,
                   now_ns, {}, flags);
  }
  announced.claim = std::move(get.claim);
  announced.use = std::move(get.use);
  staged_sends_.OnRts(*rank, wire.rts.send_request, std::move(announced));
  return true;
}

// Sends the RTS of a get with its bytes, unless these are too many, or there is no room.
bool OneSidedMemory::CarryAlong(const Waiting& get, const WireOneSidedRts& wire,
                                const shm::Location& where, SentRts* announced, uint64_t now_ns) {
  if (!MayCarry(outbound_, *get.job->served[get.header.destination], *announced)) {
    return false;
  }
  PacketHeader header{};
  header.kind = static_cast<uint8_t>(PacketKind::kOneSidedRts);
  header.source = get.header.destination;
  header.destination = get.header.source;
  if (outbound_.SendWith(*get.job, header, BytesOf(wire), DataOf(*announced, where, get.claim),
                         now_ns) != ErrorCode::kOk) {
    return false;
  }
  announced->carried_bytes = announced->size_bytes;
  return true;
}

void OneSidedMemory::Advance(uint64_t now_ns) {
  if (seen_changes_ != registrations_.changes()) {
    seen_changes_ = registrations_.changes();
    RetryWaiting(now_ns);
  }
}

void OneSidedMemory::RetryWaiting(uint64_t now_ns) {
  std::vector<Waiting> waiting = std::exchange(waiting_, {});
  for (Waiting& get : waiting) {
    if (!Lend(get, now_ns)) {
      waiting_.push_back(std::move(get));
    }
  }
}

void OneSidedMemory::Tell(Job& job, const PacketHeader& header, const WireOneSidedDone& done,
                          std::span<const std::byte> data, uint64_t now_ns) {
  std::erase_if(untold_, [&](const Untold& other) {  // this says it, too
    return other.job == &job && other.here == header.destination && other.source == header.source &&
           other.stream == done.stream && other.number <= done.number;
  });
  outbound_.Post(job, PacketKind::kOneSidedDone, header.destination, header.source, done, now_ns,
                 data);
}

// A long operation cannot be. `data` of a put: as of OnOperation.
void OneSidedMemory::TellOfLong(Job& job, const PacketHeader& header, const WireOneSided& wire,
                                std::span<const std::byte> data, ErrorCode error, uint64_t now_ns) {
  WireResult result{static_cast<uint32_t>(wire.operand), static_cast<uint32_t>(wire.compare),
                    static_cast<int32_t>(error), 0};
  if (const auto announced = HeadOf<WireRts>(data); announced && IsPutOperation(wire.operation)) {
    result.send_request = announced->send_request;
    result.send_generation = announced->send_generation;
  }
  outbound_.Post(job, PacketKind::kSendDone, header.destination, header.source, result, now_ns);
}

ErrorCode OneSidedMemory::OnPutFetched(ServedRank& rank, const OneSidedEnd& end, ErrorCode error) {
  std::byte* signal = nullptr;
  if (error == ErrorCode::kOk && end.signal != 0) {
    error = FindWord(rank, end.signal_region, end.signal_offset, sizeof(uint64_t), &signal);
  }
  if (signal != nullptr && error == ErrorCode::kOk) {
    Update(signal, end.signal, end.signal_value);
  }
  rank.delivery.NoteChange();
  return error;
}

void OneSidedMemory::EndRts(Job& job, const PacketHeader& header, const WireRts& announced,
                            ErrorCode error, uint64_t now_ns) {
  const WireResult result{announced.send_request, announced.send_generation,
                          static_cast<int32_t>(error), 0};
  outbound_.Post(job, PacketKind::kSendDone, header.destination, header.source, result, now_ns);
}

// A report that a node cannot take yet goes together with the later ones.
void OneSidedMemory::Report(uint64_t now_ns) {
  std::erase_if(untold_, [&](const Untold& untold) {
    if (Outbound::IsCrowded(*untold.job, untold.source)) {
      return false;
    }
    outbound_.Post(*untold.job, PacketKind::kOneSidedDone, untold.here, untold.source,
                   WireOneSidedDone{untold.number, 0, 0, untold.stream}, now_ns);
    return true;
  });
}

void OneSidedMemory::Drop(const Job* job) {
  std::erase_if(untold_, [job](const Untold& untold) { return untold.job == job; });
  std::erase_if(waiting_, [job](const Waiting& get) { return get.job == job; });
}

}  // namespace ferry::progress
