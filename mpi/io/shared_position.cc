#include "mpi/io/shared_position.h"

#include <new>
#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/comm/creation.h"
#include "shm/atomic.h"

namespace ferry::mpi {

namespace {
constexpr uint64_t kWordBytes = 64;  // alone on its line of the caches
}  // namespace

SharedPosition::~SharedPosition() { Free(); }

Failure SharedPosition::Make(const Comm& comm) {
  const StatusOr<void*> block =
      front_end->memory->AllocateMemory(kWordBytes, client::MemoryKind::kHost, 0);
  if (!block.ok()) {
    return {MPI_ERR_NO_MEM, "no memory for the shared file pointer: " + block.status().message()};
  }
  block_ = *block;
  word_ = new (block_) uint64_t(0);
  // Only for ranks of other nodes a thread may have to serve the memory.
  location_ = HasSeveralNodes(comm) ? front_end->one_sided->Locate(block_, kWordBytes)
                                    : front_end->one_sided->LocateHere(block_, kWordBytes);
  owner_ = front_end->rank();
  is_near_ = true;
  return {};
}

void SharedPosition::Find(const Comm& comm, const shm::Location& location) {
  location_ = location;
  owner_ = static_cast<uint32_t>(comm.WorldRank(0));
  is_near_ = front_end->NodeOf(owner_) == front_end->NodeOf(front_end->rank());
}

void SharedPosition::Free() {
  if (block_ != nullptr && front_end != nullptr) {
    word_ = nullptr;
    (void)front_end->memory->FreeMemory(std::exchange(block_, nullptr));  // which was allocated
  }
}

Failure SharedPosition::Reach() {
  const std::lock_guard lock(mutex_);
  if (!is_near_ || word_ != nullptr) {
    return {};
  }
  StatusOr<std::shared_ptr<std::byte>> mapped =
      front_end->peers->MapPeer(owner_, location_, kWordBytes);
  if (!mapped.ok()) {
    return FailureOf(mapped.status());
  }
  mapping_ = *std::move(mapped);
  word_ = static_cast<uint64_t*>(static_cast<void*>(mapping_.get()));
  return {};
}

Failure SharedPosition::Change(shm::OneSidedOperation operation, int64_t operand, int64_t* before) {
  FERRY_RETURN_FAILURE(Reach());
  uint64_t found = 0;
  ErrorCode error = ErrorCode::kOk;
  const auto value = static_cast<uint64_t>(operand);
  if (uint64_t* const word = word_; word != nullptr) {
    constexpr auto kOrder = std::memory_order_seq_cst;
    found = operation == shm::OneSidedOperation::kAdd    ? shm::FetchAdd(*word, value, kOrder)
            : operation == shm::OneSidedOperation::kSwap ? shm::Exchange(*word, value, kOrder)
                                                         : shm::Load(*word, kOrder);
    error = front_end->peers->PeerState(owner_);
  } else {
    const client::AtomicCall call{
        {owner_, client::SegmentOf(location_), location_.address}, operation, 8, value, 0};
    error = front_end->one_sided->Atomic(nullptr, call, &found, client::WhenDone::kAtReturn);
  }
  *before = static_cast<int64_t>(found);
  return FailureOf(error);
}

Failure SharedPosition::Add(int64_t etypes, int64_t* before) {
  return Change(shm::OneSidedOperation::kAdd, etypes, before);
}

Failure SharedPosition::Set(int64_t etypes) {
  int64_t before = 0;
  return Change(shm::OneSidedOperation::kSwap, etypes, &before);
}

Failure SharedPosition::Get(int64_t* etypes) {
  return Change(shm::OneSidedOperation::kFetch, 0, etypes);
}

}  // namespace ferry::mpi
