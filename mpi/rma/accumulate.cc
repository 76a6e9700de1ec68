#include "mpi/rma/accumulate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/rma/elements.h"
#include "mpi/rma/private_memory.h"
#include "shm/accumulate.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

using client::WhenDone;

Failure Unsupported(std::string text) { return {MPI_ERR_UNSUPPORTED_OPERATION, std::move(text)}; }

// Before the owner is asked instead: what went by the link comes first.
Failure EndOperationsByLink(Win& win, const WindowAddress& window_address) {
  return FailureOf(front_end->one_sided->QuietWith(win.context(), window_address.target->rank));
}

// ---- Rows of elements ---------------------------------------------------------------------------

// Returns true if elements there change under their owner's lock (private_memory.h).
bool IsLocked(const Exposed& memory) {
  return memory.reach == Reach::kPrivate || memory.reach == Reach::kByStream;
}

// The bytes of each run are whole elements, which lie as in memory in `operands` and `found`, too.
Failure ChangeLocked(Win& win, const WindowAddress& window_address, const shm::Accumulation& what,
                     std::span<PrivateRun> runs, const std::byte* operands, std::byte* found) {
  PrivateWish wish;
  wish.kind = found != nullptr ? PrivateWish::Kind::kGetAccumulate : PrivateWish::Kind::kAccumulate;
  wish.what = what.packed();
  for (const PrivateRun& run : runs) {
    wish.bytes += static_cast<uint64_t>(run.length);
  }
  return CarryOut(win, window_address.rank, *window_address.memory, wish, runs, operands, found);
}

ErrorCode ChangeRow(Win& win, const WindowAddress& window_address, const shm::Accumulation& what,
                    const PrivateRun& run, const std::byte* operands, std::byte* found) {
  return front_end->one_sided->Accumulate(
      win.context(),
      {RemoteAddressAt(window_address, run.offset), what,
       static_cast<uint64_t>(run.length) / what.element_bytes()},
      operands, found, WhenDone::kAtReturn);
}

// Where a link breaks off in the midst, the owner is asked for the rest.
Failure ChangeRows(Win& win, const WindowAddress& window_address, const shm::Accumulation& what,
                   std::span<PrivateRun> runs, const std::byte* operands, std::byte* found) {
  const bool is_locked = IsLocked(*window_address.memory);
  if (is_locked && !IsReachedByLink(window_address)) {
    return ChangeLocked(win, window_address, what, runs, operands, found);
  }
  while (!runs.empty()) {
    const PrivateRun& run = runs.front();
    const ErrorCode error = ChangeRow(win, window_address, what, run, operands, found);
    if (error == ErrorCode::kUnsupported && is_locked) {
      FERRY_RETURN_FAILURE(EndOperationsByLink(win, window_address));
      return ChangeLocked(win, window_address, what, runs, operands, found);
    }
    FERRY_RETURN_FAILURE(FailureOf(error));
    operands = operands == nullptr ? nullptr : operands + run.length;
    found = found == nullptr ? nullptr : found + run.length;
    runs = runs.subspan(1);
  }
  return {};
}

// Elements without gaps lie as packed ones do.
Failure AccumulateDense(Win& win, const WindowAddress& window_address, const Elements& there,
                        const shm::Accumulation& what, const std::byte* data, std::byte* found) {
  PrivateRun first;
  std::vector<PrivateRun> rest;  // mostly none
  FERRY_RETURN_FAILURE(ForEachRunAt(window_address, there, [&](int64_t offset, int64_t length) {
    if (first.length == 0) {
      first = {offset, length};
    } else {
      rest.push_back({offset, length});
    }
    return Failure{};
  }));
  if (rest.empty()) [[likely]] {
    return ChangeRows(win, window_address, what, {&first, 1}, data, found);
  }
  rest.insert(rest.begin(), first);
  return ChangeRows(win, window_address, what, rest, data, found);
}

// Returns runs of whole pairs: pairs that follow each other as in an array are one run. A run of
// the datatype may end within a pair, and begin with an index.
std::vector<PrivateRun> RunsOfPairs(const WindowAddress& window_address, const Elements& there,
                                    const BasicType& pair) {
  const int64_t value_bytes = pair.value->size_bytes;
  std::vector<PrivateRun> runs;
  int64_t packed = 0;
  (void)ForEachRunAt(window_address, there, [&](int64_t offset, int64_t length) {
    for (const int64_t end = packed + length; packed < end;) {
      const int64_t within = packed % pair.size_bytes;
      if (within == 0 && !runs.empty() && runs.back().offset + runs.back().length == offset) {
        runs.back().length += pair.extent_bytes;
      } else if (within == 0) {
        runs.push_back({offset, pair.extent_bytes});
      }
      const int64_t part_end = within < value_bytes ? value_bytes : pair.size_bytes;
      const int64_t step = std::min(part_end - within, end - packed);
      packed += step;
      offset += step;
    }
    return Failure{};
  });
  return runs;
}

