#include "client/rma/remote_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/rma/remote_command.h"
#include "common/clock.h"
#include "engine/rank_engine.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::client {

using shm::OneSidedCommand;
using shm::OneSidedOperation;

namespace {

// The longest sleep while waiting for room. Free room is announced, but not that of a cell which
// was lost with its owner.
constexpr uint64_t kRoomSleepNs = 1'000'000;

// The sizes from which puts and gets are long: a long put goes in one message; a long get takes one
// message more than a get by the cells of the lane.
constexpr uint64_t kLongPut = shm::kCellBytes + 1;
constexpr uint64_t kLongGet = 16 << 10;
// The size from which an operation on the program's own memory without a bounce buffer is long: the
// daemon copies that memory block by block, which is slower for less.
constexpr uint64_t kLongInPrivate = 128 << 10;

}  // namespace

// Waits for the end of operations that go another way.
ErrorCode RemoteOperations::Passage::Enter(const RemoteAddress& place, bool by_daemon) {
  const bool by_link = (place.segment & kSegmentPrivate) != 0;
  if (!operations_.progress_.MayHaveLinks()) [[likely]] {
    return by_link ? ErrorCode::kUnsupported : ErrorCode::kOk;
  }
  rank_ = place.rank;
  bool is_refused = false;
  const ErrorCode error = operations_.AwaitRoom(rank_, [&] {
    const auto lock = operations_.Lock();
    is_refused = by_link && !operations_.progress_.SendsByLink(static_cast<int32_t>(rank_));
    const auto is_quiet = [&] { return operations_.IsQuietWith(rank_); };
    has_entered_ = !is_refused && operations_.ways_.TryEnter(place, by_daemon, is_quiet);
    core_ = operations_.ways_.CoreOf(rank_);
    return has_entered_ || is_refused;
  });
  return error == ErrorCode::kOk && is_refused ? ErrorCode::kUnsupported : error;
}

RemoteOperations::RemoteOperations(Parts parts)
    : parts_(std::move(parts)),
      progress_(*parts_.progress),
      issued_(progress_.view().job_size),
      ways_(parts_.progress),
      answers_(parts_.progress, parts_.memory) {}

// ---- Waiting ------------------------------------------------------------------------------------

// Waits until `attempt` has succeeded, which it is then not asked again. An error: why nothing
// passes between this rank and that one.
template <typename Attempt>
ErrorCode RemoteOperations::AwaitRoom(uint32_t rank, Attempt&& attempt) {
  bool succeeded = false;
  ErrorCode state = ErrorCode::kOk;
  auto is_over = [&] {
    if (!succeeded && state == ErrorCode::kOk) {
      state = progress_.PeerState(rank);
      succeeded = state == ErrorCode::kOk && attempt();
    }
    return succeeded || state != ErrorCode::kOk;
  };
  while (!is_over()) {
    Wait(rank, is_over, MonotonicNs() + kRoomSleepNs);
  }
  return state;
}

// ---- Pushing ------------------------------------------------------------------------------------

// The lane keeps the order of the pushes, so numbers are given with them, under the lock.
ErrorCode RemoteOperations::Push(OneSidedContext& context, const Command& command) {
  shm::Descriptor descriptor = command.descriptor;
  std::memcpy(descriptor.payload, &command.words, sizeof(command.words));
  const uint32_t rank = descriptor.destination;
  const ErrorCode error = AwaitRoom(rank, [&] {
    const auto lock = Lock();
    if (log_.is_full()) [[unlikely]] {
      TakeFailures();
    }
    if ((log_.is_full() && !command.is_long()) || !TryPush(command, descriptor)) {
      return false;
    }
    if (command.is_long()) {
      return true;
    }
    const uint64_t number = ++issued_[rank];
    log_.Add(&context, rank, number, !command.has_answer());
    if (command.has_answer()) {
      answers_.SetNumber(command.words.answer, number);
    }
    return true;
  });
  if (error != ErrorCode::kOk) {
    ReturnCell(command);
  } else if (command.core == engine::Core::kLink) {
    parts_.carry_on_by_link(rank, descriptor.size_bytes);
  }
  return error;
}

