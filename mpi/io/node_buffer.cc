#include "mpi/io/node_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/api/one_sided.h"
#include "mpi/base/connection.h"
#include "mpi/comm/agree.h"
#include "shm/atomic.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

std::vector<int> RanksOfNode(const Comm& comm) {
  std::vector<int> ranks;
  const int node = front_end->NodeOf(front_end->rank());
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (front_end->NodeOf(static_cast<uint32_t>(comm.WorldRank(rank))) == node) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

NodeBuffer::~NodeBuffer() {
  if (memory_.base() != nullptr && (front_end == nullptr || DeathAmongRanks() != ErrorCode::kOk)) {
    memory_.Leave();
  }
}

struct NodeBuffer::Offer {
  int32_t error_class = MPI_SUCCESS;
  shm::Location where{};
};

size_t NodeBuffer::size_bytes() const {
  const size_t words = (ranks_.size() * sizeof(RankWords) + kPage - 1) / kPage * kPage;
  return words + 2 * static_cast<size_t>(kStretches * stretch_bytes_);
}

Failure NodeBuffer::OfferMemory(Offer* offer) {
  if (self_ != 0) {
    return {};
  }
  FERRY_RETURN_FAILURE(memory_.Allocate(size_bytes(), kPage));
  for (size_t i = 0; i < ranks_.size(); ++i) {
    new (memory_.base() + i * sizeof(RankWords)) RankWords();
  }
  const auto marks = static_cast<size_t>(kStretches * stretch_bytes_);
  std::memset(memory_.base() + size_bytes() - marks, 0, marks);
  offer->where = front_end->one_sided->LocateHere(memory_.base(), size_bytes());
  return {};
}

Failure NodeBuffer::SetUp(Meeting& meeting, const Comm& comm, int64_t stretch_bytes) {
  comm_ = &comm;
  stretch_bytes_ = stretch_bytes;
  ranks_ = RanksOfNode(comm);
  self_ = static_cast<int>(std::find(ranks_.begin(), ranks_.end(), comm.rank()) - ranks_.begin());
  Offer offer;
  const Failure offered = OfferMemory(&offer);
  offer.error_class = offered.error_class;
  std::vector<Offer> offers;
  FERRY_RETURN_FAILURE(meeting.Gather(offer, &offers));
  std::vector<int32_t> classes;
  for (const Offer& each : offers) {
    classes.push_back(each.error_class);
  }
  FERRY_RETURN_FAILURE(FirstFailure(classes, comm.rank(), offered));
  std::byte* base = memory_.base();
  Failure opened;
  if (self_ != 0) {
    const int leader = ranks_.front();
    StatusOr<std::shared_ptr<std::byte>> mapped =
        front_end->peers->MapPeer(static_cast<uint32_t>(comm.WorldRank(leader)),
                                  offers[static_cast<size_t>(leader)].where, size_bytes());
    if (mapped.ok()) {
      mapping_ = *std::move(mapped);
      base = mapping_.get();
    } else {
      opened = {MPI_ERR_NO_MEM, mapped.status().message()};
    }
  }
  FERRY_RETURN_FAILURE(meeting.Agree(opened));
  base_ = base;
  return {};
}

RankWords& NodeBuffer::words(int i) const {
  return *static_cast<RankWords*>(
      static_cast<void*>(base_ + static_cast<size_t>(i) * sizeof(RankWords)));
}

std::byte* NodeBuffer::bytes(uint64_t stretch) const {
  const size_t behind = (kStretches - stretch % kStretches) * static_cast<size_t>(stretch_bytes_);
  return base_ + size_bytes() - static_cast<size_t>(kStretches * stretch_bytes_) - behind;
}

std::byte* NodeBuffer::marks(uint64_t stretch) const {
  return bytes(stretch) + static_cast<size_t>(kStretches * stretch_bytes_);
}

ErrorCode NodeBuffer::StateOf(int rank) const {
  return front_end->peers->PeerState(static_cast<uint32_t>(comm_->WorldRank(rank)));
}

ErrorCode NodeBuffer::DeathAmongRanks() const {
  for (const int rank : ranks_) {
    if (const ErrorCode state = StateOf(rank); state != ErrorCode::kOk) {
      return state;
    }
  }
  return LeftAmongRanks();
}

ErrorCode NodeBuffer::DeathAmongAll() const {
  for (int rank = 0; rank < comm_->size(); ++rank) {
    if (const ErrorCode state = StateOf(rank); state != ErrorCode::kOk) {
      return state;
    }
  }
  return LeftAmongRanks();
}

ErrorCode NodeBuffer::LeftAmongRanks() const {
  for (size_t i = 0; i < ranks_.size(); ++i) {
    // Pairs with Leave.
    if (const uint64_t left = shm::LoadAcquire(words(static_cast<int>(i)).left); left != 0) {
      return static_cast<ErrorCode>(left);
    }
  }
  return ErrorCode::kOk;
}

void NodeBuffer::Leave(ErrorCode why) const {
  if (is_set_up()) {
    shm::StoreRelease(words(self_).left, static_cast<uint64_t>(why));  // Pairs with LeftAmongRanks.
  }
}

}  // namespace ferry::mpi
