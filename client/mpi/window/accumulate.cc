#include "client/mpi/window/accumulate.h"

#include <cstring>
#include <string>
#include <vector>

#include "client/mpi/base/connection.h"
#include "client/mpi/window/elements.h"
#include "client/mpi/window/private_memory.h"
#include "shm/atomic_operation.h"

namespace ferry::mpi {
namespace {

using client::WhenDone;
using shm::OneSidedOperation;

// ---- One word of a target -----------------------------------------------------------------------

class Word {
 public:
  Word(Win& win, const Spot& spot, int64_t offset, uint32_t width)
      : win_(win), width_(width), place_(spot.memory->place) {
    place_.offset += static_cast<uint64_t>(offset);
    if (spot.memory->mapped != nullptr) {
      mapped_ = spot.memory->mapped + offset;
    }
  }

  // *found may be null: nobody waits for it.
  ErrorCode Change(OneSidedOperation operation, uint64_t operand, uint64_t compare,
                   uint64_t* found) const {
    if (mapped_ != nullptr) {
      const uint64_t before = shm::ApplyAtomicAt(mapped_, width_, operation, operand, compare);
      if (found != nullptr) {
        *found = before;
      }
      return ErrorCode::kOk;
    }
    return front_end->one_sided().Atomic(
        win_.context(), {place_, operation, width_, operand, compare}, found, WhenDone::kAtReturn);
  }

 private:
  Win& win_;
  const uint32_t width_;
  client::Place place_;
  std::byte* mapped_ = nullptr;
};

uint64_t Load(const void* bytes, size_t width) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, width);  // little endian
  return word;
}

// kNone: the CPU has no such operation.
OneSidedOperation AtomicOf(OpKind op, NumberKind kind) {
  const bool is_integer = kind <= NumberKind::kUint64;
  switch (op) {
    case OpKind::kSum:
      return is_integer ? OneSidedOperation::kAdd : OneSidedOperation::kNone;
    case OpKind::kBand:
      return OneSidedOperation::kAnd;
    case OpKind::kBor:
      return OneSidedOperation::kOr;
    case OpKind::kBxor:
      return OneSidedOperation::kXor;
    case OpKind::kReplace:
      return OneSidedOperation::kSwap;
    case OpKind::kNoOp:
      return OneSidedOperation::kFetch;
    default:
      return OneSidedOperation::kNone;
  }
}

// ---- One element --------------------------------------------------------------------------------

// An element of less than 4 bytes is changed within the word of 4 that it lies in.
class Element {
 public:
  Element(Win& win, const Spot& spot, int64_t offset, size_t bytes)
      : bytes_(bytes),
        // Where it lies in the word: segments, and mappings, begin at multiples of 8.
        within_(bytes < sizeof(uint32_t)
                    ? (AddressOf(spot) + static_cast<uint64_t>(offset)) % sizeof(uint32_t)
                    : 0),
        word_(win, spot, offset - static_cast<int64_t>(within_),
              bytes < sizeof(uint32_t) ? sizeof(uint32_t) : static_cast<uint32_t>(bytes)) {}

  static bool IsAligned(const Spot& spot, int64_t offset, size_t bytes) {
    return (AddressOf(spot) + static_cast<uint64_t>(offset)) % bytes == 0;
  }

  bool is_word() const { return bytes_ >= sizeof(uint32_t); }
  const Word& word() const { return word_; }

  // change(the element before, room for that after) returns whether it is to be changed.
  template <typename Compute>
  ErrorCode Change(Compute&& compute, std::byte* found) const {
    uint64_t before = 0;
    ErrorCode error = word_.Change(OneSidedOperation::kFetch, 0, 0, &before);
    while (error == ErrorCode::kOk) {
      uint64_t after = before;
      auto* const element = reinterpret_cast<std::byte*>(&after) + within_;
      std::byte old[sizeof(after)];
      std::memcpy(old, element, bytes_);
      if (compute(old, element)) {
        uint64_t seen = 0;
        error = word_.Change(OneSidedOperation::kCompareSwap, after, before, &seen);
        if (error == ErrorCode::kOk && seen != before) {
          before = seen;
          continue;
        }
      }
      if (found != nullptr) {
        std::memcpy(found, old, bytes_);
      }
      break;
    }
    return error;
  }

 private:
  static uint64_t AddressOf(const Spot& spot) { return spot.memory->place.offset; }