// Pushes a command. By a link it leaves within the turn that follows, which also makes room if
// there is none, or together with others, if several follow each other closely.
bool RemoteOperations::TryPush(const Command& command, const shm::Descriptor& descriptor) {
  bool is_pushed = false;
  (void)progress_.UnderLease([&](engine::Effects& effects) {
    is_pushed = progress_.engine().sends().TryCommand(command.core, descriptor);
    effects.to_link =
        command.core == engine::Core::kLink &&
        !(is_pushed && progress_.Gathers(descriptor.destination, descriptor.size_bytes));
    if (is_pushed) {
      shm::Statistics statistics = parts_.statistics;
      statistics.Add(shm::Statistic::kOneSidedOperations);
      statistics.Add(shm::Statistic::kOneSidedBytes, descriptor.size_bytes);
    }
    return ErrorCode::kOk;
  });
  if (is_pushed && command.core == engine::Core::kDaemon) {
    progress_.AnnounceCommand();
  }
  return is_pushed;
}

// Gives back the cell of a command that was not pushed.
void RemoteOperations::ReturnCell(const Command& command) {
  if (command.has_cell() && progress_.Enter()) {
    progress_.engine().sends().ReturnCommandCell(command.cell);
    progress_.Exit();
    progress_.wake().Publish();  // another thread may wait for it
  }
}

ErrorCode RemoteOperations::FillCell(Command* command, const void* from, uint64_t size_bytes) {
  uint32_t cell = shm::kNoCell;
  const ErrorCode error = AwaitRoom(command->descriptor.destination, [&] {
    (void)progress_.UnderLease([&](engine::Effects& effects) {
      cell = progress_.engine().sends().TryTakeCommandCell(command->core);
      effects.to_link = cell == shm::kNoCell && command->core == engine::Core::kLink;
      return ErrorCode::kOk;
    });
    return cell != shm::kNoCell;
  });
  if (error != ErrorCode::kOk) {
    return error;
  }
  command->SetCell(cell);
  const ErrorCode copied =
      parts_.memory->CopyFrom(progress_.engine().sends().CommandCellBytes(cell), from, size_bytes);
  if (copied != ErrorCode::kOk) {
    ReturnCell(*command);
  }
  return copied;
}

// ---- Puts ---------------------------------------------------------------------------------------

// Links do not reach memory that only streams reach; and long data from such memory here moves
// through the daemon's pipeline, as long messages do. Memory that the program exposes is reached by
// links alone.
void RemoteOperations::GiveUpLinksFor(const RemoteAddress& there, const void* here,
                                      uint64_t size_bytes) {
  const bool is_long = size_bytes > shm::kCellBytes && (there.segment & kSegmentPrivate) == 0;
  if ((there.segment & kSegmentByStream) != 0 || (is_long && parts_.memory->IsByStream(here)))
      [[unlikely]] {
    progress_.GiveUpLinks();
  }
}

// The command's data, in itself or in a cell.
ErrorCode RemoteOperations::GiveData(Command* command, const void* from, uint64_t size_bytes) {
  ErrorCode error = ErrorCode::kOk;
  OneSidedCommand& words = command->words;
  const bool has_signal = words.signal != static_cast<uint8_t>(shm::SignalUpdate::kNone);
  if (size_bytes != 0 && (has_signal || size_bytes > shm::kInlinePutBytes)) {
    error = FillCell(command, from, size_bytes);
  } else if (size_bytes != 0) {
    static_assert(sizeof(words.operand) + sizeof(words.compare) == shm::kInlinePutBytes);
    uint64_t bytes[2] = {0, 0};
    error = parts_.memory->CopyFrom(bytes, from, size_bytes);
    words.operand = bytes[0];
    words.compare = bytes[1];
  }
  return error;
}

// A put that is not long goes in pieces of a cell each, the signal with the last; the core carries
// them out in this order.
ErrorCode RemoteOperations::Put(OneSidedContext& context, const RemoteAddress& to, const void* from,
                                uint64_t size_bytes, const Signal& signal, WhenDone when) {
  GiveUpLinksFor(to, from, size_bytes);
  Passage passage(this);
  ErrorCode error = passage.Enter(to);
  if (error != ErrorCode::kOk) {
    return error;
  }
  if (const auto end = FindLong(passage.core(), to, from, size_bytes, kLongPut,
                                /*is_copied=*/when == WhenDone::kAtReturn)) {
    return PutLong(context, passage.core(), to, *end, from, size_bytes, signal, when);
  }
  uint64_t offset = 0;
  do {
    const uint64_t piece_bytes = std::min<uint64_t>(size_bytes - offset, shm::kCellBytes);
    const bool is_last = offset + piece_bytes == size_bytes;
    Command command(passage.core(), progress_.view().rank,
                    {to.rank, to.segment, to.offset + offset}, OneSidedOperation::kPut,
                    piece_bytes);
    if (is_last && signal.update != shm::SignalUpdate::kNone) {
      command.SetSignal(signal);
    }
    error = GiveData(&command, At(from, offset), piece_bytes);
    error = error == ErrorCode::kOk ? Push(context, command) : error;
    offset += piece_bytes;
  } while (error == ErrorCode::kOk && offset < size_bytes);
  return error;
}