Failure AccumulatePairs(Win& win, const WindowAddress& window_address, const Elements& there,
                        const BasicType& pair, const shm::Accumulation& what, const std::byte* data,
                        std::byte* found) {
  std::vector<PrivateRun> runs = RunsOfPairs(window_address, there, pair);
  const auto bytes = static_cast<size_t>(there.size_bytes() / pair.size_bytes * pair.extent_bytes);
  std::vector<std::byte> operands(data != nullptr ? bytes : 0);
  std::vector<std::byte> before(found != nullptr ? bytes : 0);
  LayOutPairs(pair, data, &operands);
  FERRY_RETURN_FAILURE(ChangeRows(win, window_address, what, runs,
                                  data != nullptr ? operands.data() : nullptr,
                                  found != nullptr ? before.data() : nullptr));
  PackPairs(pair, before, found);
  return {};
}

}  // namespace

Failure AccumulatePacked(Win& win, const WindowAddress& window_address, const Elements& there,
                         const Op& op, const std::byte* data, std::byte* found) {
  FERRY_RETURN_FAILURE(FailureOf(front_end->peers->PeerState(window_address.target->rank)));
  if (there.size_bytes() == 0) {  // whatever the operation, as elsewhere
    return {};
  }
  const Datatype* type = nullptr;
  FERRY_RETURN_FAILURE(FindElements(op, *there.type, &type));
  const BasicType& basic = *type->predefined();
  const std::optional<shm::Accumulation> what = AccumulationOf(op, basic);
  if (!what.has_value()) {
    return Unsupported("Ferry does not have this operation on elements of " +
                       std::string(basic.name));
  }
  return basic.size_bytes == basic.extent_bytes
             ? AccumulateDense(win, window_address, there, *what, data, found)
             : AccumulatePairs(win, window_address, there, basic, *what, data, found);
}

// ---- One word of a target -----------------------------------------------------------------------

namespace {

uint64_t Load(const void* bytes, size_t width) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, width);  // little endian
  return word;
}

// In memory whose elements change under a lock.
Failure CompareSwapLocked(Win& win, const WindowAddress& window_address, size_t bytes,
                          const void* compare, const void* value, void* found) {
  std::vector<std::byte> both(2 * bytes);
  std::memcpy(both.data(), compare, bytes);
  std::memcpy(both.data() + bytes, value, bytes);
  PrivateWish wish;
  wish.kind = PrivateWish::Kind::kCompareSwap;
  wish.bytes = bytes;
  PrivateRun run{window_address.offset, static_cast<int64_t>(bytes)};
  return CarryOut(win, window_address.rank, *window_address.memory, wish, {&run, 1}, both.data(),
                  static_cast<std::byte*>(found));
}

}  // namespace

Failure CompareSwapElement(Win& win, const WindowAddress& window_address, const Datatype& type,
                           const void* compare, const void* value, void* found) {
  const auto bytes = static_cast<size_t>(type.size_bytes());
  FERRY_RETURN_FAILURE(FailureOf(front_end->peers->PeerState(window_address.target->rank)));
  const client::RemoteAddress place = RemoteAddressAt(window_address, window_address.offset);
  const bool is_word = bytes <= sizeof(uint64_t) && place.offset % bytes == 0;
  const bool is_locked = IsLocked(*window_address.memory);
  if (is_locked && (!is_word || !IsReachedByLink(window_address))) {
    return CompareSwapLocked(win, window_address, bytes, compare, value, found);
  }
  if (bytes > sizeof(uint64_t)) {
    return Unsupported("Ferry cannot compare and swap an element of " +
                       std::string(type.predefined()->name) +
                       " at once in memory that others map: it has " + std::to_string(bytes) +
                       " bytes, of which 8 are the most");
  }
  if (!is_word) {
    return Unsupported("the element at byte " + std::to_string(window_address.offset) +
                       " of the target's memory does not lie at a multiple of its " +
                       std::to_string(bytes) + " bytes: Ferry cannot change it at once");
  }
  uint64_t before = 0;
  const ErrorCode error = front_end->one_sided->Atomic(
      win.context(),
      {place, shm::OneSidedOperation::kCompareSwap, static_cast<uint32_t>(bytes),
       Load(value, bytes), Load(compare, bytes)},
      &before, WhenDone::kAtReturn);
  if (error == ErrorCode::kUnsupported && is_locked) {
    FERRY_RETURN_FAILURE(EndOperationsByLink(win, window_address));
    return CompareSwapLocked(win, window_address, bytes, compare, value, found);
  }
  shm::CopyWords(found, &before, bytes);
  return FailureOf(error);
}

}  // namespace ferry::mpi
