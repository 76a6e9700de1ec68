#include "internode/rma/one_sided.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "internode/rma/one_sided_words.h"
#include "shm/atomic.h"

namespace ferry::progress {
namespace {

using shm::OneSidedCommand;
using shm::OneSidedOperation;

OneSidedCommand WordsOf(const shm::Descriptor& command) {
  OneSidedCommand words;
  std::memcpy(&words, command.payload, sizeof(words));
  return words;
}

bool IsInCell(const shm::Descriptor& command) { return (command.flags & shm::kFlagCell) != 0; }

// The rank can write to the word. So many operations no rank has ever begun, and as many again do
// not make the number overflow, to 0.
constexpr uint64_t kMostNumber = uint64_t{1} << 62;

}  // namespace

OneSided::OneSided(Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
                   Registrations& registrations, const PrivateMemory& private_memory)
    : outbound_(outbound),
      rndv_gets_(rndv_gets),
      memory_(outbound, rndv_gets, staged_sends, registrations, private_memory),
      rings_(*this, memory_, outbound, rndv_gets, staged_sends, registrations) {
  rndv_gets_.on_one_sided_end = [this](const RndvGet& rndv_get, ServedRank& rank) {
    return OnRndvGetEnd(rndv_get, rank);
  };
}

bool OneSided::MayStayHere(const ServedRank& rank, const shm::Descriptor& command) {
  return static_cast<shm::DescriptorKind>(command.kind) == shm::DescriptorKind::kOneSided &&
         rank.is_by_daemon() && IsAccumulate(WordsOf(command).operation);
}

std::optional<std::string> OneSided::Check(const ServedRank& rank, const shm::Descriptor& command) {
  const OneSidedCommand words = WordsOf(command);
  const auto operation = static_cast<OneSidedOperation>(words.operation);
  const bool is_put = operation == OneSidedOperation::kPut;
  const bool is_long = IsLongOperation(words.operation);
  const bool has_data = HasData(words.operation, command.tag);
  const bool is_inline = has_data && IsDataInline(words.signal, command.size_bytes);
  const bool wants_answer = words.answer != shm::kNoAnswer;
  if (!AreWordsSound(words.operation, words.signal, words.width, command.size_bytes, command.tag) ||
      (IsInCell(command) && !((has_data || is_long) && shm::LaneConsumer::IsCell(command.cell))) ||
      (has_data && command.size_bytes != 0 && is_inline == IsInCell(command)) ||
      (is_long && !IsInCell(command)) || (wants_answer && words.answer >= shm::kAnswers) ||
      (is_put && wants_answer) ||
      ((is_long || operation == OneSidedOperation::kGet) && !wants_answer)) {
    return "a one-sided operation " + std::to_string(words.operation) + " of " +
           std::to_string(command.size_bytes) + " bytes, width " + std::to_string(words.width) +
           ", signal " + std::to_string(words.signal) + ", answer " + std::to_string(words.answer);
  }
  const auto& awaited = rank.one_sided.awaited;
  if (wants_answer && std::any_of(awaited.begin(), awaited.end(), [&](const AwaitedAnswer& other) {
        return other.answer == words.answer;
      })) {
    return "two one-sided operations want answer " + std::to_string(words.answer);
  }
  return std::nullopt;
}

bool OneSided::IsLongPut(const shm::Descriptor& command) {
  return WordsOf(command).operation == static_cast<uint8_t>(OneSidedOperation::kLongPut);
}

shm::Location OneSided::PlaceHere(const ServedRank& rank, const shm::Descriptor& command) {
  shm::Location here;
  std::memcpy(&here, rank.commands.Cell(command.cell), sizeof(here));
  return here;
}

namespace {

// Returns the part of a command that the other daemon gets.
WireOneSided WireOf(const shm::Descriptor& command, const OneSidedCommand& words) {
  WireOneSided wire{};
  wire.operation = words.operation;
  wire.signal = words.signal;
  wire.width = words.width;
  wire.wants_answer = words.answer != shm::kNoAnswer ? 1 : 0;
  wire.region = command.context;
  wire.size_bytes =
      IsLongOperation(words.operation) ? 0 : static_cast<uint32_t>(command.size_bytes);
  wire.signal_region = static_cast<uint32_t>(command.tag);
  wire.offset = words.offset;
  wire.operand = words.operand;
  wire.compare = words.compare;
  return wire;
}

// `number`: of the operation; 0: it is a long one.
PacketHeader HeaderFor(const ServedRank& rank, const shm::Descriptor& command, uint64_t number) {
  PacketHeader header{};
  header.kind = static_cast<uint8_t>(PacketKind::kOneSided);
  header.source = rank.rank();
  header.destination = command.destination;
  header.size_bytes = number == 0 ? command.size_bytes : 0;
  header.number = number;
  return header;
}

constexpr uint32_t RequestOf(uint16_t answer) { return kFirstOneSidedRts + answer; }

}  // namespace

void OneSided::Await(ServedRank& rank, const shm::Descriptor& command, uint64_t number) {
  const OneSidedCommand words = WordsOf(command);
  if (words.answer == shm::kNoAnswer) {
    return;
  }
  NodeUse& node = rank.job->UseOf(command.destination);
  AwaitedAnswer awaited{number, command.size_bytes, command.destination, words.answer,
                        words.serial};
  if (number == 0) {
    awaited.here = PlaceHere(rank, command);
    awaited.use = CountedUse(&node.long_asked, 1);
  } else {
    awaited.use = CountedUse(&node.bytes_asked, kAnswerBytes + command.size_bytes);
  }
  rank.one_sided.awaited.push_back(std::move(awaited));
}

// Returns true if the other daemon may be sent one more operation.
bool OneSided::MayAsk(ServedRank& rank, const shm::Descriptor& command) {
  const OneSidedCommand words = WordsOf(command);
  if (IsLongOperation(words.operation)) {
    return MayAskLong(rank, command.destination);
  }
  const Link* const link = rank.job->RouteTo(command.destination).link;
  return words.answer == shm::kNoAnswer || link == nullptr ||
         rank.job->UseOf(command.destination)
             .MayAskBytes(kAnswerBytes + command.size_bytes, link->routes);
}

bool OneSided::MayAskLong(ServedRank& rank, uint32_t peer) {
  const Link* const link = rank.job->RouteTo(peer).link;
  return link == nullptr || rank.job->UseOf(peer).MayAskLong(link->routes);
}

// Those with that peer. While none is under way here, the rank may have had the other core carry
// some on: the numbers go on behind these.
OneSidedCounts& OneSided::CountsWith(ServedRank& rank, uint32_t peer) {
  if (rank.one_sided.counts.size() == 0) {
    rank.one_sided.counts = ZeroedArray<OneSidedCounts>(rank.job->plan.size());
  }
  OneSidedCounts& counts = rank.one_sided.counts[peer];
  if (counts.begun == counts.done) {
    const uint64_t told = shm::LoadAcquire(rank.by_rank.one_sided[peer].done);
    counts.begun = counts.done = std::max(counts.done, std::min(told, kMostNumber));
  }
  return counts;
}

bool OneSided::IsIdleWith(const ServedRank& rank, uint32_t peer) {
  const OneSidedState& state = rank.one_sided;
  return (peer >= state.counts.size() || state.counts[peer].begun == state.counts[peer].done) &&
         std::none_of(state.awaited.begin(), state.awaited.end(),
                      [peer](const AwaitedAnswer& awaited) { return awaited.peer == peer; });
}

bool OneSided::Start(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns) {
  Job& job = *rank.job;
  const uint32_t peer = command.destination;
  const OneSidedCommand words = WordsOf(command);
  uint64_t& begun = CountsWith(rank, peer).begun;
  const bool is_long = IsLongOperation(words.operation);
  const uint64_t number = is_long ? 0 : begun + 1;
  ErrorCode code = rank.StateOf(peer);
  if (code == ErrorCode::kOk) {
    WireOneSided wire = WireOf(command, words);
    std::span<const std::byte> data;
    if (is_long) {
      wire.operand = RequestOf(words.answer);
      wire.compare = words.serial;
    } else if (IsInCell(command)) {
      data = std::as_bytes(std::span(rank.commands.Cell(command.cell), command.size_bytes));
    }
    const PacketHeader header = HeaderFor(rank, command, number);
    if (job.IsLocal(peer)) {
      begun = number;
      Await(rank, command, number);
      CarryOutHere(rank, header, wire, data, now_ns);
      return true;
    }
    if (!MayAsk(rank, command)) {
      rank.asks_too_much = true;
      return false;
    }
    code = is_long ? outbound_.SendParts(job, header, BytesOf(wire), data, now_ns)
                   : outbound_.SendJoined(job, header, BytesOf(wire), data, now_ns);
  }
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (is_long && code != ErrorCode::kOk) {
    return Refuse(rank, command, code);
  }
  Await(rank, command, number);
  begun += is_long ? 0 : 1;
  if (code != ErrorCode::kOk) {
    End(rank, peer, number, code);  // with all that was under way: the peer is gone
  }
  return true;
}

// Carries out an operation of a rank here on memory of a rank here: its end is told as if the
// other's daemon had.
void OneSided::CarryOutHere(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                            std::span<const std::byte> data, uint64_t now_ns) {
  uint64_t value = 0;
  std::span<const std::byte> found;
  const ErrorCode error = memory_.CarryOutHere(rank, header, wire, data, now_ns, &value, &found);
  std::swap(header.source, header.destination);
  (void)OnDone(*rank.job, header, {header.number, value, static_cast<int32_t>(error), 0}, found);
}

bool OneSided::StartLongPut(ServedRank& rank, const shm::Descriptor& command, uint8_t flags,
                            const WireRts& announced, const transport::Attachment& data,
                            uint64_t now_ns) {
  if (!MayAsk(rank, command)) {
    rank.asks_too_much = true;
    return false;
  }
  PacketHeader header = HeaderFor(rank, command, 0);
  header.flags = flags;
  const ErrorCode code =
      SendLongPut(rank, header, WireOf(command, WordsOf(command)), announced, data, now_ns);
  if (code != ErrorCode::kOk) {
    return code != ErrorCode::kWouldBlock && Refuse(rank, command, code);
  }
  Await(rank, command, 0);
  return true;
}

ErrorCode OneSided::SendLongPut(ServedRank& rank, PacketHeader header, const WireOneSided& wire,
                                const WireRts& announced, const transport::Attachment& data,
                                uint64_t now_ns) {
  const struct {
    WireOneSided operation;
    WireRts announced;
  } words{wire, announced};
  const ErrorCode ended = rank.job->ended[header.destination];
  return ended != ErrorCode::kOk
             ? ended
             : outbound_.SendWith(*rank.job, header, BytesOf(words), data, now_ns);
}

bool OneSided::Refuse(ServedRank& rank, const shm::Descriptor& command, ErrorCode error) {
  const OneSidedCommand words = WordsOf(command);
  Answer(rank, {0, 0, command.destination, words.answer, words.serial}, 0, error, {});
  return true;
}

bool OneSided::OnDone(const Job& job, const PacketHeader& header, const WireOneSidedDone& done,
                      std::span<const std::byte> data) {
  if (done.stream >= kOneSidedStreams) {
    return false;
  }
  ServedRank* const rank = job.served[header.destination];
  if (rank != nullptr && done.stream == static_cast<uint32_t>(OneSidedStream::kRings)) {
    rings_.OnDone(*rank, header.source, done, data);
    return true;
  }
  if (rank == nullptr || rank->one_sided.counts.size() == 0) {
    return true;
  }
  const OneSidedCounts& counts = rank->one_sided.counts[header.source];
  if (done.number <= counts.done || done.number > counts.begun) {
    return true;  // it was given up when the link was cut
  }
  auto& awaited = rank->one_sided.awaited;
  const auto found = std::find_if(awaited.begin(), awaited.end(), [&](const AwaitedAnswer& a) {
    return a.peer == header.source && a.number == done.number;
  });
  auto error = static_cast<ErrorCode>(done.error);
  if (found != awaited.end()) {
    const bool fits = error != ErrorCode::kOk || data.size() == found->size_bytes;
    Answer(*rank, *found, done.value, fits ? error : ErrorCode::kCorrupt, data);
    awaited.erase(found);
    error = ErrorCode::kOk;  // the answer has told it
  }
  if (error != ErrorCode::kOk && done.number - 1 > counts.done) {
    End(*rank, header.source, done.number - 1, ErrorCode::kOk);
  }
  End(*rank, header.source, done.number, error);
  return true;
}

void OneSided::OnResult(ServedRank& rank, uint32_t peer, const WireResult& result) {
  if (rings_.OnResult(rank, peer, result)) {
    return;
  }
  auto& awaited = rank.one_sided.awaited;
  const auto found = std::find_if(awaited.begin(), awaited.end(), [&](const AwaitedAnswer& a) {
    return a.number == 0 && a.peer == peer && RequestOf(a.answer) == result.send_request &&
           a.serial == result.send_generation && !a.is_fetched;
  });
  if (found != awaited.end()) {
    Answer(rank, *found, 0, static_cast<ErrorCode>(result.error), {});
    awaited.erase(found);
  }
}

void OneSided::OnRts(Job& job, const PacketHeader& header, const WireOneSidedRts& announced,
                     std::span<const std::byte> data, uint64_t now_ns) {
  ServedRank* const rank = job.served[header.destination];
  for (size_t i = 0; rank != nullptr && i < rank->one_sided.awaited.size(); ++i) {
    AwaitedAnswer& awaited = rank->one_sided.awaited[i];
    if (awaited.number == 0 && !awaited.is_fetched && awaited.peer == header.source &&
        RequestOf(awaited.answer) == announced.get.request &&
        awaited.serial == announced.get.generation) {
      if (memory_.Land(*rank, awaited.here, awaited.size_bytes, data)) {
        Answer(*rank, awaited, 0, ErrorCode::kOk, {});
        rank->one_sided.awaited.erase(rank->one_sided.awaited.begin() + static_cast<ptrdiff_t>(i));
        return memory_.EndRts(job, header, announced.rts, ErrorCode::kOk, now_ns);
      }
      awaited.is_fetched = true;
      const bool is_private = (header.flags & shm::kFlagSourcePrivate) != 0;
      OneSidedEnd end;
      end.is_get = true;
      end.answer = awaited.answer;
      return rndv_gets_.StartOneSided(*rank, header.source,
                                      is_private ? Incoming::Kind::kPrivate : Incoming::Kind::kHeap,
                                      announced.rts, awaited.here, awaited.size_bytes, end, now_ns);
    }
  }
  if (rank == nullptr || !rings_.OnRts(*rank, header, announced, data, now_ns)) {
    memory_.EndRts(job, header, announced.rts, ErrorCode::kCancelled, now_ns);
  }
}

// The bytes of a long operation are there, or do not come.
ErrorCode OneSided::OnRndvGetEnd(const RndvGet& rndv_get, ServedRank& rank) {
  const OneSidedEnd& end = *rndv_get.one_sided;
  if (!end.is_get) {
    return memory_.OnPutFetched(rank, end, rndv_get.error);
  }
  if (end.ring_get != 0) {
    rings_.EndGet(rank, end.ring_get, rndv_get.error);
    return rndv_get.error;
  }
  auto& awaited = rank.one_sided.awaited;
  const auto found = std::find_if(awaited.begin(), awaited.end(), [&](const AwaitedAnswer& a) {
    return a.is_fetched && a.answer == end.answer;
  });
  if (found != awaited.end()) {
    Answer(rank, *found, 0, rndv_get.error, {});
    awaited.erase(found);
  }
  return rndv_get.error;
}

void OneSided::Answer(ServedRank& rank, const AwaitedAnswer& awaited, uint64_t value,
                      ErrorCode error, std::span<const std::byte> data) {
  shm::SessionLayout& session = *rank.session->layout();
  shm::AnswerLayout& answer = session.answers[awaited.answer];
  if (error == ErrorCode::kOk && !data.empty()) {
    std::memcpy(session.answer_cells[awaited.answer], data.data(), data.size());
  }
  answer.value = value;
  answer.error = static_cast<uint32_t>(error);
  shm::StoreRelease(answer.serial, awaited.serial);  // Pairs with the rank that waits for it.
  rank.delivery.NoteNews();
}

// All operations with that peer up to `number` are over; with an error, those that were not yet
// have failed.
void OneSided::End(ServedRank& rank, uint32_t peer, uint64_t number, ErrorCode error) {
  OneSidedCounts& counts = rank.one_sided.counts[peer];
  // Their answers do not come any more: no packet overtakes another.
  std::erase_if(rank.one_sided.awaited, [&](const AwaitedAnswer& awaited) {
    const bool is_over = awaited.peer == peer && awaited.number != 0 && awaited.number <= number;
    if (is_over) {
      Answer(rank, awaited, 0, error == ErrorCode::kOk ? ErrorCode::kCorrupt : error, {});
    }
    return is_over;
  });
  if (error != ErrorCode::kOk) {
    shm::OneSidedFailures& failures = *rank.seat.failures;
    uint64_t& count = rank.one_sided.failures;
    failures.entries[count % shm::kFailures] = {counts.done + 1, number, peer,
                                                static_cast<uint32_t>(error)};
    // Pairs with RemoteOperations::TakeFailures, which looks after it has seen `done`.
    shm::StoreRelease(failures.count, ++count);
  }
  counts.done = number;
  // Pairs with RemoteAnswers::LastOver.
  shm::StoreRelease(rank.by_rank.one_sided[peer].done, number);
  rank.delivery.NoteNews();
}

void OneSided::FailWith(const Job& job, uint32_t peer, ErrorCode error) {
  job.ForEachServed([&](ServedRank& rank) { FailBetween(rank, peer, error); });
}

void OneSided::FailBetween(ServedRank& rank, uint32_t peer, ErrorCode error) {
  memory_.DropHeldBetween(rank, peer);
  if (rank.one_sided.counts.size() != 0) {
    const OneSidedCounts& counts = rank.one_sided.counts[peer];
    if (counts.done != counts.begun) {
      End(rank, peer, counts.begun, error);
    }
  }
  rings_.FailWith(rank, peer, error);
  // The rest are long ones. Of those whose bytes are on their way here, the rendezvous get says the
  // end.
  std::erase_if(rank.one_sided.awaited, [&](const AwaitedAnswer& awaited) {
    const bool is_over = awaited.peer == peer && !awaited.is_fetched;
    if (is_over) {
      Answer(rank, awaited, 0, error, {});
    }
    return is_over;
  });
}

}  // namespace ferry::progress