// ---- Long ones ----------------------------------------------------------------------------------

// Takes a bounce buffer if the bytes are to have one: those that the network does not reach where
// they lie. A rank's own core reaches all of its memory. `is_copied`: they are to be taken at once.
std::optional<RemoteOperations::LongEnd> RemoteOperations::FindLong(
    engine::Core core, const RemoteAddress& there, const void* here, uint64_t size_bytes,
    uint64_t least_bytes, bool is_copied) {
  const bool is_by_stream = (there.segment & kSegmentByStream) != 0;
  if (size_bytes == 0 || (size_bytes < least_bytes && !is_by_stream)) {
    return std::nullopt;
  }
  Memory& memory = *parts_.memory;
  const shm::Location where = memory.regions().Find(here, size_bytes);
  const bool by_link = core == engine::Core::kLink;
  const bool is_reached = by_link && !memory.IsByStream(here);
  if ((where.region != 0 && is_reached == by_link) || (is_reached && !is_copied)) {
    return LongEnd{where};
  }
  if (size_bytes <= parts_.bounce_buffer_max_bytes) {
    if (void* const bounce_buffer = memory.AllocateBounceBuffer(size_bytes, false);
        bounce_buffer != nullptr) {
      return LongEnd{memory.regions().Find(bounce_buffer, size_bytes), bounce_buffer};
    }
  }
  const bool is_long = is_reached || (parts_.private_reachable && !memory.IsByStream(here) &&
                                      !memory.IsOutOfKernelsReach(here, size_bytes) &&
                                      (is_by_stream || size_bytes >= kLongInPrivate));
  return is_long ? std::optional(LongEnd{where}) : std::nullopt;
}

// A put from a bounce buffer is not waited for, whatever `when` says.
ErrorCode RemoteOperations::PutLong(OneSidedContext& context, engine::Core core,
                                    const RemoteAddress& to, const LongEnd& end, const void* from,
                                    uint64_t size_bytes, const Signal& signal, WhenDone when) {
  Command command(core, progress_.view().rank, to, OneSidedOperation::kLongPut, size_bytes);
  command.SetSignal(signal);
  if (end.bounce_buffer != nullptr) {
    if (const ErrorCode error = parts_.memory->CopyFrom(end.bounce_buffer, from, size_bytes);
        error != ErrorCode::kOk) {
      parts_.memory->FreeBounceBuffer(end.bounce_buffer);
      return error;
    }
    when = WhenDone::kAtQuiet;
  }
  return MoveLong(context, &command, end, {.is_long = true, .bounce_buffer = end.bounce_buffer},
                  when);
}

ErrorCode RemoteOperations::GetLong(OneSidedContext& context, engine::Core core, void* to,
                                    const LongEnd& end, const RemoteAddress& from,
                                    uint64_t size_bytes, WhenDone when) {
  Command command(core, progress_.view().rank, from, OneSidedOperation::kLongGet, size_bytes);
  Expected expected{.is_long = true};
  if (end.bounce_buffer != nullptr) {
    expected.to = to;
    expected.bounce_buffer = end.bounce_buffer;
    expected.size_bytes = static_cast<uint32_t>(size_bytes);
  }
  return MoveLong(context, &command, end, expected, when);
}

ErrorCode RemoteOperations::MoveLong(OneSidedContext& context, Command* command, const LongEnd& end,
                                     Expected expected, WhenDone when) {
  const uint32_t rank = command->descriptor.destination;
  Call call;
  expected.call = when == WhenDone::kAtReturn ? &call : nullptr;
  ErrorCode error = FillCell(command, &end.where, sizeof(end.where));
  if (error == ErrorCode::kOk) {
    error = Ask(context, command, expected);
  }
  if (error != ErrorCode::kOk) {
    if (end.bounce_buffer != nullptr) {
      parts_.memory->FreeBounceBuffer(end.bounce_buffer);
    }
    return error;
  }
  return when == WhenDone::kAtReturn ? AwaitCall(&call, rank) : ErrorCode::kOk;
}