  const size_t bytes_;
  const uint64_t within_;
  const Word word_;
};

ErrorCode Accumulate(const Element& element, const Op& op, const Datatype& type,
                     const std::byte* data, std::byte* found) {
  const auto bytes = static_cast<size_t>(type.size_bytes());
  const OneSidedOperation atomic =
      element.is_word() ? AtomicOf(op.kind(), type.predefined()->kind) : OneSidedOperation::kNone;
  if (atomic != OneSidedOperation::kNone && !type.predefined()->IsPair()) {
    const uint64_t operand = op.kind() == OpKind::kNoOp ? 0 : Load(data, bytes);
    uint64_t before = 0;
    const ErrorCode error =
        element.word().Change(atomic, operand, 0, found == nullptr ? nullptr : &before);
    if (found != nullptr) {
      std::memcpy(found, &before, bytes);
    }
    return error;
  }
  return element.Change(
      [&](const std::byte* old, std::byte* now) {
        std::memcpy(now, old, bytes);
        CombineElements(op, type, data, now, static_cast<int64_t>(bytes));
        return op.kind() != OpKind::kNoOp;
      },
      found);
}

// ---- Refusals -----------------------------------------------------------------------------------

Failure Unsupported(std::string text) { return {MPI_ERR_UNSUPPORTED_OPERATION, std::move(text)}; }

Failure CheckReach(const Exposed& memory, const Datatype& type) {
  const BasicType& basic = *type.predefined();
  if (basic.size_bytes != basic.extent_bytes) {
    return Unsupported("Ferry does not have accumulates of " + std::string(basic.name) +
                       ", whose elements have gaps, yet (docs/mpi.md)");
  }
  if (memory.reach == Reach::kByStream) {
    return Unsupported(
        "Ferry does not have accumulates in memory that only streams of a device reach yet "
        "(docs/mpi.md): use MPI_Put and MPI_Get there, or host memory");
  }
  if (memory.reach == Reach::kShared && basic.size_bytes > 8) {
    return Unsupported("Ferry does not have accumulates of elements of more than 8 bytes (" +
                       std::string(basic.name) + ") yet (docs/mpi.md)");
  }
  return {};
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
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindElements(op, *there.type, &type));
  FERRY_RETURN_FAILURE(CheckReach(*spot.memory, *type));
  FERRY_RETURN_FAILURE(FailureOf(front_end->PeerState(spot.target->rank)));
  if (there.size_bytes() == 0) {
    return {};
  }
  const int64_t bytes = type->size_bytes();
  if (spot.memory->reach == Reach::kPrivate) {
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
  return ForEachRunAt(spot, there, [&](int64_t offset, int64_t length) {
    for (const int64_t end = offset + length; offset < end; offset += bytes) {
      if (!Element::IsAligned(spot, offset, static_cast<size_t>(bytes))) {
        return NotAligned(offset, bytes);
      }
      const ErrorCode error = Accumulate(Element(win, spot, offset, static_cast<size_t>(bytes)), op,
                                         *type, data, found);
      if (error != ErrorCode::kOk) {
        return FailureOf(error);
      }
      data = data == nullptr ? nullptr : data + bytes;
      found = found == nullptr ? nullptr : found + bytes;
    }
    return Failure{};
  });
}

Failure CompareSwapElement(Win& win, const Spot& spot, const Datatype& type, const void* compare,
                           const void* value, void* found) {
  const auto bytes = static_cast<size_t>(type.size_bytes());
  FERRY_RETURN_FAILURE(CheckReach(*spot.memory, type));
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
  if (!Element::IsAligned(spot, spot.offset, bytes)) {
    return NotAligned(spot.offset, type.size_bytes());
  }
  const Element element(win, spot, spot.offset, bytes);
  if (element.is_word()) {
    uint64_t before = 0;
    const ErrorCode error = element.word().Change(
        OneSidedOperation::kCompareSwap, Load(value, bytes), Load(compare, bytes), &before);
    std::memcpy(found, &before, bytes);
    return FailureOf(error);
  }
  return FailureOf(element.Change(
      [&](const std::byte* old, std::byte* now) {
        std::memcpy(now, value, bytes);
        return std::memcmp(old, compare, bytes) == 0;
      },
      static_cast<std::byte*>(found)));
}

}  // namespace ferry::mpi
