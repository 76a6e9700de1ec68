#include "mpi/coll/node_board.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/coll/scratch.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/line_to_members.h"
#include "shm/atomic.h"
#include "shm/fence.h"

namespace ferry::mpi {
namespace {

using collective::BoardLayout;
using collective::BoardShape;
using collective::NodeAddress;

// Agreements of the communicator may be under way, which have tag 0, and notices of CallWatch.
constexpr int kNonblockingTag = 2;

struct Offer {
  shm::Location where;
  int is_there = 0;
  int crowded = 0;  // the same for all, whatever each may know of its node
};

struct Report {
  int is_mapped = 0;
  int reaches_all = 0;  // their private memory
};

// Boards whose memory is this rank's and that others still use. Asked by one thread at a time;
// threads that make communicators at the same time only find some of them later.
class Retired {
 public:
  void Add(BoardLayout* layout, int members) { boards_.push_back({layout, members}); }
  void Sweep() {
    std::erase_if(boards_, [](const Entry& entry) {
      // Pairs with Board::Leave.
      const bool is_over =
          shm::LoadAcquire(entry.layout->left) == static_cast<uint32_t>(entry.members);
      if (is_over) {
        (void)front_end->memory->FreeMemory(entry.layout);
      }
      return is_over;
    });
  }

 private:
  struct Entry {
    BoardLayout* layout;
    int members;
  };
  std::vector<Entry> boards_;
};

std::mutex retired_mutex;
// Not destroyed at exit: a program may leave without MPI_Finalize.
Retired& retired = *new Retired();

// The first rank's part. Null: it has no memory for a board.
std::byte* MakeOffer(int members, Offer* offer) {
  {
    std::lock_guard lock(retired_mutex);
    retired.Sweep();
  }
  offer->crowded = front_end->IsCrowded() ? 1 : 0;
  const size_t size_bytes = collective::ShapeFor(members, offer->crowded != 0).SizeBytes();
  StatusOr<void*> made =
      front_end->memory->AllocateMemory(size_bytes, client::MemoryKind::kHost, 0);
  if (!made.ok()) {
    return nullptr;
  }
  offer->where = front_end->one_sided->LocateHere(*made, size_bytes);
  offer->is_there = 1;
  return static_cast<std::byte*>(*made);
}

bool ReachesAll(const std::vector<int>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [](int member) {
    const auto rank = static_cast<uint32_t>(member);
    return rank == front_end->rank() || front_end->peers->IsPrivateMemoryReachable(rank);
  });
}

}  // namespace

std::unique_ptr<NodeBoard> NodeBoard::SetUp(const Comm& comm, const std::vector<int>& members,
                                            CallWatch* watch) {
  const RankSet ranks = Select(comm.group(), members);
  LineToMembers line(comm.context(Traffic::kAgreement), ranks);
  CallWatch::Wait wait(watch, watch->blocking_call());
  line.SetWait(&wait);
  std::unique_ptr<NodeBoard> made = MakeTogether(ranks, &line, {});
  if (made != nullptr) {
    const bool sees_all = ranks.size() == comm.size();
    made->link_.SetWatch(watch, sees_all ? &made->board_ : nullptr);
  }
  return made;
}

std::unique_ptr<NodeBoard> NodeBoard::SetUp(const Comm& comm, Pauses pauses) {
  LineToMembers line(comm.context(Traffic::kAgreement), comm.group(), kNonblockingTag);
  line.SetPause(pauses.pause);
  return MakeTogether(comm.group(), &line, std::move(pauses));
}

std::unique_ptr<NodeBoard> NodeBoard::MakeTogether(const RankSet& members, Line* line,
                                                   Pauses pauses) {
  shm::EnableLightFence();  // libferry has done so for the process, but this library asks its own
  const int self = members.RankOf(static_cast<int>(front_end->rank()));
  const Team team{line, self, members.size()};
  std::vector<int> ranks = members.WorldRanks();
  Memory memory;
  Offer offer;
  if (self == 0) {
    memory.own = MakeOffer(members.size(), &offer);
  }
  // If a member has died there is no board, and the collective finds out about the death.
  const bool has_offer = Broadcast(team, &offer, sizeof(offer)).ok();
  const BoardShape shape = collective::ShapeFor(members.size(), offer.crowded != 0);
  if (has_offer && offer.is_there != 0 && memory.own == nullptr) {
    StatusOr<std::shared_ptr<std::byte>> mapped = front_end->peers->MapPeer(
        static_cast<uint32_t>(ranks.front()), offer.where, shape.SizeBytes());
    if (mapped.ok()) {
      memory.mapped = std::move(*mapped);
    }
  }
  const Report report{.is_mapped = memory.get() != nullptr, .reaches_all = ReachesAll(ranks)};
  std::vector<Report> reports(ranks.size());
  bool agreed = GatherToAll(team, &report, sizeof(report), reports.data()).ok();
  bool reachable = true;
  for (const Report& each : reports) {
    agreed = agreed && each.is_mapped != 0;
    reachable = reachable && each.reaches_all != 0;
  }
  if (!agreed) {
    if (memory.own != nullptr) {
      (void)front_end->memory->FreeMemory(memory.own);  // no rank has written to it
    }
    return nullptr;
  }
  return std::unique_ptr<NodeBoard>(new NodeBoard(std::move(ranks), self, std::move(memory), shape,
                                                  {offer.crowded != 0, reachable},
                                                  std::move(pauses)));
}