// ---- Answers ------------------------------------------------------------------------------------

ErrorCode RemoteOperations::TakePlace(const Expected& expected, uint16_t* place) {
  return AwaitRoom(expected.rank, [&] {
    const auto lock = Lock();
    return answers_.TryTake(expected, place);
  });
}

// Gives back the answer's place of an operation that was not pushed.
void RemoteOperations::GivePlace(uint16_t place) {
  {
    const auto lock = Lock();
    answers_.GiveBack(place);
  }
  progress_.wake().Publish();  // another thread may wait for it
}

// Pushes an operation that has an answer, which goes where `expected` says.
ErrorCode RemoteOperations::Ask(OneSidedContext& context, Command* command, Expected expected) {
  uint16_t place = 0;
  expected.context = &context;
  expected.rank = command->descriptor.destination;
  ErrorCode error = TakePlace(expected, &place);
  if (error != ErrorCode::kOk) {
    ReturnCell(*command);
    return error;
  }
  command->words.answer = place;
  {
    const auto lock = Lock();
    command->words.serial = answers_.SerialOf(place);
  }
  error = Push(context, *command);
  if (error != ErrorCode::kOk) {
    GivePlace(place);
  }
  return error;
}

void RemoteOperations::Leave(OneSidedContext& context) {
  const auto lock = Lock();
  answers_.Abandon([&context](const Expected& expected) { return expected.context == &context; });
  log_.Leave(&context);
}

ErrorCode RemoteOperations::AwaitCall(Call* call, uint32_t rank) {
  auto is_over = [&] {
    const auto lock = Lock();
    if (call->outstanding != 0) {
      answers_.Harvest();
    }
    return call->outstanding == 0;
  };
  if (!is_over()) {
    Wait(rank, is_over);
  }
  {
    const auto lock = Lock();
    if (call->outstanding != 0) {  // the rank is poisoned
      answers_.Abandon([call](const Expected& expected) { return expected.call == call; });
      return progress_.poison();
    }
  }
  return Judged(rank, call->error);
}

// Pieces are under way at the same time, as many as there are places for their answers.
ErrorCode RemoteOperations::Get(OneSidedContext& context, void* to, const RemoteAddress& from,
                                uint64_t size_bytes, WhenDone when) {
  GiveUpLinksFor(from, to, size_bytes);
  Passage passage(this);
  ErrorCode error = passage.Enter(from);
  if (error != ErrorCode::kOk) {
    return error;
  }
  if (const auto end =
          FindLong(passage.core(), from, to, size_bytes, kLongGet, /*is_copied=*/false)) {
    return GetLong(context, passage.core(), to, *end, from, size_bytes, when);
  }
  Call call;
  for (uint64_t offset = 0; offset < size_bytes && error == ErrorCode::kOk;) {
    const uint64_t piece_bytes = std::min<uint64_t>(size_bytes - offset, shm::kCellBytes);
    Command command(passage.core(), progress_.view().rank,
                    {from.rank, from.segment, from.offset + offset}, OneSidedOperation::kGet,
                    piece_bytes);
    error = Ask(context, &command,
                {.call = when == WhenDone::kAtReturn ? &call : nullptr,
                 .to = const_cast<void*>(At(to, offset)),
                 .size_bytes = static_cast<uint32_t>(piece_bytes)});
    offset += piece_bytes;
  }
  if (when == WhenDone::kAtReturn) {  // after an error, too: operations write to the buffer
    const ErrorCode answered = AwaitCall(&call, from.rank);
    error = error == ErrorCode::kOk ? answered : error;
  }
  return error;
}

ErrorCode RemoteOperations::Atomic(OneSidedContext& context, const AtomicCall& call,
                                   uint64_t* found, WhenDone when) {
  Passage passage(this);
  ErrorCode error = passage.Enter(call.place);
  if (error != ErrorCode::kOk) {
    return error;
  }
  Command command(passage.core(), progress_.view().rank, call.place, call.operation, 0);
  command.words.width = static_cast<uint8_t>(call.width);
  command.words.operand = call.operand;
  command.words.compare = call.compare;
  if (found == nullptr) {
    return Push(context, command);
  }
  Call waits;
  error = Ask(context, &command,
              {.call = when == WhenDone::kAtReturn ? &waits : nullptr, .found = found});
  if (error == ErrorCode::kOk && when == WhenDone::kAtReturn) {
    error = AwaitCall(&waits, call.place.rank);
  }
  return error;
}

}  // namespace ferry::client
