#include "client/mpi/window/accumulate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "client/mpi/base/connection.h"
#include "client/mpi/window/elements.h"
#include "client/mpi/window/private_memory.h"
#include "shm/accumulate.h"
#include "shm/atomic_operation.h"

namespace ferry::mpi {
namespace {

using client::WhenDone;
using shm::OneSidedOperation;

// ---- One word of a target -----------------------------------------------------------------------

ErrorCode CompareSwapWord(Win& win, const Spot& spot, size_t width, uint64_t compare,
                          uint64_t value, uint64_t* found) {
  constexpr OneSidedOperation kOperation = OneSidedOperation::kCompareSwap;
  if (spot.memory->mapped != nullptr) {
    *found = shm::ApplyAtomicAt(spot.memory->mapped + spot.offset, static_cast<uint32_t>(width),
                                kOperation, value, compare);
    return ErrorCode::kOk;
  }
  client::Place place = spot.memory->place;
  place.offset += static_cast<uint64_t>(spot.offset);
  return front_end->one_sided().Atomic(
      win.context(), {place, kOperation, static_cast<uint32_t>(width), value, compare}, found,
      WhenDone::kAtReturn);
}

uint64_t Load(const void* bytes, size_t width) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, width);  // little endian
  return word;
}

// ---- Rows of elements ---------------------------------------------------------------------------

std::optional<shm::Accumulation> AccumulationOf(const Op& op, const BasicType& basic) {
  return basic.IsPair() ? shm::Accumulation::Of(op.kind(), basic.kind, basic.index_kind)
                        : shm::Accumulation::Of(op.kind(), basic.kind);
}

// Changes what lies at `offset` of a target's memory, and on. Operands and `found` lie as there.
class Row {
 public:
  Row(Win& win, const Spot& spot, shm::Accumulation what)
      : win_(win), place_(spot.memory->place), what_(what) {}

  ErrorCode Change(int64_t offset, int64_t elements, const std::byte* operands,
                   std::byte* found) const {
    client::Place place = place_;
    place.offset += static_cast<uint64_t>(offset);
    return front_end->one_sided().Accumulate(win_.context(),
                                             {place, what_, static_cast<uint64_t>(elements)},
                                             operands, found, WhenDone::kAtReturn);
  }

 private:
  Win& win_;
  const client::Place place_;
  const shm::Accumulation what_;
};

// The elements are dense, or of one piece.
Failure AccumulateRuns(const Row& row, const Spot& spot, const Elements& there, int64_t bytes,
                       const std::byte* data, std::byte* found) {
  return ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    const ErrorCode error = row.Change(offset, length / bytes, data, found);
    data = data == nullptr ? nullptr : data + length;
    found = found == nullptr ? nullptr : found + length;
    return error == ErrorCode::kOk ? Failure{} : FailureOf(error);
  });
}

// Pairs with gaps, which packed data do not have: one by one. A run may end within a pair, and
// begin with an index.
Failure AccumulatePairs(const Row& row, const Spot& spot, const Elements& there,
                        const BasicType& pair, const std::byte* data, std::byte* found) {
  constexpr size_t kMost = shm::Accumulation::kMostElementBytes;
  const int64_t value_bytes = pair.value->size_bytes;
  const int64_t index_bytes = pair.size_bytes - value_bytes;
  const auto change = [&](int64_t offset, int64_t packed) {
    std::byte operand[kMost] = {};
    std::byte before[kMost];
    if (data != nullptr) {
      std::memcpy(operand, data + packed, static_cast<size_t>(value_bytes));
      std::memcpy(operand + pair.index_offset, data + packed + value_bytes,
                  static_cast<size_t>(index_bytes));
    }
    const ErrorCode error = row.Change(offset, 1, operand, found == nullptr ? nullptr : before);
    if (error == ErrorCode::kOk && found != nullptr) {
      std::memcpy(found + packed, before, static_cast<size_t>(value_bytes));
      std::memcpy(found + packed + value_bytes, before + pair.index_offset,
                  static_cast<size_t>(index_bytes));
    }
    return error;
  };
  int64_t packed = 0;
  return ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    for (const int64_t end = packed + length; packed < end;) {
      const int64_t within = packed % pair.size_bytes;
      if (within == 0) {
        if (const ErrorCode error = change(offset, packed); error != ErrorCode::kOk) {
          return FailureOf(error);
        }
      }
      const int64_t part_end = within < value_bytes ? value_bytes : pair.size_bytes;
      const int64_t step = std::min(part_end - within, end - packed);
      packed += step;
      offset += step;
    }
    return Failure{};
  });
}

// ---- Refusals -----------------------------------------------------------------------------------

