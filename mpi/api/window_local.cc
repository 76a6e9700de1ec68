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
struct Local {
  std::byte* at = nullptr;
  size_t bytes = 0;
  const Datatype* type = nullptr;
  Reach reach = Reach::kNone;
  bool is_alone = false;  // only this process changes elements there
};

Local Find(const LocalCall& call) {
  Win* const win = wins.Find(call.win);
  const Datatype* const type = datatypes.Find(call.type);
  if (win == nullptr || type == nullptr || !type->IsPredefined() || !win->HasRank(call.rank) ||
      !win->epochs().MayAccess(call.rank)) {
    return {};
  }
  const WindowTarget& target = win->target(call.rank);
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
bool Change(const LocalCall& call, MPI_Op op, const void* data, bool is_fetch, void* found) {
  const Local local = Find(call);
  if (local.at == nullptr || local.reach != Reach::kShared || local.type->predefined()->IsPair() ||
      (is_fetch && !IsPlain(found))) {
    return false;
  }
  const std::optional<shm::Accumulation> what = FindAccumulation(op, *local.type);
  if (!what || (what->takes_operands() && !IsPlain(data)) ||
      !what->IsAtomicAt(reinterpret_cast<uintptr_t>(local.at))) {
    return false;
  }
  const auto count = static_cast<uint64_t>(call.count);
  if (local.is_alone) {  // then rows are changed at the speed of memory
    what->ApplyAlone(local.at, data, found, count);
  } else {
    what->Apply(local.at, data, found, count);
  }
  return true;
}

}  // namespace

bool PutLocal(const LocalCall& call, const void* from) {
  const Local local = Find(call);
  if (local.at == nullptr || !IsPlain(from)) {
    return false;
  }
  shm::CopyWords(local.at, from, local.bytes);
  return true;
}

bool GetLocal(const LocalCall& call, void* to) {
  const Local local = Find(call);
  if (local.at == nullptr || !IsPlain(to)) {
    return false;
  }
  shm::CopyWords(to, local.at, local.bytes);
  return true;
}

bool AccumulateLocal(const LocalCall& call, MPI_Op op, const void* data) {
  return Change(call, op, data, false, nullptr);
}

bool FetchLocal(const LocalCall& call, MPI_Op op, const void* data, void* found) {
  return Change(call, op, data, true, found);
}

bool CompareSwapLocal(const LocalCall& call, const void* compare, const void* value, void* found) {
  const Local local = Find(call);
  if (local.at == nullptr || local.reach != Reach::kShared ||
      !IsComparable(*local.type->predefined()) || local.bytes > sizeof(uint64_t) ||
      reinterpret_cast<uintptr_t>(local.at) % local.bytes != 0 || !IsPlain(compare) ||
      !IsPlain(value) || !IsPlain(found)) {
    return false;
  }
  uint64_t words[2] = {};  // little endian
  std::memcpy(&words[0], value, local.bytes);
  std::memcpy(&words[1], compare, local.bytes);
  const uint64_t before =
      shm::ApplyAtomicAt(local.at, static_cast<uint32_t>(local.bytes),
                         shm::OneSidedOperation::kCompareSwap, words[0], words[1]);
  shm::CopyWords(found, &before, local.bytes);
  return true;
}

// Operations of this process in memory of its node are over when their calls return.
bool FlushLocal(MPI_Win handle, int rank) {
  Win* const win = wins.Find(handle);
  if (win == nullptr || !win->HasRank(rank) || !win->epochs().IsAllLocked() ||
      !win->target(rank).is_local || win->has_operations()) {
    return false;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace ferry::mpi
