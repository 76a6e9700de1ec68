#include "mpi/rma/access.h"

#include <memory>
#include <string>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/p2p/payload.h"
#include "mpi/rma/attached.h"
#include "mpi/rma/private_memory.h"
#include "shm/word_copy.h"

namespace ferry::mpi {

using client::RemoteAddress;
using client::WhenDone;

Failure FindWindowAddress(Win& win, int rank, int64_t disp, const Elements& there,
                          WindowAddress* window_address) {
  WindowTarget& target = win.target(rank);
  window_address->target = &target;
  window_address->memory = &target.memory;
  window_address->rank = rank;
  if (disp < 0) {
    return {MPI_ERR_DISP, "the displacement is " + std::to_string(disp)};
  }
  const Bounds span = there.type->Span(there.count);
  if (win.is_dynamic()) {
    return FindAttached(win, &target, {disp, span}, window_address);
  }
  const bool overflows = __builtin_mul_overflow(disp, target.disp_unit, &window_address->offset);
  int64_t low = 0;
  int64_t high = 0;
  if (overflows || __builtin_add_overflow(window_address->offset, span.low, &low) ||
      __builtin_add_overflow(window_address->offset, span.high, &high) || low < 0 ||
      (span.low != span.high && static_cast<uint64_t>(high) > target.memory.size_bytes)) {
    return {MPI_ERR_RMA_RANGE, "bytes " + std::to_string(low) + " to " + std::to_string(high) +
                                   " are wanted of rank " + std::to_string(rank) +
                                   ", whose memory in the window has " +
                                   std::to_string(target.memory.size_bytes)};
  }
  return {};
}

RemoteAddress RemoteAddressAt(const WindowAddress& window_address, int64_t offset) {
  RemoteAddress place = window_address.memory->place;
  place.offset += static_cast<uint64_t>(offset);
  return place;
}

bool IsReachedByLink(const WindowAddress& window_address) {
  return !window_address.target->is_local &&
         (window_address.memory->place.segment & client::kSegmentPrivate) != 0;
}

namespace {

bool IsDense(const Elements& elements) { return elements.type->IsDense(elements.count); }

std::byte* DataOf(const Elements& elements) {
  return static_cast<std::byte*>(elements.buffer) + elements.type->true_lower_bound();
}

// Returns the elements of the target at the address where this process has mapped them.
Elements Mapped(const WindowAddress& window_address, const Elements& there) {
  return {window_address.memory->mapped + window_address.offset, there.count, there.type};
}

// Copies between memory of this process's address space, none of it by streams.
void CopyHere(const Elements& from, const Elements& to) {
  if (IsDense(from) && IsDense(to)) [[likely]] {
    shm::CopyWords(DataOf(to), DataOf(from), static_cast<size_t>(from.size_bytes()));
  } else {
    (void)CopyElements(from.buffer, from.count, *from.type, to.buffer, to.count, *to.type);
  }
}

// Returns true if CPUs may not reach all of the elements: at MPI_BOTTOM they may lie anywhere.
bool MayBeByStream(const Elements& here) {
  return front_end->MayBeByStream(DataOf(here)) || (here.buffer == nullptr && !IsDense(here));
}

// Returns true if nothing is left to do: there was nothing, or a copy of this process did it, or it
// fails.
bool MoveHere(const WindowAddress& window_address, const Elements& here, const Elements& there,
              bool is_put, Failure* failure) {
  if (const ErrorCode state = front_end->peers->PeerState(window_address.target->rank);
      state != ErrorCode::kOk) {
    *failure = FailureOf(state);
    return true;
  }
  if (there.size_bytes() == 0) {
    return true;
  }
  if (window_address.memory->mapped == nullptr || MayBeByStream(here)) {
    return false;
  }
  const Elements mapped = Mapped(window_address, there);
  CopyHere(is_put ? here : mapped, is_put ? mapped : here);
  return true;
}

// Moves packed data to or from private memory. Over when it returns.
Failure MovePrivate(Win& win, const WindowAddress& window_address, const Elements& there,
                    std::byte* packed, bool is_put) {
  std::vector<PrivateRun> runs;
  FERRY_RETURN_FAILURE(ForEachRunAt(window_address, there, [&](int64_t offset, int64_t length) {
    runs.push_back({offset, length});
    return Failure{};
  }));
  PrivateWish wish;
  wish.kind = is_put ? PrivateWish::Kind::kPut : PrivateWish::Kind::kGet;
  wish.bytes = static_cast<uint64_t>(there.size_bytes());
  return CarryOut(win, window_address.rank, *window_address.memory, wish, runs, packed, packed);
}

// Moves packed data to or from memory that this process has, but not by loads and stores only.
Failure MoveByStream(const WindowAddress& window_address, const Elements& there, std::byte* packed,
                     bool is_put) {
  return ForEachRunAt(window_address, there, [&](int64_t offset, int64_t length) {
    std::byte* const at = window_address.memory->mapped + offset;
    const Status status = is_put
                              ? front_end->memory->Copy(at, packed, static_cast<uint64_t>(length))
                              : front_end->memory->Copy(packed, at, static_cast<uint64_t>(length));
    packed += length;
    return FailureOf(status);
  });
}

bool IsOverAtOnce(const WindowAddress& window_address) {
  return window_address.memory->mapped != nullptr ||
         (window_address.memory->reach == Reach::kPrivate && !IsReachedByLink(window_address));
}

// Begins an operation for each run, until one fails.
template <typename Begin>
ErrorCode BeginEach(const WindowAddress& window_address, const Elements& there, std::byte* packed,
                    Begin&& begin) {
  ErrorCode error = ErrorCode::kOk;
  (void)ForEachRunAt(window_address, there, [&](int64_t offset, int64_t length) {
    if (error == ErrorCode::kOk) {
      error = begin(RemoteAddressAt(window_address, offset), packed, static_cast<uint64_t>(length));
      packed += length;
    }
    return Failure{};
  });
  return error;
}

}  // namespace

Failure Put(Win& win, const WindowAddress& window_address, const Elements& here,
            const Elements& there, Operation* operation, bool* is_over) {
  Failure failure;
  *is_over = true;
  if (MoveHere(window_address, here, there, true, &failure)) [[likely]] {
    return failure;
  }
  Payload payload(here.buffer, here.count, *here.type);
  FERRY_RETURN_FAILURE(payload.Pack());
  auto* packed = static_cast<std::byte*>(payload.data());
  if (IsOverAtOnce(window_address)) {
    return window_address.memory->mapped != nullptr
               ? MoveByStream(window_address, there, packed, true)
               : MovePrivate(win, window_address, there, packed, true);
  }
  *is_over = window_address.target->is_local;
  client::OneSidedContext* const context =
      operation == nullptr ? win.context() : operation->context();
  const WhenDone when = payload.is_dense() ? WhenDone::kAtQuiet : WhenDone::kAtReturn;
  const ErrorCode begun =
      BeginEach(window_address, there, packed,
                [&](const RemoteAddress& place, std::byte* from, uint64_t bytes) {
                  return front_end->one_sided->Put(context, place, from, bytes, {}, when);
                });
  if (begun != ErrorCode::kUnsupported || !IsReachedByLink(window_address)) {
    return FailureOf(begun);
  }
  FERRY_RETURN_FAILURE(FailureOf(front_end->one_sided->Quiet(context, nullptr)));
  return MovePrivate(win, window_address, there, packed, true);
}

// Unpacks what has come once the operation is over.
Failure Get(Win& win, const WindowAddress& window_address, const Elements& here,
            const Elements& there, const Ref<Operation>& operation, bool* is_over) {
  Failure failure;
  *is_over = true;
  if (MoveHere(window_address, here, there, false, &failure)) [[likely]] {
    return failure;
  }
  auto payload = std::make_shared<Payload>(here.buffer, here.count, *here.type);
  FERRY_RETURN_FAILURE(payload->MakeRoom());
  auto* packed = static_cast<std::byte*>(payload->data());
  const int64_t bytes = there.size_bytes();
  if (IsOverAtOnce(window_address)) {
    FERRY_RETURN_FAILURE(window_address.memory->mapped != nullptr
                             ? MoveByStream(window_address, there, packed, false)
                             : MovePrivate(win, window_address, there, packed, false));
    return payload->Unpack(bytes);
  }
  *is_over = window_address.target->is_local;
  Ref<Operation> rest = operation;
  if (!rest && !payload->is_dense()) {
    rest = MakeRef<Operation>(win, window_address.rank);
  }
  client::OneSidedContext* const context = rest ? rest->context() : win.context();
  const ErrorCode first =
      BeginEach(window_address, there, packed,
                [&](const RemoteAddress& place, std::byte* to, uint64_t bytes) {
                  return front_end->one_sided->Get(context, to, place, bytes, WhenDone::kAtQuiet);
                });
  Failure begun = FailureOf(first);
  if (first == ErrorCode::kUnsupported && IsReachedByLink(window_address)) {
    begun = FailureOf(front_end->one_sided->Quiet(context, nullptr));
    begun = begun.ok() ? MovePrivate(win, window_address, there, packed, false) : begun;
  }
  if (!rest) {
    return begun;
  }
  if (!payload->is_dense()) {
    rest->SetRest([payload, bytes] { return payload->Unpack(bytes); });
  }
  if (!begun.ok() || *is_over) {
    const Failure ended = rest->Finish();
    return begun.ok() ? ended : begun;
  }
  if (!operation) {
    win.AddOperation(std::move(rest));
  }
  return {};
}

}  // namespace ferry::mpi