Failure Unsupported(std::string text) { return {MPI_ERR_UNSUPPORTED_OPERATION, std::move(text)}; }

Failure CheckReach(const Exposed& memory) {
  return memory.reach == Reach::kByStream
             ? Unsupported(
                   "Ferry does not have accumulates in memory that only streams of a device reach "
                   "yet (docs/mpi.md): use MPI_Put and MPI_Get there, or host memory")
             : Failure{};
}

Failure NotAligned(int64_t offset, int64_t bytes) {
  return Unsupported("the element at byte " + std::to_string(offset) +
                     " of the target's memory does not lie at a multiple of its " +
                     std::to_string(bytes) + " bytes: Ferry cannot change it at once");
}

Failure AccumulatePrivate(Win& win, const Spot& spot, const Elements& there, PrivateWish wish,
                          const std::byte* data, std::byte* found) {
  std::vector<PrivateRun> runs;
  FERRY_RETURN_FAILURE(ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    runs.push_back({static_cast<int64_t>(spot.memory->address) + offset, length});
    return Failure{};
  }));
  wish.bytes = static_cast<uint64_t>(there.size_bytes());
  return spot.rank == win.rank() ? CarryOut(win, wish, runs, data, found)
                                 : AskOwner(win, spot.rank, wish, runs, data, found);
}

uint64_t NumberOf(const void* handle) { return reinterpret_cast<uintptr_t>(handle); }

}  // namespace

Failure AccumulatePacked(Win& win, const Spot& spot, const Elements& there, const Op& op,
                         const std::byte* data, std::byte* found) {
  FERRY_RETURN_FAILURE(FailureOf(front_end->PeerState(spot.target->rank)));
  if (there.size_bytes() == 0) {  // whatever the operation, as elsewhere
    return {};
  }
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindElements(op, *there.type, &type));
  FERRY_RETURN_FAILURE(CheckReach(*spot.memory));
  const BasicType& basic = *type->predefined();
  const bool is_dense = basic.size_bytes == basic.extent_bytes;
  if (spot.memory->reach == Reach::kPrivate) {
    if (!is_dense) {
      return Unsupported("Ferry does not have accumulates of " + std::string(basic.name) +
                         ", whose elements have gaps, in memory of the program's own yet: take "
                         "that of MPI_Win_allocate or MPI_Alloc_mem (docs/mpi.md)");
    }
    PrivateWish wish;
    wish.kind =
        found != nullptr ? PrivateWish::Kind::kGetAccumulate : PrivateWish::Kind::kAccumulate;
    wish.op = static_cast<uint32_t>(NumberOf(op.handle()));
    wish.type = NumberOf(type->handle());
    // Of MPI_NO_OP there need be no data: what is sent in their place is not looked at.
    const std::vector<std::byte> none(data == nullptr ? static_cast<size_t>(there.size_bytes())
                                                      : 0);
    return AccumulatePrivate(win, spot, there, wish, data == nullptr ? none.data() : data, found);
  }
  const std::optional<shm::Accumulation> what = AccumulationOf(op, basic);
  if (!what.has_value()) {
    return Unsupported("Ferry does not have this operation on elements of " +
                       std::string(basic.name));
  }
  const Row row(win, spot, *what);
  return is_dense ? AccumulateRuns(row, spot, there, basic.size_bytes, data, found)
                  : AccumulatePairs(row, spot, there, basic, data, found);
}

Failure CompareSwapElement(Win& win, const Spot& spot, const Datatype& type, const void* compare,
                           const void* value, void* found) {
  const auto bytes = static_cast<size_t>(type.size_bytes());
  FERRY_RETURN_FAILURE(CheckReach(*spot.memory));
  FERRY_RETURN_FAILURE(FailureOf(front_end->PeerState(spot.target->rank)));
  if (spot.memory->reach == Reach::kPrivate) {
    std::vector<std::byte> both(2 * bytes);
    std::memcpy(both.data(), compare, bytes);
    std::memcpy(both.data() + bytes, value, bytes);
    PrivateWish wish;
    wish.kind = PrivateWish::Kind::kCompareSwap;
    return AccumulatePrivate(win, spot, {nullptr, 1, &type}, wish, both.data(),
                             static_cast<std::byte*>(found));
  }
  if ((spot.memory->place.offset + static_cast<uint64_t>(spot.offset)) % bytes != 0) {
    return NotAligned(spot.offset, type.size_bytes());
  }
  uint64_t before = 0;
  const ErrorCode error =
      CompareSwapWord(win, spot, bytes, Load(compare, bytes), Load(value, bytes), &before);
  std::memcpy(found, &before, bytes);
  return FailureOf(error);
}

}  // namespace ferry::mpi
