#include "mpi/rma/control.h"

#include <cstring>
#include <utility>

#include "mpi/base/connection.h"
#include "shm/atomic.h"

namespace ferry::mpi {

using client::WhenDone;
using shm::OneSidedOperation;

Failure ControlBlock::Open(client::OneSidedContext* context, uint32_t rank, bool is_local,
                           std::byte* own, const shm::Location& where, uint64_t size_bytes) {
  context_ = context;
  place_ = {rank, client::SegmentOf(where), where.address};
  base_ = own;
  if (own != nullptr || !is_local) {
    return {};
  }
  StatusOr<std::shared_ptr<std::byte>> mapped = front_end->peers->MapPeer(rank, where, size_bytes);
  if (!mapped.ok()) {
    return FailureOf(mapped.status());
  }
  mapping_ = *std::move(mapped);
  base_ = mapping_.get();
  return {};
}

ErrorCode ControlBlock::Atomic(uint64_t offset, uint32_t width, OneSidedOperation operation,
                               uint64_t operand, uint64_t compare, uint64_t* found) const {
  client::AtomicCall call{place_, operation, width, operand, compare};
  call.place.offset += offset;
  return front_end->one_sided->Atomic(context_, call, found, WhenDone::kAtReturn);
}

ErrorCode ControlBlock::Load(uint64_t offset, uint32_t* found) const {
  if (is_local()) {
    *found = shm::Load(At<uint32_t>(offset), std::memory_order_seq_cst);
    return ErrorCode::kOk;
  }
  uint64_t bits = 0;
  const ErrorCode error = Atomic(offset, sizeof(*found), OneSidedOperation::kFetch, 0, 0, &bits);
  *found = static_cast<uint32_t>(bits);
  return error;
}

ErrorCode ControlBlock::Load(uint64_t offset, uint64_t* found) const {
  if (is_local()) {
    *found = shm::Load(At<uint64_t>(offset), std::memory_order_seq_cst);
    return ErrorCode::kOk;
  }
  return Atomic(offset, sizeof(*found), OneSidedOperation::kFetch, 0, 0, found);
}

ErrorCode ControlBlock::Swap(uint64_t offset, uint32_t value, uint32_t* found) const {
  if (is_local()) {
    *found = shm::Exchange(At<uint32_t>(offset), value, std::memory_order_seq_cst);
    return front_end->peers->PeerState(place_.rank);
  }
  uint64_t bits = 0;
  const ErrorCode error = Atomic(offset, sizeof(value), OneSidedOperation::kSwap, value, 0, &bits);
  *found = static_cast<uint32_t>(bits);
  return error;
}

ErrorCode ControlBlock::CompareSwap(uint64_t offset, uint32_t expected, uint32_t value,
                                    uint32_t* found) const {
  if (is_local()) {
    *found = expected;
    (void)shm::CompareExchange(At<uint32_t>(offset), *found, value, std::memory_order_seq_cst);
    return front_end->peers->PeerState(place_.rank);
  }
  uint64_t bits = 0;
  const ErrorCode error =
      Atomic(offset, sizeof(value), OneSidedOperation::kCompareSwap, value, expected, &bits);
  *found = static_cast<uint32_t>(bits);
  return error;
}

ErrorCode ControlBlock::Tell(uint64_t offset, uint64_t value) const {
  if (is_local()) {
    (void)shm::Exchange(At<uint64_t>(offset), value, std::memory_order_seq_cst);
    front_end->one_sided->TellOfChange(place_.rank);
    return front_end->peers->PeerState(place_.rank);
  }
  return front_end->one_sided->Put(
      context_, place_, nullptr, 0,
      {shm::SignalUpdate::kSet, place_.segment, place_.offset + offset, value});
}

ErrorCode ControlBlock::Read(uint64_t offset, void* to, uint64_t size_bytes) const {
  if (is_local()) {
    for (uint64_t at = 0; at < size_bytes; at += sizeof(uint32_t)) {
      const uint32_t word = shm::Load(At<uint32_t>(offset + at), std::memory_order_seq_cst);
      std::memcpy(static_cast<std::byte*>(to) + at, &word, sizeof(word));
    }
    return ErrorCode::kOk;
  }
  client::RemoteAddress from = place_;
  from.offset += offset;
  return front_end->one_sided->Get(context_, to, from, size_bytes, WhenDone::kAtReturn);
}

}  // namespace ferry::mpi
