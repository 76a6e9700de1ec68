#include "mpi/api/window_local.h"

#include <atomic>
#include <cstring>
#include <optional>

#include "mpi/api/message_arguments.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/datatype/basic_type.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/op.h"
#include "mpi/rma/elements.h"
#include "mpi/rma/window.h"
#include "shm/accumulate.h"
#include "shm/atomic_operation.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

// Where a call's elements lie; `at` null: nothing here reaches them so simply.
struct Near {
  std::byte* at = nullptr;
  size_t bytes = 0;
  const Datatype* type = nullptr;
  Reach reach = Reach::kNone;
  bool is_alone = false;  // nobody else changes elements there
};

Near Find(const NearCall& call) {
  Win* const win = wins.Find(call.win);
  const Datatype* const type = datatypes.Find(call.type);
  if (win == nullptr || type == nullptr || !type->IsPredefined() || !win->HasRank(call.rank) ||
      !win->epochs().MayAccess(call.rank)) {
    return {};
  }
  const Target& target = win->target(call.rank);
  const Exposed& memory = target.memory;
  const BasicType& basic = *type->predefined();
  int64_t bytes = 0;
  int64_t offset = 0;
  int64_t end = 0;
  const bool is_inside = !__builtin_mul_overflow(call.count, basic.size_bytes, &bytes) &&
                         !__builtin_mul_overflow(call.disp, target.disp_unit, &offset) &&
                         !__builtin_add_overflow(offset, bytes, &end) && call.count > 0 &&
                         call.disp >= 0 && static_cast<uint64_t>(end) <= memory.size_bytes;
  if (!is_inside || memory.mapped == nullptr || memory.reach == Reach::kByStream ||
      basic.size_bytes != basic.extent_bytes ||
      front_end->peers->PeerState(target.rank) != ErrorCode::kOk) {
    return {};
  }
  return {memory.mapped + offset, static_cast<size_t>(bytes), type, memory.reach,
          win->epochs().IsAlone(call.rank)};
}

// A buffer of the program's that may be read and written as it is.
bool IsPlain(const void* buffer) {
  return reinterpret_cast<uintptr_t>(buffer) >= kLowestBuffer && !front_end->MayBeByStream(buffer);
}

// Nothing: the standard has no such operation on such elements. Programs mostly ask for the same
// one again, and what predefined handles stand for never changes.
std::optional<shm::Accumulation> FindAccumulation(MPI_Op handle, const Datatype& type) {
  struct Asked {
    MPI_Op op = MPI_OP_NULL;
    const BasicType* type = nullptr;
    std::optional<shm::Accumulation> found;
  };
  thread_local Asked last;
  if (last.op == handle && last.type == type.predefined()) [[likely]] {
    return last.found;
  }
  const Op* const op = ops.Find(handle);
  const Datatype* elements = nullptr;
  if (op == nullptr || !op->IsPredefined() || !FindElements(*op, type, &elements).ok()) {
    return std::nullopt;
  }
  last = {handle, type.predefined(), AccumulationOf(*op, *type.predefined())};
  return last.found;
}

// Private memory is its owner's to change.
bool Change(const NearCall& call, MPI_Op op, const void* data, bool is_fetch, void* found) {
  const Near near = Find(call);
  if (near.at == nullptr || near.reach != Reach::kShared || near.type->predefined()->IsPair() ||
      (is_fetch && !IsPlain(found))) {
    return false;
  }
  const std::optional<shm::Accumulation> what = FindAccumulation(op, *near.type);
  if (!what || (what->takes_operands() && !IsPlain(data)) ||
      !what->IsAtomicAt(reinterpret_cast<uintptr_t>(near.at))) {
    return false;
  }
  const auto count = static_cast<uint64_t>(call.count);
  if (near.is_alone) {  // then rows are changed at the speed of memory
    what->ApplyAlone(near.at, data, found, count);
  } else {
    what->Apply(near.at, data, found, count);
  }
  return true;
}

}  // namespace

bool PutNear(const NearCall& call, const void* from) {
  const Near near = Find(call);
  if (near.at == nullptr || !IsPlain(from)) {
    return false;
  }
  shm::CopyWords(near.at, from, near.bytes);
  return true;
}

bool GetNear(const NearCall& call, void* to) {
  const Near near = Find(call);
  if (near.at == nullptr || !IsPlain(to)) {
    return false;
  }
  shm::CopyWords(to, near.at, near.bytes);
  return true;
}

bool AccumulateNear(const NearCall& call, MPI_Op op, const void* data) {
  return Change(call, op, data, false, nullptr);
}

bool FetchNear(const NearCall& call, MPI_Op op, const void* data, void* found) {
  return Change(call, op, data, true, found);
}

bool CompareSwapNear(const NearCall& call, const void* compare, const void* value, void* found) {
  const Near near = Find(call);
  if (near.at == nullptr || near.reach != Reach::kShared ||
      !IsComparable(*near.type->predefined()) || near.bytes > sizeof(uint64_t) ||
      reinterpret_cast<uintptr_t>(near.at) % near.bytes != 0 || !IsPlain(compare) ||
      !IsPlain(value) || !IsPlain(found)) {
    return false;
  }
  uint64_t words[2] = {};  // little endian
  std::memcpy(&words[0], value, near.bytes);
  std::memcpy(&words[1], compare, near.bytes);
  const uint64_t before =
      shm::ApplyAtomicAt(near.at, static_cast<uint32_t>(near.bytes),
                         shm::OneSidedOperation::kCompareSwap, words[0], words[1]);
  shm::CopyWords(found, &before, near.bytes);
  return true;
}

// What this process does in memory of its node is over when the call returns.
bool FlushNear(MPI_Win handle, int rank) {
  Win* const win = wins.Find(handle);
  if (win == nullptr || !win->HasRank(rank) || !win->epochs().IsAllLocked() ||
      !win->target(rank).is_near || win->has_operations()) {
    return false;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace ferry::mpi
