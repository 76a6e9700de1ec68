#include "client/mpi/window/access.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/mpi/base/connection.h"
#include "client/mpi/request/payload.h"
#include "client/mpi/window/attached.h"
#include "client/mpi/window/private_memory.h"

namespace ferry::mpi {

using client::Place;
using client::WhenDone;

Failure FindSpot(Win& win, int rank, int64_t disp, const Elements& there, Spot* spot) {
  Target& target = win.target(rank);
  spot->target = &target;
  spot->memory = &target.memory;
  spot->rank = rank;
  if (disp < 0) {
    return {MPI_ERR_DISP, "the displacement is " + std::to_string(disp)};
  }
  const Bounds span = there.type->Span(there.count);
  if (win.is_dynamic()) {
    return FindAttached(win, &target, {disp, span}, spot);
  }
  const bool overflows = __builtin_mul_overflow(disp, target.disp_unit, &spot->offset);
  int64_t low = 0;
  int64_t high = 0;
  if (overflows || __builtin_add_overflow(spot->offset, span.low, &low) ||
      __builtin_add_overflow(spot->offset, span.high, &high) || low < 0 ||
      (span.low != span.high && static_cast<uint64_t>(high) > target.memory.size_bytes)) {
    return {MPI_ERR_RMA_RANGE, "bytes " + std::to_string(low) + " to " + std::to_string(high) +
                                   " are wanted of rank " + std::to_string(rank) +
                                   ", whose memory in the window has " +
                                   std::to_string(target.memory.size_bytes)};
  }
  return {};
}

Place PlaceAt(const Spot& spot, int64_t offset) {
  Place place = spot.memory->place;
  place.offset += static_cast<uint64_t>(offset);
  return place;
}

namespace {

bool IsDense(const Elements& elements) { return elements.type->IsDense(elements.count); }

std::byte* DataOf(const Elements& elements) {
  return static_cast<std::byte*>(elements.buffer) + elements.type->true_lower_bound();
}

// The same elements at an address.
Elements Mapped(const Spot& spot, const Elements& there) {
  return {spot.memory->mapped + spot.offset, there.count, there.type};
}

// Between memory of this process' address space, none of it by streams.
void CopyHere(const Elements& from, const Elements& to) {
  const int64_t bytes = from.size_bytes();
  if (IsDense(from) && IsDense(to)) [[likely]] {
    std::memmove(DataOf(to), DataOf(from), static_cast<size_t>(bytes));
  } else if (IsDense(from)) {
    to.type->Unpack(to.buffer, to.count, 0, bytes, DataOf(from));
  } else if (IsDense(to)) {
    from.type->Pack(from.buffer, from.count, 0, bytes, DataOf(to));
  } else {
    (void)CopyElements(from.buffer, from.count, *from.type, to.buffer, to.count, *to.type);
  }
}

// Whether nothing is left to do: there was nothing, or it was a copy of this process, or it fails.
bool MoveHere(const Spot& spot, const Elements& here, const Elements& there, bool is_put,
              Failure* failure) {
  if (const ErrorCode state = front_end->PeerState(spot.target->rank); state != ErrorCode::kOk) {
    *failure = FailureOf(state);
    return true;
  }
  if (there.size_bytes() == 0) {
    return true;
  }
  if (spot.memory->mapped == nullptr || front_end->MayBeByStream(here.buffer)) {
    return false;
  }
  const Elements mapped = Mapped(spot, there);
  CopyHere(is_put ? here : mapped, is_put ? mapped : here);
  return true;
}

ErrorCode CopyPrivate(const Spot& spot, int64_t offset, void* here, int64_t bytes, bool is_put) {
  const Target& target = *spot.target;
  shm::Location there = spot.memory->location;
  there.address += static_cast<uint64_t>(offset);
  const auto size = static_cast<uint64_t>(bytes);
  return is_put ? front_end->CopyToPeer(target.rank, there, here, size)
                : front_end->CopyFromPeer(target.rank, there, here, size);
}

// Moves packed data to or from private memory. Over when it returns.
Failure MovePrivate(Win& win, const Spot& spot, const Elements& there, std::byte* packed,
                    bool is_put) {
  const Target& target = *spot.target;
  if (target.is_near && front_end->IsPrivateMemoryReachable(target.rank)) {
    std::byte* next = packed;
    const Failure copied = ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
      const ErrorCode error = CopyPrivate(spot, offset, next, length, is_put);
      next += length;
      return FailureOf(error);
    });
    if (copied.ok()) {
      return {};
    }  // else the kernel has denied it, or its owner is gone, which is found out by asking
  }
  std::vector<PrivateRun> runs;
  FERRY_RETURN_FAILURE(ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    runs.push_back({static_cast<int64_t>(spot.memory->address) + offset, length});
    return Failure{};
  }));
  PrivateWish wish;
  wish.kind = is_put ? PrivateWish::Kind::kPut : PrivateWish::Kind::kGet;
  wish.bytes = static_cast<uint64_t>(there.size_bytes());
  return AskOwner(win, spot.rank, wish, runs, packed, packed);
}

