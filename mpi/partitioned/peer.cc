#include "mpi/partitioned/peer.h"

#include "mpi/base/connection.h"
#include "shm/atomic.h"
#include "shm/word_copy.h"

namespace ferry::mpi {
namespace {

// Between memory of this process' address space; `by_stream`: only streams reach one of them.
ErrorCode Copy(void* to, const void* from, uint64_t size_bytes, bool by_stream) {
  if (!by_stream) [[likely]] {
    shm::CopyWords(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  return front_end->memory->Copy(to, from, size_bytes).code();
}

}  // namespace

int ErrorClassOf(uint64_t word) {
  return word > MPI_SUCCESS && word <= MPI_ERR_ABI ? static_cast<int>(word) : MPI_ERR_OTHER;
}

Failure PeerBlock::Open(uint32_t rank, bool is_local, const shm::Location& where,
                        uint64_t size_bytes) {
  place_ = {rank, client::SegmentOf(where), where.address};
  if (is_local) {
    StatusOr<std::shared_ptr<std::byte>> mapped =
        front_end->peers->MapPeer(rank, where, size_bytes);
    if (!mapped.ok()) {
      return FailureOf(mapped.status());
    }
    mapped_ = *std::move(mapped);
  }
  is_open_ = true;
  return {};
}

uint64_t& PeerBlock::WordAt(uint64_t offset) const {
  return *static_cast<uint64_t*>(static_cast<void*>(mapped_.get() + offset));
}

void PeerBlock::StoreSoon(uint64_t offset, uint64_t value) const {
  shm::StoreRelease(WordAt(offset), value);
}

void PeerBlock::Store(uint64_t offset, uint64_t value) const {
  if (mapped_ != nullptr) {
    (void)shm::Exchange(WordAt(offset), value, std::memory_order_seq_cst);
    return;
  }
  // Its failure is one of the peer, or of all that is begun with it, and is found there.
  (void)front_end->one_sided->Put(
      nullptr, place_, nullptr, 0,
      {shm::SignalUpdate::kSet, place_.segment, place_.offset + offset, value});
}

void PeerBlock::Write(uint64_t offset, const void* bytes, uint64_t size_bytes) const {
  if (mapped_ != nullptr) {
    shm::CopyWords(mapped_.get() + offset, bytes, size_bytes);
    return;
  }
  client::RemoteAddress place = place_;
  place.offset += offset;
  (void)front_end->one_sided->Put(nullptr, place, bytes, size_bytes);  // as above
}

Failure PeerData::Open(uint32_t rank, const shm::Location& where, uint64_t size_bytes) {
  rank_ = rank;
  where_ = where;
  if (size_bytes == 0) {
    return {};
  }
  if (where.region == 0) {
    if (rank == front_end->rank()) {
      mapped_ = std::shared_ptr<std::byte>(std::shared_ptr<void>(),
                                           reinterpret_cast<std::byte*>(where.address));
    }
    return {};
  }
  StatusOr<std::shared_ptr<std::byte>> mapped =
      front_end->peers->MapPeer(rank, where, size_bytes, &is_by_stream_);
  if (!mapped.ok()) {
    return FailureOf(mapped.status());
  }
  mapped_ = *std::move(mapped);
  return {};
}

ErrorCode PeerData::CopyTo(uint64_t offset, const void* from, uint64_t size_bytes,
                           bool by_stream) const {
  if (size_bytes == 0) {
    return ErrorCode::kOk;
  }
  if (mapped_ != nullptr) [[likely]] {
    return Copy(mapped_.get() + offset, from, size_bytes, by_stream || is_by_stream_);
  }
  shm::Location to = where_;
  to.address += offset;
  return front_end->peers->CopyToPeer(rank_, to, from, size_bytes);
}

ErrorCode PeerData::CopyFrom(uint64_t offset, void* to, uint64_t size_bytes, bool by_stream) const {
  if (size_bytes == 0) {
    return ErrorCode::kOk;
  }
  if (mapped_ != nullptr) [[likely]] {
    return Copy(to, mapped_.get() + offset, size_bytes, by_stream || is_by_stream_);
  }
  shm::Location from = where_;
  from.address += offset;
  return front_end->peers->CopyFromPeer(rank_, from, to, size_bytes);
}

}  // namespace ferry::mpi