NodeBoard::NodeBoard(std::vector<int> world_ranks, int self, Memory memory, const BoardShape& shape,
                     const Facts& facts, Pauses pauses)
    : memory_(std::move(memory)),
      link_(std::move(world_ranks), std::move(pauses)),
      board_(reinterpret_cast<BoardLayout*>(memory_.get()), shape, &link_, self, facts.crowded),
      limits_(collective::LimitsFor(shape.members, facts.crowded, facts.reachable)) {}

NodeBoard::~NodeBoard() {
  const bool was_last = board_.Leave();
  if (memory_.own == nullptr || front_end == nullptr) {  // otherwise the heap is gone
    return;
  }
  if (was_last) {
    (void)front_end->memory->FreeMemory(memory_.own);
    return;
  }
  std::lock_guard lock(retired_mutex);
  retired.Add(reinterpret_cast<BoardLayout*>(memory_.own), board_.members());
}

// ---- The link -----------------------------------------------------------------------------------

CommLink::CommLink(std::vector<int> world_ranks, Pauses pauses)
    : FrontLink(front_end, std::move(world_ranks)), pauses_(std::move(pauses)) {}

void CommLink::WaitFor(bool (*done)(void*), void* argument) {
  if (HasPauses()) {
    if (!done(argument)) {
      pauses_.pause();
    }
    return;
  }
  if (watch_ == nullptr) {
    FrontLink::WaitFor(done, argument);
    return;
  }
  CallWatch::Wait wait(watch_, watch_->blocking_call());
  const std::function<bool(int)> is_absent = [this](int member) {
    return !board_->HasCome(member);
  };
  struct Waiting {
    CallWatch* watch;
    bool (*done)(void*);
    void* argument;
  } waiting{watch_, done, argument};
  while (!done(argument) && front_end->poison() == ErrorCode::kOk) {
    front_end->peers->WaitFor(
        [](void* self) {
          const auto& [watch, is_done, its_argument] = *static_cast<Waiting*>(self);
          watch->Listen();  // to ranks of other nodes
          return is_done(its_argument);
        },
        &waiting, client::kAny, wait.end_ns());
    wait.Look(board_ != nullptr ? &is_absent : nullptr);
  }
}

collective::FailureText CommLink::TextOf(ErrorCode error) {
  return std::make_shared<const std::string>(front_end->peers->Explain(error).ToString());
}

client::RemoteAddress CommLink::PlaceOf(int member, const NodeAddress& address) const {
  return {RankOf(member), client::SegmentOf(LocationOf(address)), address.address};
}

std::vector<client::RemoteAddress> CommLink::PlacesOf(
    std::span<const NodeAddress> addresses) const {
  std::vector<client::RemoteAddress> places(addresses.size());
  for (size_t i = 0; i < places.size(); ++i) {
    places[i] = PlaceOf(static_cast<int>(i), addresses[i]);
  }
  return places;
}

ErrorCode CommLink::Spread(std::span<const NodeAddress> blocks, std::span<const NodeAddress> places,
                           size_t block_bytes) {
  return front_end->one_sided->SpreadInNode(PlacesOf(blocks), PlacesOf(places), block_bytes);
}

ErrorCode CommLink::Reduce(std::span<const NodeAddress> vectors,
                           std::span<const collective::MemberAddress> places, int self,
                           const gpu::Reduction& reduction) {
  std::vector<client::RemoteAddress> results;
  results.reserve(places.size());
  for (const collective::MemberAddress& place : places) {
    results.push_back(PlaceOf(place.member, place.address));
  }
  return front_end->one_sided->ReduceInNode(PlacesOf(vectors), results, static_cast<size_t>(self),
                                            reduction);
}

void* CommLink::TakeStaging(size_t size_bytes) { return mpi::TakeStaging(size_bytes); }

void CommLink::GiveStaging(void* memory) { mpi::GiveStaging(memory); }

}  // namespace ferry::mpi