// The same where this process has that memory, but not by loads and stores only.
Failure MoveByStream(const Spot& spot, const Elements& there, std::byte* packed, bool is_put) {
  return ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    std::byte* const at = spot.memory->mapped + offset;
    const Status status = is_put ? front_end->Copy(at, packed, static_cast<uint64_t>(length))
                                 : front_end->Copy(packed, at, static_cast<uint64_t>(length));
    packed += length;
    return FailureOf(status);
  });
}

bool IsOverAtOnce(const Spot& spot) {
  return spot.memory->mapped != nullptr || spot.memory->reach == Reach::kPrivate;
}

}  // namespace

Failure Put(Win& win, const Spot& spot, const Elements& here, const Elements& there,
            Operation* operation, bool* is_over) {
  Failure failure;
  *is_over = true;
  if (MoveHere(spot, here, there, true, &failure)) [[likely]] {
    return failure;
  }
  Payload payload(here.buffer, here.count, *here.type);
  FERRY_RETURN_FAILURE(payload.Pack());
  auto* packed = static_cast<std::byte*>(payload.data());
  if (IsOverAtOnce(spot)) {
    return spot.memory->mapped != nullptr ? MoveByStream(spot, there, packed, true)
                                          : MovePrivate(win, spot, there, packed, true);
  }
  *is_over = spot.target->is_near;
  client::OneSidedContext* const context =
      operation == nullptr ? win.context() : operation->context();
  const WhenDone when = payload.is_dense() ? WhenDone::kAtQuiet : WhenDone::kAtReturn;
  return ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    const ErrorCode error = front_end->one_sided().Put(context, PlaceAt(spot, offset), packed,
                                                       static_cast<uint64_t>(length), {}, when);
    packed += length;
    return FailureOf(error);
  });
}

// Unpacks what has come once the operation is over.
Failure Get(Win& win, const Spot& spot, const Elements& here, const Elements& there,
            const Ref<Operation>& operation, bool* is_over) {
  Failure failure;
  *is_over = true;
  if (MoveHere(spot, here, there, false, &failure)) [[likely]] {
    return failure;
  }
  auto payload = std::make_shared<Payload>(here.buffer, here.count, *here.type);
  FERRY_RETURN_FAILURE(payload->MakeRoom());
  auto* packed = static_cast<std::byte*>(payload->data());
  const int64_t bytes = there.size_bytes();
  if (IsOverAtOnce(spot)) {
    FERRY_RETURN_FAILURE(spot.memory->mapped != nullptr
                             ? MoveByStream(spot, there, packed, false)
                             : MovePrivate(win, spot, there, packed, false));
    return payload->Unpack(bytes);
  }
  *is_over = spot.target->is_near;
  Ref<Operation> rest = operation;
  if (!rest && !payload->is_dense()) {
    rest = MakeRef<Operation>(win, spot.rank);
  }
  client::OneSidedContext* const context = rest ? rest->context() : win.context();
  const Failure begun = ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    const ErrorCode error = front_end->one_sided().Get(
        context, packed, PlaceAt(spot, offset), static_cast<uint64_t>(length), WhenDone::kAtQuiet);
    packed += length;
    return FailureOf(error);
  });
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
